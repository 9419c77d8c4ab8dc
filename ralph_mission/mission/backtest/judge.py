"""A backtest's result: each kind's precision, the noise per week, and whether fixed items were ranked first.

An item counts as done by people if they fixed it by the end of the history, and as stayed if they did not. Nobody had
reported it to them, so a fix shows that it was worth reporting. Items first seen less than `MIN_AGE` before the end are
not judged, nor are those whose file was deleted. An item that is not a line of a file has its own time to be done in
(`PATIENCE`); after that it counts as stayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from math import log2
from statistics import fmean, median
from typing import Any

from ralph_mission.mission.backtest.follow import PATIENCE, Ending, HistoryStep, TrackedItem
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.mission import Finding, Signal
from ralph_mission.mission.model.proposal import lookup
from ralph_mission.values import dataclass

SCHEMA = 1
MIN_AGE = timedelta(days=90)
FEWEST, FILES, WORTH = 5, 3, 0.2
"""The minimum of judged items and of files or threads for a meaningful precision, and the precision below which a kind
is only watched."""


class ItemFate(StrEnum):
    """An item's result."""

    FIXED = "fixed"  # by people, without a report of ours
    STAYED = "stayed"
    WITHDRAWN = "withdrawn"  # reported no more, though the line stands as it was: nobody did anything
    REMOVED = "removed"  # with its whole file
    YOUNG = "too young"  # to say so
    OWN = "fixed by Ralph"  # in a merged pull request of its own
    UNKNOWN = "unknown"  # who closed or reviewed it could not be asked


ENDED: Mapping[Ending, ItemFate] = {
    "": ItemFate.STAYED,
    "fixed": ItemFate.FIXED,
    "own": ItemFate.OWN,
    "removed": ItemFate.REMOVED,
    "withdrawn": ItemFate.WITHDRAWN,
    "unknown": ItemFate.UNKNOWN,
}
JUDGED = (ItemFate.FIXED, ItemFate.STAYED, ItemFate.WITHDRAWN)


def fate(entry: TrackedItem, since: datetime, until: datetime) -> ItemFate:
    """Its result at `until`, if reported at `since`."""
    patience = PATIENCE.get(entry.kind)
    if until - since < (patience or MIN_AGE):
        return ItemFate.YOUNG
    if patience and entry.ending == "fixed" and entry.ended_at and entry.ended_at - since > patience:
        return ItemFate.STAYED
    return ENDED[entry.ending]


@dataclass(frozen=True, slots=True)
class KindRecord:
    """Items of one kind. `precision`: the share of judged items that people fixed, or None."""

    kind: str
    found: int
    opened: int  # that a thread or a list would have named
    fixed: int
    stayed: int
    withdrawn: int
    removed: int
    young: int
    precision: float | None
    days: float | None  # until people fixed it, at the median
    watch_only: bool


def judge_kinds(tracked: Sequence[TrackedItem], until: datetime) -> tuple[KindRecord, ...]:
    """A record for each kind, the most precise first."""
    kinds = sorted({entry.kind for entry in tracked})
    records = (_judge_kind(kind, [entry for entry in tracked if entry.kind == kind], until) for kind in kinds)
    return tuple(sorted(records, key=lambda record: (-(record.precision or 0), record.kind)))


def _judge_kind(kind: str, items: Sequence[TrackedItem], until: datetime) -> KindRecord:
    fates = [fate(one, one.since, until) for one in items]
    count = Counter(fates)
    judged = sum(count[one] for one in JUDGED)
    precision = count[ItemFate.FIXED] / judged if judged else None
    files = {one.item.path or one.item.identity for one, what in zip(items, fates, strict=True) if what in JUDGED}
    days = [_days(one) for one, what in zip(items, fates, strict=True) if what is ItemFate.FIXED]
    return KindRecord(
        kind,
        len(items),
        sum(one.opened_at is not None for one in items),
        count[ItemFate.FIXED],
        count[ItemFate.STAYED],
        count[ItemFate.WITHDRAWN],
        count[ItemFate.REMOVED],
        count[ItemFate.YOUNG],
        None if precision is None else round(precision, 3),
        round(median(days), 1) if days else None,
        precision is not None and precision < WORTH and judged >= FEWEST and len(files) >= FILES,
    )


def _days(entry: TrackedItem) -> float:
    assert entry.ended_at is not None
    return (entry.ended_at - entry.since).total_seconds() / 86_400


# --- what would have been opened ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenedThread:
    """One issue or pull request that would have been opened, with the places of its items among all of them."""

    at: datetime
    commit: str
    action: str
    kind: str
    title: str
    why: str
    items: tuple[int, ...]
    counted: int = 0  # what it only counts, and nobody can follow


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread in the report.

    `verdict`: `fixed` or `partly` (by people), `stayed`, `removed`, `too young`, `fixed by Ralph`, or `counted` where
    it names no item.
    """

    at: datetime
    commit: str
    action: str
    kind: str
    title: str
    why: str
    verdict: str
    fates: Mapping[str, int]
    counted: int


def judge_thread(thread: OpenedThread, tracked: Sequence[TrackedItem], until: datetime) -> ThreadRecord:
    """The results of its items, since it was opened."""
    fates = Counter(fate(tracked[place], thread.at, until) for place in thread.items)
    counts = {str(what): fates[what] for what in ItemFate if fates[what]}
    head = (thread.at, thread.commit, thread.action, thread.kind, thread.title, thread.why)
    return ThreadRecord(*head, _verdict(fates), counts, thread.counted)


def _verdict(fates: Counter[ItemFate]) -> str:
    judged = sum(fates[one] for one in JUDGED)
    if judged:
        done = fates[ItemFate.FIXED]
        return "stayed" if not done else "fixed" if done == judged else "partly"
    unjudged = (ItemFate.YOUNG, ItemFate.REMOVED, ItemFate.OWN)
    return next((str(one) for one in unjudged if fates[one]), "counted")


@dataclass(frozen=True, slots=True)
class WeekRecord:
    """One step of the replay: new items, and the threads that would have been opened."""

    at: datetime
    commit: str
    commits: int
    found: int
    fixed: int  # of what was found in this step, later by people
    stayed: int
    other: int
    threads: int


def judge_weeks(
    steps: Sequence[HistoryStep], tracked: Sequence[TrackedItem], threads: Sequence[OpenedThread], until: datetime
) -> tuple[WeekRecord, ...]:
    """One record for each step."""
    opened = Counter(thread.at for thread in threads)
    records = []
    for step in steps:
        fates = Counter(fate(entry, entry.since, until) for entry in tracked if entry.since == step.at)
        found, fixed, stayed = fates.total(), fates[ItemFate.FIXED], fates[ItemFate.STAYED]
        other = found - fixed - stayed
        records.append(WeekRecord(step.at, step.commit, step.commits, found, fixed, stayed, other, opened[step.at]))
    return tuple(records)


# --- ranking --------------------------------------------------------------------------

Order = tuple[tuple[int, ...], ...]
"""Ranked findings, each as the indexes of its items."""


@dataclass(frozen=True, slots=True)
class RankedStep:
    """All items at one step, in each order to compare."""

    at: datetime
    orders: Mapping[str, Order]


@dataclass(frozen=True, slots=True)
class RankingRecord:
    """How early an order puts items fixed later: `ndcg` 0 to 1, `place` 0 (first) to 1 (last), as means."""

    order: str
    ndcg: float
    place: float
    steps: int


def order_findings(
    tracked: Sequence[TrackedItem], at: datetime, rank: Callable[[tuple[Finding, ...]], Iterable[str]]
) -> RankedStep:
    """What is there now as `rank` has it (fingerprints), by age, and by kind alone."""
    places: dict[Signal, list[int]] = {}
    for place, one in enumerate(tracked):
        if not one.ending:
            places.setdefault(one.signal, []).append(place)
    findings = identify(places)
    ranked = {fingerprint: place for place, fingerprint in enumerate(rank(findings))}

    def age(finding: Finding) -> tuple[Any, ...]:
        first = min(tracked[place].since for place in places[finding.signal])
        return first, -finding.signal.age_days, finding.signal.path, finding.signal.line

    def fixed_order(finding: Finding) -> tuple[Any, ...]:
        return -lookup(finding.kind).impact, finding.kind, finding.signal.path, finding.signal.line

    keys: Mapping[str, Callable[[Finding], Any]] = {
        "ranking": lambda finding: ranked.get(finding.fingerprint, len(ranked)),
        "chronological": age,
        "static": fixed_order,
    }
    orders = {
        name: tuple(tuple(places[finding.signal]) for finding in sorted(findings, key=key))
        for name, key in keys.items()
    }
    return RankedStep(at, orders)


def judge_ranking(
    steps: Iterable[RankedStep], tracked: Sequence[TrackedItem], until: datetime
) -> tuple[RankingRecord, ...]:
    """Each order over all steps with a choice."""
    scores: dict[str, list[tuple[float, float]]] = {}
    for step in steps:
        for name, order in step.orders.items():
            gains = [gain for finding in order if (gain := _gain(finding, tracked, step.at, until)) is not None]
            if len(set(gains)) > 1:
                scores.setdefault(name, []).append((ndcg(gains), mean_place(gains)))
    return tuple(
        RankingRecord(name, round(fmean(n for n, _ in found), 3), round(fmean(p for _, p in found), 3), len(found))
        for name, found in scores.items()
    )


def _gain(finding: Sequence[int], tracked: Sequence[TrackedItem], at: datetime, until: datetime) -> float | None:
    """The share of its judged items that people fixed, or None."""
    fates = [what for place in finding if (what := fate(tracked[place], at, until)) in JUDGED]
    return sum(what is ItemFate.FIXED for what in fates) / len(fates) if fates else None


def ndcg(gains: Sequence[float]) -> float:
    """Normalised discounted cumulative gain: 1 if the largest gains come first. Raises ValueError without any."""
    best = _dcg(sorted(gains, reverse=True))
    if not best:
        raise ValueError("nothing to gain")
    return _dcg(gains) / best


def _dcg(gains: Iterable[float]) -> float:
    return sum(gain / log2(place + 2) for place, gain in enumerate(gains))


def mean_place(gains: Sequence[float]) -> float:
    """The gains' average position: 0 is first, 1 last, one half by chance."""
    return sum(gain * place for place, gain in enumerate(gains)) / sum(gains) / (len(gains) - 1)


# --- all of it ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item in the report."""

    kind: str
    what: str
    path: str
    line: int
    since: datetime
    opened_at: datetime | None
    fate: ItemFate
    ended_at: datetime | None
    commit: str


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """The result of a backtest. Seconds are of the whole walk, `threads_a_week` of everything opened, `noise_a_week` of
    the threads of which people did nothing."""

    schema_version: int
    repository: str
    since: datetime
    until: datetime
    commits: int
    seconds: float
    ripe_days: int  # what was first reported later than so long before the end is not judged
    threads_a_week: float
    noise_a_week: float
    kinds: tuple[KindRecord, ...]
    ranking: tuple[RankingRecord, ...]
    watch_only: tuple[str, ...]
    weeks: tuple[WeekRecord, ...]
    threads: tuple[ThreadRecord, ...]
    items: tuple[ItemRecord, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayedHistory:
    """The data of a replay."""

    repository: str
    steps: tuple[HistoryStep, ...]
    commits: int
    tracked: tuple[TrackedItem, ...]
    threads: tuple[OpenedThread, ...]
    ranked: tuple[RankedStep, ...]
    remarks: tuple[str, ...] = ()


def judge_history(history: ReplayedHistory, seconds: float) -> BacktestReport:
    """The report. The history has at least one step."""
    tracked, since, until = history.tracked, history.steps[0].at, history.steps[-1].at
    threads = tuple(judge_thread(thread, tracked, until) for thread in history.threads)
    kinds = judge_kinds(tracked, until)
    weeks = max((until - since) / timedelta(weeks=1), 1)
    own = sum(one.ending == "own" for one in tracked)
    left_out = (f"{own} fixed by Ralph's own pull requests: not counted for people." if own else "",)
    return BacktestReport(
        SCHEMA,
        history.repository,
        since,
        until,
        history.commits,
        round(seconds, 1),
        MIN_AGE.days,
        round(len(threads) / weeks, 2),
        round(sum(thread.verdict == "stayed" for thread in threads) / weeks, 2),
        kinds,
        judge_ranking(history.ranked, tracked, until),
        tuple(record.kind for record in kinds if record.watch_only),
        judge_weeks(history.steps, tracked, history.threads, until),
        threads,
        tuple(_item_record(entry, until) for entry in tracked),
        (*history.remarks, *filter(None, left_out)),
    )


def _item_record(entry: TrackedItem, until: datetime) -> ItemRecord:
    item, became = entry.item, fate(entry, entry.since, until)
    return ItemRecord(
        entry.kind, item.what, item.path, item.line, entry.since, entry.opened_at, became, entry.ended_at, entry.commit
    )
