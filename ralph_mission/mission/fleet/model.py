"""The models of a fleet: a scan's data about each repository, the budgets, and starts.

Money is in USD, runner time in minutes; both are counted by the day in UTC, as memory does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Urgency
from ralph_mission.values import dataclass

SCHEMA = 1  # of `FleetState` as JSON
CONFIGURE = "ralph/configure"  # the branch of the pull request that asks whether to look after a repository
SHARD = 256  # jobs of one matrix: GitHub's limit, and so what one plan starts at most


@dataclass(frozen=True, slots=True)
class FleetThread:
    """Our issue or pull request, from the scan; `waits_for`: those who are assigned, or asked for a review."""

    number: int
    title: str
    updated_at: datetime
    created_at: datetime
    pull: bool = False
    is_open: bool = True
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryHeader:
    """A repository in a scan: its memory's header, and our threads there.

    `name` is owner/name, or a folder for a fleet of this machine. `failure`: why nothing can be done there, in one line
    (archived, gone, forbidden); then all other fields except the name are empty. `has_memory`: whether a cycle ever
    ran. `moved_at`: when memory last moved. `spent_usd` and `cycle` are memory's own; `text` is the whole memory file.
    `has_settings`: whether its default branch has a `ralph.yml`; `onboarding`: how the pull request that brings one
    stands (open, closed, merged, or "" for none). `id`: GitHub's number, which stays when the name changes; 0: unknown.
    """

    name: str
    failure: str = ""
    has_memory: bool = False
    has_settings: bool = True
    onboarding: str = ""
    onboarding_pull: int = 0  # its number
    next_due_at: datetime | None = None
    urgency: Urgency = Urgency.LOW
    paused: bool = False
    cycle: int = 0
    last_cycle_at: datetime | None = None
    moved_at: datetime | None = None
    spent_usd: float = 0.0  # today
    threads: tuple[FleetThread, ...] = ()
    text: str = field(default="", repr=False)
    id: int = 0


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """A day's maximum; None: no limit by the fleet. `pulls`: pull requests opened unasked."""

    usd: float | None = None
    pulls: int | None = None
    minutes: int | None = None


@dataclass(frozen=True, slots=True)
class FleetLimits:
    """What the plan keeps to: the fleet's budget and each repository's, the minutes after which a job is ended, how
    many run at a time, and the share of the requests an hour that is left to others."""

    fleet: DailyBudget = DailyBudget()
    each: DailyBudget = DailyBudget()
    job_minutes: int = 45
    parallel: int = 20
    reserve: float = 0.8
    onboard: bool = False  # a repository that has neither settings nor memory is asked first


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A GitHub account's requests per hour, and the remaining ones."""

    limit: int
    left: int


@dataclass(frozen=True, slots=True)
class Booking:
    """A start whose end is not seen so far. `cycle`: memory's number at the start: a higher one is the end.

    `usd` and `pulls` are what the repository may have reached by then today, what it had before included; `minutes` is
    what its job may take. `tries` counts the starts in a row of which nothing came.
    """

    at: datetime
    cycle: int = 0
    tries: int = 1
    usd: float = 0.0
    pulls: int = 0
    minutes: int = 0


@dataclass(frozen=True, slots=True)
class FleetState:
    """What the fleet remembers between two scans. By repository: `minutes` used today, the most `usd` and `pulls` that
    today showed there, which count even when it cannot be read any more; since when one without memory is `new`;
    GitHub's `ids`; since when one that was listed is `unlisted`."""

    day: str = ""  # YYYY-MM-DD
    minutes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    bookings: Mapping[str, Booking] = field(default_factory=lambda: MappingProxyType({}))
    new: Mapping[str, datetime] = field(default_factory=lambda: MappingProxyType({}))
    usd: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    pulls: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    ids: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    unlisted: Mapping[str, datetime] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def under_way(self) -> int:
        """Jobs that were started and not seen to end."""
        return sum(one.minutes > 0 for one in self.bookings.values())


@dataclass(frozen=True, slots=True)
class FleetStart:
    """A job to start. `usd_per_day` and `pulls` bound what it does (None: the repository's own limits alone): the USD
    that its day may have cost when it ends, and whether it may open anything unasked. `spoke`: a person did, so a cycle
    before its time acts on their words alone. `onboard`: nothing but the question whether to look after it."""

    name: str
    late_seconds: int
    urgency: Urgency
    spoke: bool = False
    usd_per_day: float | None = None
    pulls: bool = True
    minutes: int = 0
    onboard: bool = False


@dataclass(frozen=True, slots=True)
class HeldRepository:
    """A repository that is not started now, or cannot be; `reason`: one line for people."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A scan's plan. `state` includes the booked starts: it is stored before anything starts. `parallel`: how many may
    run at a time, beside those under way."""

    starts: tuple[FleetStart, ...]
    held: tuple[HeldRepository, ...]
    failing: tuple[HeldRepository, ...]
    state: FleetState
    parallel: int = 1


def render_state(state: FleetState) -> str:
    """The state as JSON, one repository a line; `parse_state` reads it back."""
    bookings = {name: _booked(one) for name, one in sorted(state.bookings.items())}
    new, unlisted = ({name: at.isoformat() for name, at in sorted(one.items())} for one in (state.new, state.unlisted))
    fields: dict[str, Any] = {"schema": SCHEMA, "day": state.day, "minutes": dict(sorted(state.minutes.items()))}
    fields |= {"usd": dict(sorted(state.usd.items())), "pulls": dict(sorted(state.pulls.items()))}
    fields |= {"ids": dict(sorted(state.ids.items())), "unlisted": unlisted}
    return json.dumps(fields | {"bookings": bookings, "new": new}, indent=1) + "\n"


def parse_state(text: str) -> FleetState:
    """The state from JSON. Raises UserError for anything else, as today's spending would be lost."""
    try:
        fields: Any = json.loads(text)
        if fields["schema"] != SCHEMA:
            raise ValueError
        bookings = {str(name): _booking(one) for name, one in fields["bookings"].items()}
        new = {str(name): _moment(at) for name, at in fields["new"].items()}
        minutes = {str(name): int(used) for name, used in fields["minutes"].items()}
        usd = {str(name): float(most) for name, most in fields.get("usd", {}).items()}
        pulls = {str(name): int(most) for name, most in fields.get("pulls", {}).items()}
        ids = {str(name): int(one) for name, one in fields.get("ids", {}).items()}
        unlisted = {str(name): _moment(at) for name, at in fields.get("unlisted", {}).items()}
        return FleetState(str(fields["day"]), minutes, bookings, new, usd, pulls, ids, unlisted)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = "the fleet's state (fleet.json) cannot be read"
        raise UserError(
            what, "restore it from its history, or delete it: the budget of today then starts again"
        ) from None


def _booked(one: Booking) -> dict[str, Any]:
    return {
        "at": one.at.isoformat(),
        "cycle": one.cycle,
        "tries": one.tries,
        "usd": round(one.usd, 6),
        "pulls": one.pulls,
        "minutes": one.minutes,
    }


def _booking(fields: Any) -> Booking:
    booking = Booking(_moment(fields["at"]))
    return replace(
        booking,
        cycle=int(fields["cycle"]),
        tries=int(fields["tries"]),
        usd=float(fields["usd"]),
        pulls=int(fields["pulls"]),
        minutes=int(fields["minutes"]),
    )


def _moment(text: Any) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at
