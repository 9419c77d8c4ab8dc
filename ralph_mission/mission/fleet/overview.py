"""What one page tells of a whole fleet, from the same scan that the plan rests on. Pure; nothing else is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import FleetPlan, RepositoryHeader
from ralph_mission.mission.fleet.terms import count_verdicts
from ralph_mission.mission.lifecycle.waiting import CLOSES_BY_ITSELF, WAITS_FOR_AGENT
from ralph_mission.mission.memory.text import parse_sections
from ralph_mission.mission.model.memory import Memory, MissionNote
from ralph_mission.mission.model.mission import Acceptance, Status
from ralph_mission.values import dataclass

LATE = timedelta(minutes=30)  # two scans
WEEK = timedelta(days=7)


class FleetStanding(StrEnum):
    """How one repository stands, the one that needs a look first."""

    FAILING = "failing"
    LATE = "late"
    DUE = "due"
    NEW = "new"
    QUIET = "waits"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One repository. `note`: why it is failing or held. `done`: missions that ended within a week."""

    name: str
    standing: FleetStanding
    note: str = ""
    cycle: int = 0
    next_due_at: datetime | None = None
    late: timedelta = timedelta(0)
    urgency: str = ""
    missions: int = 0
    waiting: int = 0
    done: int = 0
    spent_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class FleetAsk:
    """What waits for a person: `who` is a login, "" for whoever may decide there."""

    who: str
    repository: str
    what: str  # review | answer | decide
    title: str
    number: int
    pull: bool = False


@dataclass(frozen=True, slots=True)
class FleetDeed:
    """A mission that ended within a week."""

    date: str  # YYYY-MM-DD
    repository: str
    title: str
    outcome: str


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """All of it. Rows stand worst first, asks by person, deeds newest first; money is today's, in USD."""

    made_at: datetime
    rows: tuple[FleetRow, ...]
    asks: tuple[FleetAsk, ...]
    deeds: tuple[FleetDeed, ...]
    verdicts: Mapping[str, Acceptance] = field(default_factory=lambda: MappingProxyType({}))
    usd_limit: float | None = None

    @property
    def spent_usd(self) -> float:
        """By all repositories, today."""
        return sum(row.spent_usd for row in self.rows)

    def count(self, *standings: FleetStanding) -> int:
        """Repositories that stand so."""
        return sum(row.standing in standings for row in self.rows)


def look_over(
    headers: Iterable[RepositoryHeader], plan: FleetPlan, now: datetime, usd_limit: float | None = None
) -> FleetOverview:
    """The overview of one scan and what was planned on it."""
    headers = tuple(headers)
    failing = {one.name: one.reason for one in plan.failing}
    held = {one.name: one.reason for one in plan.held}
    due = {one.name: timedelta(seconds=one.late_seconds) for one in plan.starts}
    rows: list[FleetRow] = []
    asks: list[FleetAsk] = []
    deeds: list[FleetDeed] = []
    for header in headers:
        try:
            memory = parse_sections(header.text) if header.text else Memory()
        except UserError as error:
            memory = Memory()
            failing.setdefault(header.name, f"its {error.what}")
        waits = tuple(_asks(header, memory.active))
        done = tuple(_deeds(header.name, memory, now))
        standing = _standing(header, header.name in failing, due, now)
        late = max(due.get(header.name, timedelta(0)), _overdue(header, now))
        rows.append(
            FleetRow(
                header.name,
                standing,
                failing.get(header.name) or held.get(header.name, ""),
                header.cycle,
                header.next_due_at,
                late if standing is not FleetStanding.PAUSED else timedelta(0),
                header.urgency.value if header.has_memory else "",
                len(memory.active),
                len({one.number for one in waits}),
                len(done),
                header.spent_usd,
            )
        )
        asks += waits
        deeds += done
    order = list(FleetStanding)
    return FleetOverview(
        now,
        tuple(sorted(rows, key=lambda row: (order.index(row.standing), -row.late, -row.waiting, row.name))),
        tuple(sorted(asks, key=lambda one: (not one.who, one.who, one.repository, one.number))),
        tuple(
            sorted(sorted(deeds, key=lambda one: (one.repository, one.title)), key=lambda one: one.date, reverse=True)
        ),
        count_verdicts(headers).total,
        usd_limit,
    )


def _overdue(header: RepositoryHeader, now: datetime) -> timedelta:
    return max(now - header.next_due_at, timedelta(0)) if header.next_due_at else timedelta(0)


def _standing(header: RepositoryHeader, failing: bool, due: Mapping[str, timedelta], now: datetime) -> FleetStanding:
    if failing:
        return FleetStanding.FAILING
    if header.paused:
        return FleetStanding.PAUSED
    if not header.has_memory:
        return FleetStanding.NEW
    if _overdue(header, now) > LATE:
        return FleetStanding.LATE
    is_due = header.name in due or (header.next_due_at is not None and header.next_due_at <= now)
    return FleetStanding.DUE if is_due else FleetStanding.QUIET


def _asks(header: RepositoryHeader, missions: Sequence[MissionNote]) -> Iterator[FleetAsk]:
    assigned = {thread.number: thread.waits_for for thread in header.threads}
    for note in missions:
        what = _what_waits(note)
        if what:
            number = note.pull if what == "review" else note.issue or note.pull
            people = dict.fromkeys((*assigned.get(note.pull, ()), *assigned.get(note.issue, ())))
            for who in people or ("",):
                yield FleetAsk(who, header.name, what, note.title, number, number == note.pull)


def _what_waits(note: MissionNote) -> str:
    """What a mission wants of a person; "" where it wants nothing."""
    if note.status is Status.IN_REVIEW and note.pull:
        return "review"
    if note.status is Status.DISCOVERED and note.issue and note.next_step != CLOSES_BY_ITSELF:
        return "answer"
    stuck = note.status in (Status.PLANNED, Status.ESCALATED) and note.next_step != WAITS_FOR_AGENT
    return "decide" if stuck and (note.issue or note.pull) else ""


def _deeds(name: str, memory: Memory, now: datetime) -> Iterator[FleetDeed]:
    since = (now - WEEK).date().isoformat()
    for note in memory.completed:
        if note.date >= since:
            yield FleetDeed(note.date, name, note.title, note.outcome)
