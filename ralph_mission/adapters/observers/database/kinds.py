"""What each kind of watch finds: a value that moved (`change`), and rows that are reported themselves (`new_since`,
`top`, `where`).

A change is held, exactly, against the last value at or before the window's beginning. Where rows have no time of
their own, values are remembered from look to look, and the first window only collects them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from ralph_mission.adapters.database.model import CAP, GROUPS, Filter, Query, Row, RowOrder, Value
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.results import (
    Answers,
    RowFact,
    Sample,
    WatchEpisode,
    WatchOutcome,
    WatchState,
)
from ralph_mission.adapters.observers.database.targets import (
    VALUE,
    Target,
    format_value,
    join_key,
    moved_over,
    number,
    percentage,
    plain,
)
from ralph_mission.config.database import ChangeCondition, Top
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
    after = _with_samples(target, answers["now"], tell.mark_told(state, told, keep), now)
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


NEWS = 100  # new rows told of one look; the rest is told at the next
ODD = 20  # rows without a finite value that may stand before a ranking's first one
ALIKE = 40  # rows of one group that are told at a time: of more instances of one thing nobody keeps account
BORDER = 300  # rows that share the very value that was reached last


# --- new_since ------------------------------------------------------------------------


def plan_new(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """At first the last rows, to begin after them; later those from where it got to, oldest first."""
    known = Filter(target.field, "known")
    column = target.shape.column(target.field)
    # A single row of a far future would else be where it got to, and nothing would be new any more.
    come = (Filter(target.field, "<=", now),) if column and column.type == "time" else ()
    if not state.started:
        return {"new": target.query(known, *come, order=(RowOrder(target.field, descending=True),), limit=BORDER)}
    room = NEWS + len(state.border) + len(state.odd)
    begin = Filter(target.field, ">" if state.passed else ">=", state.since) if state.since is not None else known
    return {"new": target.query(begin, *come, order=(RowOrder(target.field),), limit=room)}


def judge_new(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """Rows that were not there before. The first look tells nothing and remembers where it stands.

    Rows that share the last value (a time, a block) are known by their identity, so that a late one is told too.
    """
    rows = [row for row in answers["new"] if _finite(row[target.field])]
    odd = [row for row in answers["new"] if not _finite(row[target.field]) and target.identity(row) not in state.odd]
    if not state.started and not rows and len(odd) >= BORDER:
        hidden = f"{BORDER} rows without a finite {target.field} hide all others: fix them, or choose another field"
        return WatchOutcome((), state, (hidden,))
    odd = odd[: BORDER - len(state.odd)]
    known = replace(state, started=True, odd=(*state.odd, *map(target.identity, odd)))
    said = (f"rows without a finite {target.field}, told once and never begun after: {len(odd)}",) if odd else ()
    if not state.started:
        return WatchOutcome((), _advance_since(target, rows[:1], rows, known), said)
    late = [row for row in rows if not (row[target.field] == state.since and target.identity(row) in state.border)]
    fresh = [*late, *odd]
    found = tuple(_row(target, row, "is new", since=state.since) for row in fresh)
    after = _advance_since(target, rows[-1:], rows, known)
    more = (f"{NEWS} new rows were reported; the rest follows at the next look",) if len(fresh) >= NEWS else ()
    many = (
        (f"more than {BORDER} rows share one {target.field}; later ones that do are not reported",)
        if after.passed
        else ()
    )
    return WatchOutcome(found, after, (*more, *many, *said))


def _finite(value: Value) -> bool:
    """Nulls were not asked for: what comes as one is a NaN that its backend cannot tell. Nor may it fill the memory."""
    return value is not None and (not isinstance(value, Decimal) or number(value) is not None)


def _advance_since(target: Target, last: Sequence[Row], rows: Sequence[Row], state: WatchState) -> WatchState:
    if not last:
        return state
    since = last[0][target.field]
    here = [target.identity(row) for row in rows if row[target.field] == since]
    earlier = state.border if since == state.since else ()
    border = tuple(dict.fromkeys((*earlier, *here)))
    passed = len(border) >= BORDER or (state.passed and since == state.since)
    return replace(state, since=since, border=() if passed else border, passed=passed)


# --- top ------------------------------------------------------------------------------


def plan_top(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The first rows; those without a value have no place."""
    top = _top(target)
    order = (RowOrder(target.field, descending=top.is_descending),)
    return {"top": target.query(Filter(target.field, "known"), order=order, first_of=target.by, limit=top.take + ODD)}


def judge_top(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The ranking as one finding; another order of rows is another occurrence, other values are not."""
    rows = [row for row in answers["top"] if _finite(row[target.field])][: _top(target).take]
    odd = sum(not _finite(row[target.field]) for row in answers["top"])
    said = (f"rows without a finite {target.field} have no place: {odd}",) if odd else ()
    if not rows:
        return WatchOutcome((), replace(state, started=True), said)
    names = [target.identity(row) for row in rows]
    occurrence = hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]
    ranks: list[tuple[str, Value]] = [
        (f"{place}.{name}", row[name]) for place, row in enumerate(rows, 1) for name in target.fields
    ]
    one = tell.make_row_fact(
        target, {}, "", occurrence, f"are the first {len(rows)}", order_by=target.field, taken=len(rows), at=now
    )
    return WatchOutcome((replace(one, fields=tuple(ranks)),), replace(state, started=True), said)


def _top(target: Target) -> Top:
    assert target.watch.top is not None
    return target.watch.top


# --- where ----------------------------------------------------------------------------


def plan_where(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The rows that are as described."""
    return {"rows": target.query(limit=CAP)}


def judge_where(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """Each of them; which were told before is known by their occurrence, of which one group has only so many."""
    rows = [_row(target, row, "is as described") for row in answers["rows"]]
    groups = Counter(one.group for one in rows)
    places = zip(rows, _places(rows), strict=True)
    found = tuple(one for one, place in places if place <= ALIKE)
    large = sum(many > ALIKE for many in groups.values())
    more = (f"groups of more than {ALIKE} rows, of which the first were reported: {large}",) if large else ()
    return WatchOutcome(found, replace(state, started=True), (*tell.full(answers["rows"], CAP), *more))


def _places(rows: Iterable[RowFact]) -> Iterator[int]:
    """Of each row, the how manieth of its group it is."""
    seen: Counter[str] = Counter()
    for one in rows:
        seen[one.group] += 1
        yield seen[one.group]


def _row(target: Target, row: Row, words: str, **facts: Value) -> RowFact:
    """Of a row: its group is the one that `by` names, or else the row itself, so that a no to it is about it alone."""
    identity = target.identity(row)
    group = join_key([row[target.by]]) if target.by else identity
    return tell.make_row_fact(target, row, group, identity, words, **facts)
