"""The conditions of watches: rows that are reported themselves (new ones, the first ones of a ranking, those that
begin or cease to match `where`), and a value that changed by more than a limit within a window.

A value is compared, exactly, with the last one at or before the window's beginning. If rows have no time of their own,
values are remembered from look to look; until one is old enough, the oldest is the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from ralph_mission.adapters.database.model import GROUPS, Column, Filter, Query, Row, RowOrder, Value
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.results import (
    Answers,
    RowFact,
    Snapshot,
    WatchEpisode,
    WatchOutcome,
    WatchState,
    rounded,
    series_key,
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
    quality,
    shown,
    state_words,
    words_of,
)
from ralph_mission.config.database import ChangeCondition, Top
from ralph_mission.values import dataclass

NEWS = 100  # new rows reported by one look; the rest at the next
ODD = 20  # rows without a finite value before a ranking's first one
LEFT = 200  # rows that are looked up again after they ceased to match
BORDER = 300  # rows that share the last value
SPACING = 4  # looks per window whose values are remembered
NO_BASE = "there was no value at or before the window's beginning"
NULL_BASE = "the last value at or before the window's beginning is unknown (null or not a number)"
NULL_NOW = "the value now is unknown (null or not a number)"


# --- new_since ------------------------------------------------------------------------


def plan_new(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """At first the last rows, to begin after them; later the rows after the last position, oldest first."""
    known = Filter(target.field, "known")
    column = target.shape.column(target.field)
    # Otherwise a single row of a far future would be the last position, and nothing would ever be new again.
    come = (Filter(target.field, "<=", now),) if column and column.type == "time" else ()
    if not state.started:
        return {"new": target.query(known, *come, order=(RowOrder(target.field, descending=True),), limit=BORDER)}
    limit = NEWS + len(state.border) + len(state.odd)
    begin = Filter(target.field, ">" if state.passed else ">=", state.since) if state.since is not None else known
    return {"new": target.query(begin, *come, order=(RowOrder(target.field),), limit=limit)}


def judge_new(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """Rows that are new. The first look reports nothing and remembers its position.

    Rows that share the last value (a time, a block) are known by their identity, so that a late one is reported too.
    """
    rows = [row for row in answers["new"] if _finite(row[target.field])]
    infinite = [
        row for row in answers["new"] if not _finite(row[target.field]) and target.identity(row) not in state.odd
    ]
    if not state.started and not rows and len(infinite) >= BORDER:
        remark = f"{BORDER} rows without a finite {target.field} hide all others: fix them, or choose another field"
        return WatchOutcome((), state, (remark,))
    infinite = infinite[: BORDER - len(state.odd)]
    known = replace(state, started=True, odd=(*state.odd, *map(target.identity, infinite)))
    remarks = (
        (f"rows without a finite {target.field}, reported once and then ignored: {len(infinite)}",) if infinite else ()
    )
    if not state.started:
        return WatchOutcome((), _advance_since(target, rows[:1], rows, known), remarks)
    late = [row for row in rows if not (row[target.field] == state.since and target.identity(row) in state.border)]
    fresh = [*late, *infinite]
    found = tuple(_row(target, row, "is new", since=state.since) for row in fresh)
    after = _advance_since(target, rows[-1:], rows, known)
    more = (f"{NEWS} new rows were reported; the rest follows at the next look",) if len(fresh) >= NEWS else ()
    many = (
        (f"more than {BORDER} rows share one {target.field}; later ones that do are not reported",)
        if after.passed
        else ()
    )
    return WatchOutcome(found, after, (*more, *many, *remarks))


def _finite(value: Value) -> bool:
    """Nulls were excluded by the query: a null is a NaN that the backend cannot express. It must not fill the memory
    either."""
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
    """The first rows; those without a value have no rank."""
    top = _top(target)
    order = (RowOrder(target.field, descending=top.is_descending),)
    return {"top": target.query(Filter(target.field, "known"), order=order, first_of=target.by, limit=top.take + ODD)}


def judge_top(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The ranking as one finding; a different order of rows is a new occurrence, different values are not."""
    rows = [row for row in answers["top"] if _finite(row[target.field])][: _top(target).take]
    infinite = sum(not _finite(row[target.field]) for row in answers["top"])
    remarks = (f"rows without a finite {target.field} have no place: {infinite}",) if infinite else ()
    if not rows:
        return WatchOutcome((), replace(state, started=True), remarks)
    ranking = tuple(map(target.identity, rows))
    episodes = tell.begin(state, {"": join_key(ranking)}, now)
    after = replace(tell.mark_told(state, episodes), border=ranking)
    if episodes[""].quiet:
        return WatchOutcome((), after, remarks)
    ranks: list[tuple[str, Value]] = [
        (f"{place}.{name}", row[name]) for place, row in enumerate(rows, 1) for name in target.fields
    ]
    facts: dict[str, Value] = {"order_by": target.field, "taken": len(rows), "at": now}
    one = tell.make_row_fact(
        target, {}, "", format_value(episodes[""].since), f"are the first {len(rows)} now", **facts
    )
    called = ", ".join(target.name(row) or target.identity(row) for row in rows)
    return WatchOutcome((replace(one, fields=tuple(ranks), name=called),), after, remarks)


def _top(target: Target) -> Top:
    assert target.watch.top is not None
    return target.watch.top


# --- where ----------------------------------------------------------------------------


def plan_where(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The rows that match."""
    return {"rows": target.query(limit=GROUPS)}


def plan_left(target: Target, state: WatchState, answers: Answers) -> dict[str, Query]:
    """The rows that matched and no longer do, if a single field identifies them."""
    gone = _left(target, state, answers)
    column = target.shape.column(target.shape.key[0]) if len(target.shape.key) == 1 else None
    if not gone or column is None or column.type not in ("int", "text"):
        return {}
    keys = tuple(int(one) if column.type == "int" else one for one in gone[:LEFT])
    return {"left": replace(target.query(limit=LEFT), where=(Filter(column.name, "in", keys),))}


def judge_where(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The rows that began to match, and those that ceased to; those of the first look are no news."""
    rows = {target.identity(row): row for row in answers["rows"]}
    if len(answers["rows"]) >= GROUPS:
        return WatchOutcome((), state, (f"more than {GROUPS:,} rows are as described: describe fewer",))
    episodes = tell.begin(state, dict.fromkeys(rows, ""), now)
    many = f"{target.noun} {_wanted(target, many=True)}"
    entered = [
        tell.make_lasting_fact(target, rows[one.group], one, f"{_state(target, rows[one.group])} now", f"{many} now")
        for one in episodes.values()
        if not one.quiet
    ]
    gone = _left(target, state, answers)
    again = {target.identity(row): row for row in answers.get("left", ())}
    departed = [_left_fact(target, one, again.get(one), "left" in answers, now) for one in gone]
    if len(departed) > tell.APART:
        many = f"{target.noun} {_wanted(target, True, negated=True)}"
        departed = [replace(one, bundle=f"left {one.occurrence}", many=many) for one in departed]
    return WatchOutcome((*entered, *departed), tell.mark_told(state, episodes), tell.silent(state, episodes))


def _left(target: Target, state: WatchState, answers: Answers) -> list[str]:
    """Rows that matched at the last look. Without a key, a changed row is another row."""
    if not target.shape.key or len(answers["rows"]) >= GROUPS:
        return []
    here = {target.identity(row) for row in answers["rows"]}
    return [one.group for one in state.episodes if one.group not in here]


def _left_fact(target: Target, identity: str, row: Row | None, certain: bool, now: datetime) -> RowFact:
    if row is None:
        words = "no longer exists" if certain else f"no longer exists, or {_wanted(target, False, negated=True)}"
        return tell.make_row_fact(target, {}, identity, f"left {format_value(now)}", words)
    changed = [column for column, one in zip(target.states, target.where, strict=True) if not _fits(row, one)]
    words = " and ".join(_became(column, row) for column in changed) or _wanted(target, False, negated=True)
    return tell.make_row_fact(target, row, identity, f"left {format_value(now)}", words)


def _fits(row: Row, one: Filter) -> bool:
    return row[one.field] in (one.value if isinstance(one.value, tuple) else (one.value,))


def _became(column: Column, row: Row) -> str:
    """A row's new state."""
    value = row[column.name]
    if isinstance(value, bool):
        return f"is {quality(column)} now" if value else f"is no longer {quality(column)}"
    return f"has {words_of(column.name)} {state_words(column, format_value(value)) or 'nothing'} now"


def _state(target: Target, row: Row) -> str:
    """The state that `where` describes, with this row's values."""
    if not target.where:
        return "is there"
    values = [(column, row[column.name]) for column, _ in _state_conditions(target)]
    return " and ".join(
        f"is {'' if value else 'not '}{quality(column)}"
        if isinstance(value, bool)
        else f"has {words_of(column.name)} {state_words(column, format_value(value)) or 'nothing'}"
        for column, value in values
    )


def _state_conditions(target: Target) -> list[tuple[Column, Filter]]:
    """The conditions on a row's state, if any; conditions that only select rows are no event."""
    pairs = list(zip(target.states, target.where, strict=True))
    return [pair for pair in pairs if pair[0].type in ("bool", "enum")] or pairs


def _wanted(target: Target, many: bool, negated: bool = False) -> str:
    """The state that `where` describes, in words for one row or many."""
    be, have = ("are", "have") if many else ("is", "has")
    no = " no longer" if negated else ""
    phrases = []
    for column, one in _state_conditions(target):
        values = one.value if isinstance(one.value, tuple) else (one.value,)
        if values in ((True,), (False,)):
            phrases.append(f"{be}{no} {'' if values[0] else 'not '}{quality(column)}")
        else:
            named = (state_words(column, format_value(value)) or "nothing" for value in values)
            phrases.append(f"{have}{no} {words_of(column.name)} {' or '.join(named)}")
    return " and ".join(phrases) or f"{be}{no} there"


def _row(target: Target, row: Row, words: str, **facts: Value) -> RowFact:
    """A row's fact: its group is the one that `by` names, else the row itself, so that a rejection concerns that row
    alone."""
    identity = target.identity(row)
    group = join_key([row[target.by]]) if target.by else identity
    return tell.make_row_fact(target, row, group, identity, words, **facts)


# --- change ---------------------------------------------------------------------------


def plan_change(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
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


def judge_change(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
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
