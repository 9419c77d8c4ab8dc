"""The overview of a fleet, from the plan's scan. Pure, without further requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from types import MappingProxyType

from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import FleetPlan, RepositoryHeader, count_verdicts
from ralph_mission.mission.lifecycle.waiting import UNASKED, WAITS_FOR_AGENT, is_stuck
from ralph_mission.mission.memory.text import parse_sections
from ralph_mission.mission.model.memory import Memory, MissionNote
from ralph_mission.mission.model.mission import Acceptance, Status
from ralph_mission.values import dataclass

ASKING = "Configure Ralph"  # the title of the pull request that asks whether to look after a repository
LATE = timedelta(minutes=30)  # two scans
WEEK = timedelta(days=7)


class FleetStanding(StrEnum):
    """A repository's state, the most urgent first."""

    FAILING = "failing"
    LATE = "late"
    DUE = "due"
    NEW = "new"
    ON_TIME = "on time"
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
    missions: int = 0
    waiting: int = 0
    done: int = 0
    spent_usd: float = 0.0
    due: bool = False  # a cycle is to begin, whatever it waits for


@dataclass(frozen=True, slots=True)
class FleetAsk:
    """An item that waits for a person: `who`: a login, "" for any authorised person."""

    who: str
    repository: str
    what: str  # review | answer | decide | read
    title: str
    number: int
    pull: bool = False


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A mission that ended within a week."""

    date: str  # YYYY-MM-DD
    repository: str
    title: str
    outcome: str


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """The overview. Rows are worst first, asks by person, results newest first; money is today's, in USD."""

    made_at: datetime
    rows: tuple[FleetRow, ...]
    asks: tuple[FleetAsk, ...]
    results: tuple[FleetResult, ...]
    verdicts: Mapping[str, Acceptance] = field(default_factory=lambda: MappingProxyType({}))
    usd_limit: float | None = None
    server: str = ""

    @property
    def spent_usd(self) -> float:
        """By all repositories, today."""
        return sum(row.spent_usd for row in self.rows)

    def people(self) -> Iterator[tuple[str, tuple[FleetAsk, ...]]]:
        """Each person, "" for any authorised one, and the items that wait for them."""
        for who, asks in groupby(self.asks, key=lambda one: one.who):
            yield who, tuple(asks)

    def address(self, repository: str, number: int = 0) -> str:
        """The URL of a repository's page, or of an issue or pull request there, or ""."""
        if not self.server:
            return ""
        return f"{self.server}/{repository}{f'/issues/{number}' if number else ''}"

    def count(self, *standings: FleetStanding) -> int:
        """Repositories that stand so."""
        return sum(row.standing in standings for row in self.rows)


def look_over(
    headers: Iterable[RepositoryHeader],
    plan: FleetPlan,
    now: datetime,
    usd_limit: float | None = None,
    server: str = "",
) -> FleetOverview:
    """The overview of a scan and its plan. `server`: the link target of repository names, or ""."""
    known = {one.name: one for one in headers}
    headers = (*known.values(), *(RepositoryHeader(one.name) for one in plan.failing if one.name not in known))
    reasons = {one.name: one.reason for one in (*plan.held, *plan.failing)}
    failing = {one.name for one in plan.failing}
    due = {start.name for start in plan.starts} | {one.name for one in plan.held}
    looks = [
        _look(header, header.name in failing, header.name in due, reasons.get(header.name, ""), now)
        for header in headers
    ]
    order = list(FleetStanding)
    asks = (one for look in looks for one in look.asks)
    results = (one for look in looks for one in look.results)
    return FleetOverview(
        now,
        tuple(sorted((look.row for look in looks), key=lambda row: (order.index(row.standing), -row.late, row.name))),
        tuple(sorted(asks, key=lambda one: (not one.who, one.who, one.repository, one.number))),
        tuple(sorted(results, key=lambda one: (one.date, one.repository, one.title), reverse=True)),
        count_verdicts(headers).total,
        usd_limit,
        server,
    )


@dataclass(frozen=True, slots=True)
class _RepositorySummary:
    """A repository's part of the page."""

    row: FleetRow
    asks: tuple[FleetAsk, ...]
    results: tuple[FleetResult, ...]


def _look(header: RepositoryHeader, failing: bool, due: bool, note: str, now: datetime) -> _RepositorySummary:
    try:
        memory = parse_sections(header.text) if header.text else Memory()
    except UserError as error:
        memory, failing, note = Memory(), True, error.what
    asks, results = tuple(_asks(header, memory.active)), tuple(_results(header.name, memory, now))
    onboarding = not header.has_memory and header.onboarding in ("open", "closed")  # held, and not due
    due = (due or _overdue(header, now) > timedelta(0)) and not (failing or header.paused or onboarding)
    status = _standing(header, failing, due, now)
    row = FleetRow(
        name=header.name,
        standing=status,
        note=note,
        cycle=header.cycle,
        next_due_at=header.next_due_at,
        late=_overdue(header, now) if status in (FleetStanding.DUE, FleetStanding.LATE) else timedelta(0),
        missions=len(memory.active),
        waiting=len({(one.pull, one.number) for one in asks}),
        done=len(results),
        spent_usd=header.spent_usd,
        due=due,
    )
    return _RepositorySummary(row, asks, results)


def _standing(header: RepositoryHeader, failing: bool, due: bool, now: datetime) -> FleetStanding:
    if failing:
        return FleetStanding.FAILING
    if header.paused:
        return FleetStanding.PAUSED
    if not header.has_memory:
        return FleetStanding.NEW
    if _overdue(header, now) > LATE:
        return FleetStanding.LATE
    return FleetStanding.DUE if due else FleetStanding.ON_TIME


def _overdue(header: RepositoryHeader, now: datetime) -> timedelta:
    return max(now - header.next_due_at, timedelta(0)) if header.next_due_at else timedelta(0)


def _asks(header: RepositoryHeader, missions: Sequence[MissionNote]) -> Iterator[FleetAsk]:
    assigned = {thread.number: thread.waits_for for thread in header.threads}
    if header.onboarding == "open" and not header.has_memory:
        number = header.onboarding_pull
        for who in assigned.get(number) or ("",):
            yield FleetAsk(who, header.name, "review", ASKING, number, True)
    for note in missions:
        what = _what_waits(note)
        if what:
            number = note.pull if what == "review" else note.issue or note.pull
            people = dict.fromkeys((*assigned.get(note.pull, ()), *assigned.get(note.issue, ())))
            for who in people or ("",):
                yield FleetAsk(who, header.name, what, note.title, number, number == note.pull)


def _what_waits(note: MissionNote) -> str:
    """A mission's request to a person, or "": by the rule of `find_waiting`, as far as the memory file tells."""
    if note.status is Status.IN_REVIEW and note.pull:
        return "review"
    if note.next_step == WAITS_FOR_AGENT:
        return ""
    if note.status is Status.DISCOVERED and note.issue:
        return "read" if note.next_step in UNASKED else "answer"
    return "decide" if is_stuck(note.status, note.next_step) and (note.issue or note.pull) else ""


def _results(name: str, memory: Memory, now: datetime) -> Iterator[FleetResult]:
    since = (now - WEEK).date().isoformat()
    for note in memory.completed:
        if note.date >= since:
            yield FleetResult(note.date, name, note.title, note.outcome)
