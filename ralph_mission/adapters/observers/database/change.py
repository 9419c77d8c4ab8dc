"""A value that changed by more than a limit within a window.

It is compared, exactly, with the last value at or before the window's beginning. If rows have no time of their own,
values are remembered from look to look; until one is old enough, the oldest is the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from ralph_mission.adapters.database.model import GROUPS, Filter, Query, Row, RowOrder
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.results import Answers, RowFact, WatchOutcome
from ralph_mission.adapters.observers.database.state import Snapshot, WatchEpisode, WatchState, rounded, series_key
from ralph_mission.adapters.observers.database.targets import (
    VALUE,
    Target,
    moved_over,
    number,
    percentage,
    plain,
    shown,
)
from ralph_mission.config.database import ChangeCondition
from ralph_mission.values import dataclass

SPACING = 4  # looks per window whose values are remembered
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
    """The last row of each series that is no later than `until`; with aggregates, the rows with their aggregated
    values."""
    if target.aggregate:
        times = moments or {VALUE: until}
        aggregates = tuple(
            replace(target.aggregate, name=name, where=(Filter(target.at, "<=", at),) if target.at else ())
            for name, at in times.items()
        )
        return replace(target.query(limit=GROUPS), aggregates=aggregates)
    if not target.at:
        return target.query(first_of=target.by, limit=GROUPS)
    order = (RowOrder(target.at, descending=True),)
    return target.query(
        Filter(target.at, "<=", until), order=order, first_of=target.by, limit=GROUPS if target.by else 1
    )


def judge(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The series that moved. A move is reported once while windows overlap; one in the other direction is another."""
    within = _change(target).within
    bases = _bases(target, answers, state, now - within)
    judged = [_one(target, row, bases, state.digits) for row in answers["now"]]
    moves = {one.group: one for one in judged if isinstance(one, _Move)}
    recent = replace(state, episodes=tuple(one for one in state.episodes if one.since > now - within))
    episodes = tell.begin(recent, {group: move.way for group, move in moves.items()}, now)
    found = tuple(
        replace(_fact(target, move, episodes[group], len(judged), now), series=_series(state, move, now))
        for group, move in moves.items()
        if not episodes[group].quiet
    )
    after = _with_snapshot(target, answers["now"], tell.mark_told(state, episodes, recent.episodes), now)
    # At the first look there is no base yet if the database keeps no history.
    reasons = [one for one in judged if isinstance(one, str)] if state.started or target.at else []
    notes = tell.notes(reasons, len(judged))
    full = (*tell.full(answers["now"], GROUPS), *tell.silent(state, episodes))
    return WatchOutcome(found, after, (*notes, *full))


def _series(state: WatchState, move: _Move, now: datetime) -> tuple[tuple[datetime, float], ...]:
    """The remembered values of a series that the database keeps no history of, and the current one."""
    key = series_key(move.group)
    remembered = {one.at: one.values[key] for one in state.snapshots if key in one.values}
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
        return _remembered(target, answers["now"], state, start)
    if target.aggregate:
        return {target.group(row): _Base(number(row["#before"]), None) for row in answers["now"]}
    return {target.group(row): _Base(number(row[target.value]), _time(row[target.at])) for row in answers["before"]}


def _remembered(target: Target, rows: Sequence[Row], state: WatchState, start: datetime) -> dict[str, _Base]:
    """The last value that is old enough; if there is none, the oldest: any move since is within the window."""
    newest_first = [one for one in reversed(state.snapshots) if one.at <= start]
    looks = (*newest_first, *(one for one in state.snapshots if one.at > start))
    found = {}
    for group in map(target.group, rows):
        key = series_key(group)
        look = next((one for one in looks if key in one.values), None)
        if look:
            found[group] = _Base(look.values[key], look.at)
    return found


def _one(target: Target, row: Row, bases: Mapping[str, _Base], digits: int) -> _Move | str | None:
    """A move, None, or why neither is known."""
    value, base = number(row[target.value]), bases.get(target.group(row))
    if base is None:
        return NO_BASE
    if base.value is None:
        return NULL_BASE
    if value is None:
        return NULL_NOW
    # A value stored with fewer digits is compared with as many: rounding is no move.
    if not moved_over(rounded(value, 0 if target.at else digits), base.value, _change(target).over):
        return None
    return _Move(target.group(row), row, value, base.value, base.at)


def _fact(target: Target, move: _Move, since: WatchEpisode, total: int, now: datetime) -> RowFact:
    change, percent = _change(target), percentage(move.value, move.base)
    numbers = f"from {shown(move.base)} to {shown(move.value)}"
    by = f"by {plain(abs(percent))} %" if percent is not None else "(no percentage can be given from zero)"
    start = max(now - change.within, move.base_at or now - change.within)
    return tell.make_lasting_fact(
        target,
        move.row,
        since,
        f"went {move.way} {by} {numbers} since {tell.moment(start)}",
        f"of {total} {target.noun} went {move.way} by more than {plain(change.over)} %",
        value=move.value,
        previous=move.base,
        previous_at=move.base_at,
        change_percent=percent,
        over_percent=change.over,
        direction=move.way,
        window_from=start,
        window_to=now,
    )


def _with_snapshot(target: Target, rows: Sequence[Row], state: WatchState, now: datetime) -> WatchState:
    """The state with the current values, if the database keeps no history: a few looks per window, and the last one
    before it."""
    if target.at:
        return state
    within = _change(target).within
    old = [one for one in state.snapshots if one.at <= now - within]
    young = [one for one in state.snapshots if one.at > now - within]
    if state.snapshots and now - state.snapshots[-1].at < within / SPACING:
        return replace(state, snapshots=(*old[-1:], *young))
    digits = state.digits
    known = {series_key(target.group(row)): number(row[target.value]) for row in rows}
    values = {key: rounded(value, digits) for key, value in known.items() if value is not None}
    return replace(state, snapshots=(*old[-1:], *young, Snapshot(now, values)))


def _time(value: object) -> datetime | None:
    return value if isinstance(value, datetime) else None
