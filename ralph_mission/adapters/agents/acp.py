"""Agents that speak the Agent Client Protocol: `kind: acp` for any such program, `acp:NAME` for one of the table.

`acp_driver` runs it in its own process, judges tools and files of the calls that need permission, and prints one
result. The clients of `clients.CLIENTS` use their own interfaces because those offer more: Claude Code takes a schema
and limits of turns and money; Codex reports what its sandbox refused, OpenCode a price, Gemini and Copilot their turns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ralph_mission.adapters.agents import claude, codex
from ralph_mission.adapters.agents.claude_driver import request_of
from ralph_mission.adapters.agents.client import Client, Invocation, SessionPlace
from ralph_mission.loop.model.state import Session

NAME = "acp"
DRIVER = (sys.executable, "-I", "-m", "ralph_mission.adapters.agents.acp_driver")


def _invocation(session: Session, _: SessionPlace) -> Invocation:
    request = {"prompt": session.prompt, "model": session.model, "tools_denied": session.hat.tools_denied}
    return Invocation(stdin=json.dumps(request | request_of(session.hat)))


def _invocation_like(own: Client, session: Session, place: SessionPlace) -> Invocation:
    """The same, with what the program gets from its own adapter: which server, which model, what it may."""
    invocation = _invocation(session, place)
    if own.name == codex.CLIENT.name:  # its others would keep it from asking us
        has_key = any(place.env.get(name) for name in own.keys)  # without one it has a login, whose server is its own
        return replace(invocation, arguments=codex.asking_options(session, place)) if has_key else invocation
    known = own.invocation(session, place)
    if session.model and any(session.model in value for value in known.env.values()):
        invocation = _invocation(
            replace(session, model=""), place
        )  # it knows, and lets nobody choose it over the protocol
    return replace(invocation, env=known.env, files=known.files)


ANY = Client(NAME, DRIVER, _invocation, claude.read)


def find_clients(known: Mapping[str, Client]) -> Mapping[str, Client]:
    """The table: each with its program for the protocol, and its keys."""
    rows = (
        ("claude", ("claude-agent-acp",), "npm install --global @agentclientprotocol/claude-agent-acp"),
        ("codex", ("codex-acp",), "npm install --global @zed-industries/codex-acp"),
        ("copilot", ("copilot", "--acp", "--stdio"), known["copilot"].install),
        ("gemini", ("gemini", "--acp"), known["gemini"].install),
        ("opencode", ("opencode", "acp"), known["opencode"].install),
    )
    return {
        f"{NAME}:{name}": replace(
            known[name], name=f"{NAME}:{name}", program=(*DRIVER, *program), install=install,
            invocation=partial(_invocation_like, known[name]),
            read=claude.read, leaves="", priced=False, streams=True,
        )
        for name, program, install in rows
    }  # fmt: skip  # one table
