"""The models of a fleet: a scan's data about each repository, budgets, starts, and a repository's terms for its cycle.

Money is in USD, runner time in minutes; both are counted by the day in UTC, as memory does.

The terms are the remaining budget, and people's decisions elsewhere. They come from the environment, as JSON. They only
make limits stricter and move ranks; they permit nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, replace
from datetime import datetime
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.mission.memory.learning import read_verdicts
from ralph_mission.mission.memory.text import MEASURED, MEASURED_END
from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.mission import Acceptance, Urgency
from ralph_mission.values import compile_regex, dataclass

SCHEMA = 1  # of `FleetState` as JSON
CONFIGURE = "ralph/configure"  # the branch of the pull request that asks whether to look after a repository
SHARD = 256  # jobs of one matrix: GitHub's limit, and so what one plan starts at most
MOST_KINDS = 100
MOST_VERDICTS = 999_999
MOST_EACH = 100  # verdicts of one kind that one repository brings: none speaks for the whole fleet
_KIND = compile_regex(r"[a-z][a-z0-9-]{0,39}")
Verdicts = Mapping[str, Acceptance]


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
    waiting: tuple[HeldRepository, ...]
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
    return asdict(one) | {"at": one.at.isoformat(), "usd": round(one.usd, 6)}


def _booking(fields: Any) -> Booking:
    numbers = (int(fields["cycle"]), int(fields["tries"]), float(fields["usd"]))
    return Booking(_moment(fields["at"]), *numbers, int(fields["pulls"]), int(fields["minutes"]))


def _moment(text: Any) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at


@dataclass(frozen=True, slots=True)
class FleetTerms:
    """`usd_per_day`: USD that the repository's day may have cost when its cycle ends; None: its own limit alone.
    `pulls`: how many pull requests may be opened unasked; None: its own limit alone. `spoke`: a person did. `priors`:
    verdicts elsewhere, by kind. `onboard`: only ask, by a pull request with settings, which extend `extends`, whether
    to look after it. `extends`: the settings of a repository that has none of its own.
    """

    usd_per_day: float | None = None
    pulls: int | None = None
    spoke: bool = False
    priors: tuple[tuple[str, Acceptance], ...] = ()
    onboard: bool = False
    extends: str = ""


@dataclass(frozen=True, slots=True)
class FleetVerdicts:
    """What people decided on each kind: in each repository, by its name, and in all of them."""

    each: Mapping[str, Verdicts]
    total: Verdicts

    def elsewhere(self, name: str) -> dict[str, Acceptance]:
        """In all repositories but one: its own verdicts are in its memory."""
        pairs = ((kind, one, self.each.get(name, {}).get(kind, Acceptance())) for kind, one in self.total.items())
        return {
            kind: Acceptance(one.accepted - own.accepted, one.rejected - own.rejected)
            for kind, one, own in pairs
            if one != own
        }


def count_verdicts(headers: Iterable[RepositoryHeader]) -> FleetVerdicts:
    """The verdicts in the scanned memories."""
    each = {header.name: _own_verdicts(header.text) for header in headers}
    total: dict[str, Acceptance] = {}
    for verdicts in each.values():
        for kind, one in verdicts.items():
            known = total.get(kind, Acceptance())
            total[kind] = Acceptance(known.accepted + one.accepted, known.rejected + one.rejected)
    return FleetVerdicts(each, total)


def _own_verdicts(memory: str) -> dict[str, Acceptance]:
    """Those under Ralph's own heading: what is written elsewhere is no verdict. Each has a bounded share."""
    _, _, measured = f"\n{memory}".partition(f"\n{MEASURED}\n")
    lines = takewhile(lambda line: not line.startswith(("#", MEASURED_END)), measured.splitlines())
    return {kind: _bounded(one) for kind, one in read_verdicts(lines).items()}


def _bounded(one: Acceptance) -> Acceptance:
    share = min(1.0, MOST_EACH / max(1, one.accepted + one.rejected))
    return Acceptance(round(one.accepted * share), round(one.rejected * share))


def render_terms(start: FleetStart, verdicts: FleetVerdicts, extends: str = "") -> str:
    """The terms of one start, as one line of JSON."""
    elsewhere = verdicts.elsewhere(start.name)
    judged = sorted(elsewhere.items(), key=lambda pair: (-pair[1].accepted - pair[1].rejected, pair[0]))
    priors = {
        kind: [min(one.accepted, MOST_VERDICTS), min(one.rejected, MOST_VERDICTS)] for kind, one in judged[:MOST_KINDS]
    }
    fields: dict[str, object] = {"usd_per_day": start.usd_per_day, "pulls": start.pulls, "spoke": start.spoke}
    fields["priors"] = priors
    if extends:
        fields["extends"] = extends
    if start.onboard:
        fields["onboard"] = True
    return json.dumps(fields, separators=(",", ":"))


def parse_terms(text: str) -> FleetTerms:
    """The terms from JSON, or "". Raises UserError (usage) for anything else: no budget is forgotten."""
    if not text:
        return FleetTerms()
    try:
        fields: Any = json.loads(text)
        usd, priors = fields["usd_per_day"], fields["priors"]
        if usd is not None and not 0 <= float(usd) < float("inf"):
            raise ValueError
        if type(fields["pulls"]) is not bool or type(fields["spoke"]) is not bool or len(priors) > MOST_KINDS:
            raise ValueError
        known = tuple((_kind(kind), _tally(*one)) for kind, one in sorted(priors.items()))
        onboard, extends = fields.get("onboard", False), fields.get("extends", "")
        if type(onboard) is not bool or type(extends) is not str:
            raise ValueError
        dollars, pulls = None if usd is None else float(usd), int(fields["pulls"])  # one is what was booked
        return FleetTerms(dollars, pulls, fields["spoke"], known, onboard, extends)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = "RALPH_FLEET is not what a fleet's plan writes"
        raise UserError(what, "take it out of the environment", usage=True) from None


def apply_terms(settings: CycleSettings, terms: FleetTerms) -> CycleSettings:
    """The settings with the fleet's stricter limits."""
    limits = settings.limits
    if terms.usd_per_day is not None:
        limits = replace(limits, usd_per_day=min(limits.usd_per_day, terms.usd_per_day))
    if terms.pulls is not None:
        limits = replace(limits, auto_prs_per_cycle=min(limits.auto_prs_per_cycle, terms.pulls))
    return replace(settings, limits=limits, priors=terms.priors, in_fleet=terms.usd_per_day is not None)


def _kind(text: str) -> str:
    if not _KIND.fullmatch(text):
        raise ValueError(text)
    return text


def _tally(accepted: Any, rejected: Any) -> Acceptance:
    return Acceptance(_count(accepted), _count(rejected))


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MOST_VERDICTS:
        raise ValueError(number)
    return number
