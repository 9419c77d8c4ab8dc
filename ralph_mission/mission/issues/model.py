"""The words that the issue agent is described in: labels, what a try comes to, what people said. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ralph_mission.mission.model.threads import Actor, Issue, ThreadComment
from ralph_mission.safety.patch import Patch

READY, WORKING, FAILED = "ralph-ready", "ralph-working", "ralph-failed"
AGENT = "agent:"
"""Before the name of an agent: a label that asks for work as `ralph-ready` does, by that agent. Only people set it."""
TRIES = 2
SPARED = 5
"""So many tries on one issue do not count when the agent could not be reached: more would be a bad key for ever."""


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What came of the agent's loop: exit code, why it ended, the change, its last words, what it learned."""

    code: int
    reason: str
    patch: Patch | None = None
    words: str = ""
    learned: tuple[str, ...] = ()
    sessions: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    run_id: str = ""
    away: bool = False  # the agent could not be reached: no fault of the issue's


@dataclass(frozen=True, slots=True)
class GuidanceNote:
    """What a person says to the next session, once. `said_at`: of a comment, by the forge's clock; else `id`."""

    who: str
    text: str
    said_at: datetime | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class WorkTask:
    """An issue that may be worked on, with what of it authorised people wrote, and the label by which it is asked for.

    `others` are labels that ask for it too. `words` are guidance that no try was given yet. `altered` are the authors
    of what is left out, since somebody may have changed it.
    """

    issue: Issue
    remarks: tuple[ThreadComment, ...]
    call: str = READY
    others: tuple[str, ...] = ()
    words: tuple[GuidanceNote, ...] = ()
    altered: tuple[Actor, ...] = ()

    @property
    def agent(self) -> str:
        """The agent that the label names, "" when any will do."""
        return agent_of(self.call)


def agent_of(label: str) -> str:
    """ "claude" for `agent:claude`; "" for a label that names no agent."""
    name = label.casefold()
    return name.removeprefix(AGENT) if name.startswith(AGENT) else ""
