"""A fleet's due repositories, their order and budget. Pure: the scan and the time are arguments.

The order is by urgency, and the longest overdue first within it; urgency rises with hours of waiting, so none starves.
A start is booked before it happens, with all that it may cost, and the booking ends when memory shows the cycle's end:
two gates that overlap start nothing twice, and a job that dies is started again after its time, then ever later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

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
)
from ralph_mission.mission.memory.schedule import SLACK
from ralph_mission.mission.model.mission import Limits, Urgency
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
ASKED = {
    "open": "waits for somebody to merge the pull request that turns it on",
    "closed": "its people closed the pull request that turns it on, and are not asked again",
}
GONE = "GitHub no longer lists it (transferred, deleted, or taken out of the app or of fleet.yml)"
CYCLE_USD = Limits().usd_per_cycle  # what one cycle can spend at most


T = TypeVar("T")


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
    waiting += [HeldRepository(one.name, ASKED[one.onboarding]) for one in onboarding]
    purse = _open_purse(headers, limits, state, now, rate)
    starts, bookings = [], dict(state.bookings)
    for one in sorted(due, key=lambda each: each.order):
        start = purse.take(one)
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
    return _is_stranger(header) and header.onboarding in ASKED


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


class _Purse:
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


def _open_purse(
    headers: Iterable[RepositoryHeader],
    limits: FleetLimits,
    state: FleetState,
    now: datetime,
    rate: RateLimit | None,
) -> _Purse:
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
    return _Purse(limits, _left(limits.fleet, usd, pulls, minutes), each, starts, jobs)


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
