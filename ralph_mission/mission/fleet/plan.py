"""A fleet's due repositories, their order and budget, and its overview. Pure: the scan and the time are arguments.

The order is by urgency, and the longest overdue first within it; urgency rises with hours of waiting, so none starves.
A start is booked before it happens, with all that it may cost, and the booking ends when memory shows the cycle's end:
two gates that overlap start nothing twice, and a job that dies is started again after its time, then ever later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from types import MappingProxyType
from typing import TypeVar

from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import (
    SHARD,
    Booking,
    DailyBudget,
    FleetLimits,
    FleetPlan,
    FleetStart,
    FleetState,
    HeldRepository,
    RateLimit,
    RepositoryHeader,
    count_verdicts,
)
from ralph_mission.mission.lifecycle.waiting import UNASKED, WAITS_FOR_AGENT, is_stuck
from ralph_mission.mission.memory.schedule import SLACK
from ralph_mission.mission.memory.text import parse_sections
from ralph_mission.mission.model.memory import Memory, MissionNote
from ralph_mission.mission.model.mission import Acceptance, Limits, Status, Urgency
from ralph_mission.values import dataclass
from ralph_mission.words import stamp

RANKS = {Urgency.LOW: 0, Urgency.MEDIUM: 1, Urgency.HIGH: 2}
SPOKE = 3  # above every urgency: a person waits
RISES = timedelta(hours=2)  # of being late lift a repository by one rank, as far as that of people: none starves
FURTHEST = timedelta(days=366)  # ahead that any settings may put the next cycle; beyond it a wrong clock did
SOON = timedelta(seconds=75)  # before its time: a job needs 20 s to begin, and its own gate waits a minute (`cli.gate`)
WAVES = 2  # of jobs for each place that is free: one runs, one waits for it
QUEUED = timedelta(minutes=10)  # that a job may wait for a runner, beyond the wave before it
REST = (timedelta(0), timedelta(hours=1), timedelta(hours=6))  # before the next try, by tries of which nothing came
UNLISTED = timedelta(days=7)  # that one which is listed no more is a line
LISTS = ("org:", "topic:")  # the names of lists that could not be read
REQUESTS = (
    13  # of a cycle that count at GitHub: 10 of an idle one without a kept clone, 13 where missions wait, measured
)
ONBOARDING_REASONS = {
    "open": "waits for somebody to merge the pull request that turns it on",
    "closed": "its people closed the pull request that turns it on, and are not asked again",
}
GONE = "GitHub no longer lists it (transferred, deleted, or taken out of the app or of fleet.yml)"
CYCLE_USD = Limits().usd_per_cycle  # what one cycle can spend at most


T = TypeVar("T")
ASKING = "Configure Ralph"  # the title of the pull request that asks whether to look after a repository
LATE = timedelta(minutes=30)  # two scans
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class _Due:
    """A repository to start, and its urgency."""

    header: RepositoryHeader
    since: datetime
    spoke: bool
    late: timedelta
    tries: int
    rank: int

    @property
    def order(self) -> tuple[int, datetime, str]:
        return -self.rank, self.since, self.header.name


def plan_fleet(
    headers: Iterable[RepositoryHeader],
    limits: FleetLimits,
    state: FleetState,
    now: datetime,
    rate: RateLimit | None = None,
) -> FleetPlan:
    """The plan. `rate`: of the account that all jobs share; None if unknown."""
    headers = sorted(headers, key=lambda one: one.name)
    state = settle_bookings(_follow(state, headers, now), headers, now)
    onboarding = [one for one in headers if limits.onboard and _is_asked(one)]
    due, waiting, failing = _sort_out([one for one in headers if one not in onboarding], state, now)
    failing += [HeldRepository(name, f"{GONE} since {at:%Y-%m-%d}") for name, at in sorted(state.unlisted.items())]
    waiting += [HeldRepository(one.name, ONBOARDING_REASONS[one.onboarding]) for one in onboarding]
    budget = _compute_budget(headers, limits, state, now, rate)
    starts, bookings = [], dict(state.bookings)
    for one in sorted(due, key=lambda each: each.order):
        start = budget.take(one)
        if isinstance(start, str):
            waiting.append(HeldRepository(one.header.name, start))
            continue
        onboard = limits.onboard and _is_stranger(one.header)
        starts.append(replace(start, onboard=onboard))
        bookings[one.header.name] = _book(start, one, state, now)
    free = max(1, limits.parallel - state.under_way)
    return FleetPlan(tuple(starts), tuple(waiting), tuple(failing), replace(state, bookings=bookings), free)


def _follow(state: FleetState, headers: Iterable[RepositoryHeader], now: datetime) -> FleetState:
    """The state by the names of now. One that was renamed keeps what was booked and used; one that left is noted."""
    headers = tuple(headers)
    named = {one.id: one.name for one in headers if one.id}
    names = {old: named.get(number, old) for old, number in state.ids.items()}

    def renamed(by_name: Mapping[str, T]) -> dict[str, T]:
        return {names.get(name, name): value for name, value in by_name.items()}

    ids = renamed(state.ids)
    listed = {one.name for one in headers}
    unlisted = {name: at for name, at in state.unlisted.items() if name not in listed and now - at < UNLISTED}
    if not any(name.startswith(LISTS) for name in listed):
        unlisted |= {name: now for name in ids if name not in listed}
        ids = {name: number for name, number in ids.items() if name in listed}
    ids |= {one.name: one.id for one in headers if one.id}
    return FleetState(
        state.day,
        renamed(state.minutes),
        renamed(state.bookings),
        renamed(state.new),
        renamed(state.usd),
        renamed(state.pulls),
        ids,
        unlisted,
    )


def settle_bookings(state: FleetState, headers: Iterable[RepositoryHeader], now: datetime) -> FleetState:
    """The state with what the scan shows to be over: its minutes are counted, up to the commit that ended it.

    A job that vanished without an end counts with all its minutes. Its money is in memory, reserved there before it is
    spent; if memory cannot be read, all that was booked counts. A new day starts at zero.
    """
    day = now.date().isoformat()
    if state.day != day:
        state = replace(state, minutes={}, usd={}, pulls={})
    minutes, usd, pulls = dict(state.minutes), dict(state.usd), dict(state.pulls)
    known = {one.name: one for one in headers}
    bookings = {}
    for name, booking in state.bookings.items():
        header = known.get(name, RepositoryHeader(name, "it was not found"))
        ended = (header.cycle > booking.cycle and header.moved_at is not None) or _is_asked(header)
        if ended or (booking.minutes and now >= _gone_at(booking)):
            took = math.ceil((header.moved_at - booking.at).total_seconds() / 60) if ended and header.moved_at else 0
            used = min(max(1, took), booking.minutes) if ended else booking.minutes
            minutes[name] = minutes.get(name, 0) + used
            if header.failure:
                usd[name], pulls[name] = max(usd.get(name, 0.0), booking.usd), max(pulls.get(name, 0), booking.pulls)
            booking = replace(booking, minutes=0, usd=0.0, pulls=0)
        if not ended and (name in known or booking.minutes):  # else it is no longer one of ours
            bookings[name] = booking
    for one in known.values():
        if one.spent_usd > usd.get(one.name, 0.0) and not (one.name in bookings and bookings[one.name].minutes):
            usd[one.name] = one.spent_usd  # what is under way gives back what it reserved and does not use
        if (opened := count_pulls(one, now)) > pulls.get(one.name, 0):
            pulls[one.name] = opened
    new = {one.name: state.new.get(one.name, now) for one in known.values() if not (one.has_memory or one.failure)}
    return FleetState(day, minutes, bookings, new, usd, pulls, state.ids, state.unlisted)


def _is_stranger(header: RepositoryHeader) -> bool:
    """Whether nothing there ever enabled Ralph."""
    return not (header.has_settings or header.has_memory or header.failure) and header.onboarding != "merged"


def _is_asked(header: RepositoryHeader) -> bool:
    return _is_stranger(header) and header.onboarding in ONBOARDING_REASONS


def when_spoken(header: RepositoryHeader) -> datetime | None:
    """The first change of our threads since the last cycle began, or None.

    A cycle's own writes look the same: they cause one more cycle, which writes nothing. So no comment made during a
    cycle is lost.
    """
    since = header.last_cycle_at
    return min((one.updated_at for one in header.threads if since and one.updated_at > since), default=None)


def count_pulls(header: RepositoryHeader, now: datetime) -> int:
    """Our pull requests opened there today."""
    return sum(thread.pull and thread.created_at.date() == now.date() for thread in header.threads)


def _gone_at(booking: Booking) -> datetime:
    return booking.at + WAVES * timedelta(minutes=booking.minutes) + QUEUED


def _sort_out(
    headers: Iterable[RepositoryHeader], state: FleetState, now: datetime
) -> tuple[list[_Due], list[HeldRepository], list[HeldRepository]]:
    due: list[_Due] = []
    waiting: list[HeldRepository] = []
    failing: list[HeldRepository] = []
    for header in headers:
        if header.failure:
            failing.append(HeldRepository(header.name, header.failure))
            continue
        booking = state.bookings.get(header.name)
        found = _when_due(header, state, now)
        if booking and not booking.minutes:
            again = f"{booking.tries} {'starts' if booking.tries > 1 else 'start'} in a row without a result"
            failing.append(HeldRepository(header.name, f"{again}, the last at {stamp(booking.at)}"))
        if found is None:
            continue
        if booking and booking.minutes:
            waiting.append(HeldRepository(header.name, f"started at {booking.at:%H:%M} UTC, and not over yet"))
        elif booking and now < booking.at + REST[min(booking.tries, len(REST)) - 1]:
            waiting.append(HeldRepository(header.name, "waits before it is tried again"))
        else:
            due.append(replace(found, tries=booking.tries + 1 if booking else 1))
    return due, waiting, failing


def _when_due(header: RepositoryHeader, state: FleetState, now: datetime) -> _Due | None:
    if header.paused:
        return None
    requested_at = when_spoken(header)
    planned = header.next_due_at if header.has_memory else state.new.get(header.name, now)
    if planned is None or planned - now > FURTHEST or (header.last_cycle_at or now) - now > SLACK:
        planned = min(header.last_cycle_at or now, now)
    late = max(now - planned, timedelta(0))
    if planned <= now + SOON:
        risen = RANKS[header.urgency] + late // RISES
        rank = SPOKE if requested_at else min(risen, SPOKE)
        return _Due(header, min(planned, requested_at or planned), False, late, 1, rank)
    return _Due(header, requested_at, True, max(now - requested_at, timedelta(0)), 1, SPOKE) if requested_at else None


# --- Budgets. What is under way counts with all that it may still cost.


@dataclass(frozen=True, slots=True)
class _Left:
    """What one repository, or the fleet, may still use today."""

    usd: float
    pulls: float
    minutes: float


class _RemainingBudget:
    """The remaining budgets while planning starts."""

    def __init__(self, limits: FleetLimits, fleet: _Left, each: Mapping[str, _Left], starts: int, jobs: float) -> None:
        self._limits, self._each = limits, each
        self._usd, self._pulls, self._minutes, self._jobs = fleet.usd, fleet.pulls, fleet.minutes, jobs
        self._starts = starts

    def take(self, due: _Due) -> FleetStart | str:
        """A start with its allowances, or the reason against one now."""
        allowance, minutes = self._each[due.header.name], self._limits.job_minutes
        if self._starts < 1:
            return "so many are due that it waits for the next scan"
        if self._jobs < 1:
            return "the hour's requests to GitHub are used up"
        if min(self._minutes, allowance.minutes) < minutes:
            scope = "the fleet" if self._minutes < allowance.minutes else "this repository"
            return f"today's minutes of {scope} are used up"
        usd = max(0.0, min(allowance.usd, self._usd, CYCLE_USD))
        pulls = min(allowance.pulls, self._pulls) >= 1
        self._starts, self._jobs = self._starts - 1, self._jobs - 1
        self._minutes, self._usd, self._pulls = self._minutes - minutes, self._usd - usd, self._pulls - pulls
        bounded = not (self._limits.each.usd is None and self._limits.fleet.usd is None)
        cap = round(due.header.spent_usd + usd, 6) if bounded else None
        late = int(due.late.total_seconds())
        return FleetStart(due.header.name, late, due.header.urgency, due.spoke, cap, pulls, minutes)


def _compute_budget(
    headers: Iterable[RepositoryHeader],
    limits: FleetLimits,
    state: FleetState,
    now: datetime,
    rate: RateLimit | None,
) -> _RemainingBudget:
    each, usd, pulls = {}, 0.0, 0.0
    spends = {one.name: one.spent_usd for one in headers}
    # One that cannot be read any more, or left the fleet, has used what it used all the same.
    for name in {*spends, *state.bookings, *state.usd, *state.pulls}:
        booking = state.bookings.get(name, Booking(now))
        spent = max(spends.get(name, 0.0), state.usd.get(name, 0.0), booking.usd)
        may_open = max(state.pulls.get(name, 0), booking.pulls)
        used = state.minutes.get(name, 0) + booking.minutes
        usd, pulls = usd + spent, pulls + may_open
        each[name] = _left(limits.each, spent, may_open, used)
    minutes = sum(state.minutes.values()) + sum(one.minutes for one in state.bookings.values())
    jobs = math.inf
    if rate is not None:  # of those under way the requests may be still to come
        jobs = (rate.left - rate.limit * limits.reserve) // REQUESTS - state.under_way
    starts = min(SHARD, WAVES * (limits.parallel - state.under_way))
    return _RemainingBudget(limits, _left(limits.fleet, usd, pulls, minutes), each, starts, jobs)


def _left(budget: DailyBudget, usd: float, pulls: float, minutes: float) -> _Left:
    return _Left(
        math.inf if budget.usd is None else budget.usd - usd,
        math.inf if budget.pulls is None else budget.pulls - pulls,
        math.inf if budget.minutes is None else budget.minutes - minutes,
    )


def _book(start: FleetStart, due: _Due, state: FleetState, now: datetime) -> Booking:
    header = due.header
    forgotten = max(0.0, state.usd.get(header.name, 0.0) - header.spent_usd)  # by memory
    return Booking(
        at=now,
        cycle=header.cycle,
        tries=due.tries,
        usd=0.0 if start.usd_per_day is None else start.usd_per_day + forgotten,
        pulls=state.pulls.get(header.name, 0) + start.pulls,
        minutes=start.minutes,
    )


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
    reasons = {one.name: one.reason for one in (*plan.waiting, *plan.failing)}
    failing = {one.name for one in plan.failing}
    due = {start.name for start in plan.starts} | {one.name for one in plan.waiting}
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
