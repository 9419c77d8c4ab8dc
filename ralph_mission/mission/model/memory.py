"""The memory file as a value: what machines need in front matter, what people read below it.

`render_memory` writes it as the file and `parse_memory` reads it back without loss; what a person wrote under
Learnings and Do Not Repeat survives byte for byte.
"""

from __future__ import annotations

from datetime import datetime

from ralph_mission.mission.model.mission import Status, Urgency
from ralph_mission.values import dataclass

SCHEMA = 1
KEEP_COMPLETED = 10  # the original specification: "Completed Missions (last 10)"
KEEP_ISSUES = 10
KEEP_OBSERVATIONS = 5  # the original specification: "Observations Log (last 5 cycles)"


@dataclass(frozen=True, slots=True)
class Header:
    """Front matter: for machines. Money and dispatches are those of the day `today`.

    `dispatches` counts the due times that were granted their one wake, by any sender; `wake`: whether the
    present one was (`count_granted_wakes`).
    """

    schema: int = SCHEMA
    lineage: str = ""
    serial: int = 0
    cycle: int = 0
    generation: int = 0
    next_due_at: datetime | None = None
    urgency: Urgency = Urgency.LOW
    paused: bool = False
    today: str = ""  # YYYY-MM-DD
    spend_usd: float = 0.0
    dispatches: int = 0
    wake: bool = True
    last_cycle_at: datetime | None = None
    high_streak: int = 0  # cycles in a row with something of high severity since the last new one
    high_cause: str = ""  # that finding's fingerprint
    drift_seconds: int = 0  # started minus due, of the last cycle
    cursors: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MissionNote:
    """An active mission as people read it."""

    id: int
    title: str
    status: Status
    issue: int = 0
    pull: int = 0
    started_cycle: int = 0
    last_action: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class CompletedNote:
    """A finished mission: `outcome` is merged, published, rejected, done by a person, …"""

    date: str  # YYYY-MM-DD
    title: str
    cycles: int
    outcome: str
    learning: str = ""


@dataclass(frozen=True, slots=True)
class CycleNote:
    """One cycle in the observations log."""

    cycle: int
    at: datetime  # to the minute
    observed: tuple[str, ...]
    actions: tuple[str, ...]
    urgency: Urgency
    next_cycle: str  # "6h", "1h", "15min" or as configured; "1h (at once: work is ready)"


@dataclass(frozen=True, slots=True)
class IssueNote:
    """An issue that an agent works or worked on. `state`: working, waiting (for a second try), failed or done."""

    issue: int
    title: str
    state: str
    tries: int
    pull: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """The whole file. `learnings` and `do_not_repeat` are people's; `measured` is ours.

    `completed` and `observations` stand newest first. People's sections hold every character
    between the lines that bound them, the blank line below a heading included.
    """

    header: Header = Header()
    active: tuple[MissionNote, ...] = ()
    completed: tuple[CompletedNote, ...] = ()
    observations: tuple[CycleNote, ...] = ()
    issues: tuple[IssueNote, ...] = ()  # newest first; the file has the section only when there are some
    learnings: str = ""
    measured: tuple[str, ...] = ()
    do_not_repeat: str = ""
