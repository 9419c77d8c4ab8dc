"""What `ralph doctor` looks at for agents: which are installed and have a key, how far they are kept apart, and whether
`ralph work` could take an issue now.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.adapters.agents import clients
from ralph_mission.adapters.agents.clients import Presence
from ralph_mission.adapters.sandbox.isolation import describe_level, missing_bwrap
from ralph_mission.app import sandboxes
from ralph_mission.cli.doctor.line import DoctorLine
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.config.settings import Config

OTHERS = ("command", "scripted")
"""Agents that need nothing installed by that name."""
NEEDS = ("forge", "GitHub", "token", "repository on GitHub", "issues", "memory", "isolation")
"""Lines that must not be wrong; the label's must not even be a note, since people could not set it."""
LABEL = "label ralph-ready"


def agents(settings: Config, environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """A line for each agent, then one for the isolation that is in force. Only the agents' programs are started."""
    choice = settings.hands.agent
    wanted = (choice.kind, *choice.fallback) if choice else ()
    with tempfile.TemporaryDirectory(prefix="ralph-doctor-") as folder:
        home = Path(folder)
        for client in clients.CLIENTS.values():
            named = choice.run if choice and choice.kind == client.name else ""
            yield line(clients.presence(client, home, _words(named), environ), wanted)
    for name in wanted:
        if name not in (*OTHERS, *clients.CLIENTS):
            known = ", ".join((*OTHERS, *clients.CLIENTS))
            yield DoctorLine(
                f"agent {name}", "wrong", "there is none of that name", f"name one of {known} in ralph.yml"
            )
    yield isolation(settings, environ)


def _words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """The program that the settings name instead; nothing of one that cannot be read, which a run says."""
    try:
        return tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError:
        return ()


def line(found: Presence, wanted: Sequence[str]) -> DoctorLine:
    """One agent. Only what the configuration asks for can be lacking: its first, or one that would take over."""
    name, lacking = f"agent {found.name}", "wrong" if wanted[:1] == (found.name,) else "note"
    keys = " or ".join(found.needs)
    if not found.version:
        if found.name not in wanted:
            return DoctorLine(name, "ok", "not installed")
        return DoctorLine(
            name, lacking, "not installed, or it does not report its version", found.install or f"install {found.name}"
        )
    if not found.key and found.needs:
        mend = f"set {keys} in the environment" if found.name in wanted else ""
        return DoctorLine(name, lacking if mend else "ok", f"{found.version}, no key", mend)
    return DoctorLine(name, "ok", f"{found.version}, key {found.key}" if found.key else found.version)


def isolation(settings: Config, environ: Mapping[str, str]) -> DoctorLine:
    """The isolation that agents really get here; wrong when what is asked for cannot be had."""
    try:
        found = sandboxes.agent_level(settings, environ)
    except UserError as trouble:
        return DoctorLine("isolation", "wrong", trouble.what, trouble.next_step)
    why, remedy = missing_bwrap() if found.level == "env" else ("", "")
    if found.level == "env" and not why and not found.wrap:
        remedy = "leave hands.agent.sandbox out of ralph.yml"
        return DoctorLine("isolation", "note", f"{describe_level(found)}; bwrap can be had", remedy)
    if found.lacking:
        return DoctorLine("isolation", "note", f"env: bwrap cannot be had ({why})", remedy)
    return DoctorLine("isolation", "ok", describe_level(found))


def work(settings: Config, found: Sequence[DoctorLine]) -> DoctorLine:
    """Ready, or what is lacking first and how to fix it. Never wrong: nobody has to want it."""
    lacking = next(_lacking(settings, found), None)
    if lacking is None:
        kind = _kind(settings)
        return DoctorLine(
            "ralph work", "ok", f"ready: {kind} takes issues labelled ralph-ready (agent:NAME chooses another agent)"
        )
    return DoctorLine("ralph work", "note", f"not ready: {lacking.name}: {lacking.found}", lacking.mend)


def _lacking(settings: Config, found: Sequence[DoctorLine]) -> Iterator[DoctorLine]:
    kind = _kind(settings)
    if not kind:
        yield DoctorLine("agent", "wrong", "none is named", "hands: {agent: {kind: claude}} in ralph.yml")
    if kind == "command" and (program := _program(settings)) and not shutil.which(program):
        yield DoctorLine("agent command", "wrong", f"{program} is not installed", "install it, or change ralph.yml")
    names = (*NEEDS, f"agent {kind}")
    yield from (check for check in found if check.status == "wrong" and check.name in names)
    yield from (check for check in found if check.name == LABEL)


def _kind(settings: Config) -> str:
    return settings.hands.agent.kind if settings.hands.agent else settings.cli.backend


def _program(settings: Config) -> str:
    """What the agent `command` starts, "" when only a shell could tell."""
    choice = settings.hands.agent
    try:
        words = shlex.split(choice.run if choice else settings.cli.command)
    except ValueError:
        return ""
    return words[0] if words and "=" not in words[0] else ""
