"""`change`: a value that moved by more than a percentage within a window, exactly.

It is held against the last value at or before the window's beginning. Where rows have no time of their own,
values are remembered from look to look, and the first window only collects them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from ralph_mission.adapters.database.model import GROUPS, Filter, Query, Row, RowOrder
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.numbers import format_value, moved_over, number, percentage, plain
from ralph_mission.adapters.observers.database.results import Answers, RowFact, WatchOutcome
from ralph_mission.adapters.observers.database.state import Sample, WatchEpisode, WatchState
from ralph_mission.adapters.observers.database.targets import VALUE, Target
from ralph_mission.config.database import ChangeCondition
from ralph_mission.values import dataclass

SPACING = 4  # values remembered per window, of each series
REMEMBERED = 60  # series whose values are remembered
NO_BASE = "there was no value at or before the window's beginning"
NULL_BASE = "the last value at or before the window's beginning is unknown (null or not a number)"
NULL_NOW = "the value now is unknown (null or not a number)"


def plan(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The latest value of each series, and the one at or before the window's beginning."""
    if target.aggregate or not target.at:
        moments = {VALUE: now, "#before": now - _change(target).within}
        return {"now": latest(target, now, moments if target.at else {VALUE: now})}
    before = latest(target, now - _change(target).within)
    return {"now": latest(target, now), "before": replace(before, fields=_bare(target))}


def latest(target: Target, until: datetime, moments: Mapping[str, datetime] | None = None) -> Query:
    """The last row of each series that is not later than `until`; with aggregates, the rows with their numbers."""
    if target.aggregate:
        times = moments or {VALUE: until}
        made = tuple(
            replace(target.aggregate, name=name, where=(Filter(target.at, "<=", at),) if target.at else ())
            for name, at in times.items()
        )
        return replace(target.query(limit=GROUPS), aggregates=made)
    if not target.at:
        return target.query(first_of=target.by, limit=GROUPS)
    order = (RowOrder(target.at, descending=True),)
    return target.query(
        Filter(target.at, "<=", until), order=order, first_of=target.by, limit=GROUPS if target.by else 1
    )


def judge(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """Who moved. A move is told once as long as windows overlap; one back the other way is another."""
    start = now - _change(target).within
    bases = _bases(target, answers, state, start)
    judged = [_one(target, row, bases, now) for row in answers["now"]]
    moves = [one for one in judged if isinstance(one, _Move)]
    told = tell.limit_episodes(state, {move.group: _episode(state, move, start, now - start) for move in moves})
    keep = [one for one in state.episodes if one.since + (now - start) > start]
    after = _with_samples(target, answers["now"], tell.telling(state, told, keep), now)
    notes = tell.notes([one for one in judged if isinstance(one, str)], len(judged))
    full = (*tell.full(answers["now"], GROUPS), *tell.crowd(told), *_limit_note(target, answers["now"]))
    found = (
        replace(_change_fact(target, move, told[move.group].since, now), series=_series(after, move, now))
        for move in moves
    )
    return WatchOutcome(tuple(found), after, (*notes, *full))


def _series(state: WatchState, move: _Move, now: datetime) -> tuple[tuple[datetime, float], ...]:
    """What was remembered of a series whose values no row keeps, and the value now."""
    remembered = {one.at: one.value for one in state.samples if one.group == move.group}
    return tell.series({**remembered, now: move.value}.items())


@dataclass(frozen=True, slots=True)
class _Base:
    value: Decimal | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class _Move:
    group: str
    row: Row
    value: Decimal
    base: Decimal
    base_at: datetime | None

    @property
    def way(self) -> str:
        return tell.way(self.value, self.base)


def _change(target: Target) -> ChangeCondition:
    assert target.watch.change is not None
    return target.watch.change


def _bare(target: Target) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*target.series, target.value, target.at)))


def _bases(target: Target, answers: Answers, state: WatchState, start: datetime) -> dict[str, _Base]:
    if not target.at:
        return {one.group: _Base(one.value, one.at) for one in state.samples if one.at <= start}  # the last one stays
    if target.aggregate:
        return {target.group(row): _Base(number(row["#before"]), None) for row in answers["now"]}
    return {target.group(row): _Base(number(row[target.value]), _time(row[target.at])) for row in answers["before"]}


def _one(target: Target, row: Row, bases: Mapping[str, _Base], now: datetime) -> _Move | str | None:
    """A move, nothing, or why neither can be said."""
    value, base = number(row[target.value]), bases.get(target.group(row))
    if base is None:
        return NO_BASE
    if base.value is None:
        return NULL_BASE
    if value is None:
        return NULL_NOW
    if not moved_over(value, base.value, _change(target).over):
        return None
    return _Move(target.group(row), row, value, base.value, base.at)


def _episode(state: WatchState, move: _Move, start: datetime, within: timedelta) -> WatchEpisode:
    before = tell.episode(state, move.group, move.way)
    return before if before and before.since + within > start else WatchEpisode(move.group, start, move.way)


def _change_fact(target: Target, move: _Move, since: datetime, now: datetime) -> RowFact:
    change, percent = _change(target), percentage(move.value, move.base)
    numbers = f"from {plain(move.base)} to {plain(move.value)}"
    by = f"by {abs(percent)} %" if percent is not None else "(no percentage can be given from zero)"
    start = now - change.within
    return tell.make_row_fact(
        target,
        move.row,
        move.group,
        format_value(since),
        f"went {move.way} {by} {numbers} since {tell.moment(start)}",
        value=move.value,
        previous=move.base,
        previous_at=move.base_at,
        change_percent=percent,
        over_percent=change.over,
        direction=move.way,
        window_from=start,
        window_to=now,
    )


def _limit_note(target: Target, rows: Sequence[Row]) -> tuple[str, ...]:
    many = not target.at and len(rows) > REMEMBERED
    return (
        (f"values of the first {REMEMBERED} of {len(rows)} series are remembered; at would spare it",) if many else ()
    )


def _with_samples(target: Target, rows: Sequence[Row], state: WatchState, now: datetime) -> WatchState:
    """With the values of now, where the database keeps none: some per window, and the last one before it."""
    if target.at:
        return state
    return replace(state, samples=tuple(_samples(target, rows[:REMEMBERED], state, now)))


def _samples(target: Target, rows: Sequence[Row], state: WatchState, now: datetime) -> Iterator[Sample]:
    within = _change(target).within
    for row in rows:
        group, value = target.group(row), number(row[target.value])
        kept = [one for one in state.samples if one.group == group]
        old = [one for one in kept if one.at <= now - within]
        young = [one for one in kept if one.at > now - within]
        yield from (*old[-1:], *young)
        if value is not None and (not kept or now - kept[-1].at >= within / SPACING):
            yield Sample(group, now, value)


def _time(value: object) -> datetime | None:
    return value if isinstance(value, datetime) else None
