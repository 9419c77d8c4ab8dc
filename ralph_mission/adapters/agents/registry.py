"""The agents that `--agent NAME` and `hands: {agent: {kind: …}}` name, besides `command` and `scripted`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ralph_mission.adapters.agents import amp, claude, codex, copilot, gemini, opencode
from ralph_mission.adapters.agents.client import Client
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.values import dataclass

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        claude.CLIENT,
        codex.CLIENT,
        gemini.CLIENT,
        copilot.CLIENT,
        opencode.CLIENT,
        amp.CLIENT,
    )
}
PRICED = frozenset(name for name, client in CLIENTS.items() if client.priced)
"""Those of which a session without a price was cut off, so that nobody knows what it cost."""
PATIENCE = 20.0  # seconds for a program to say its version


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether an agent could play here: its version ("" when it is not installed), which of its keys is set, and the
    command that brings it."""

    name: str
    version: str = ""
    key: str = ""
    needs: tuple[str, ...] = ()
    install: str = ""


def presence(
    client: Client, home: Path, command: tuple[str, ...] = (), environ: Mapping[str, str] = os.environ
) -> Presence:
    """Ask the program for its version, in a home of its own; no model is asked."""
    key = next((name for name in client.keys if environ.get(name)), "")
    program = command or client.program
    if not shutil.which(program[0]):
        return Presence(client.name, "", key, client.keys, client.install)
    said = run_foreign((*program, *client.version), cwd=home, home=home, timeout=PATIENCE, output_cap=20_000)
    lines = said.stdout.decode(errors="replace").split("\n") if not said.code else []
    return Presence(client.name, lines[0].strip()[:80] if lines else "", key, client.keys, client.install)
