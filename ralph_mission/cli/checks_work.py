"""Whether `ralph work` could take an issue now: said in one line, from what the doctor has found before."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check

if TYPE_CHECKING:
    from ralph_mission.config import Config

NAME = "ralph work"
NEEDS = (
    "forge",
    "GitHub",
    "token",
    "repository on GitHub",
    "issues",
    "reading",
    "writing",
    "opening pull requests",
    "memory",
    "isolation",
)
"""Lines that must not be wrong; the label's must not even be a note, since people could not set it."""
LABEL = "label ralph-ready"


def work(settings: Config, found: Sequence[Check]) -> Check:
    """Ready, or what is lacking first and how to mend it. Never wrong: nobody has to want it."""
    lacking = next(_lacking(settings, found), None)
    if lacking is None:
        kind = _kind(settings)
        return Check(NAME, "ok", f"ready: {kind} takes issues labelled ralph-ready (agent:NAME chooses another agent)")
    return Check(NAME, "note", f"not ready: {lacking.name}: {lacking.found}", lacking.mend)


def _lacking(settings: Config, found: Sequence[Check]) -> Iterator[Check]:
    kind = _kind(settings)
    if not kind:
        yield Check("agent", "wrong", "none is named", "hands: {agent: {kind: claude}} in ralph.yml")
    if kind == "command" and (program := _program(settings)) and not shutil.which(program):
        yield Check("agent command", "wrong", f"{program} is not installed", "install it, or change ralph.yml")
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
