"""Rows that are reported themselves: new ones (`new_since`), the first ones of a ranking (`top`), and those that begin
or cease to match `where`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from ralph_mission.adapters.database.model import GROUPS, Column, Filter, Query, Row, RowOrder, Value
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.names import quality, state_words, words_of
from ralph_mission.adapters.observers.database.results import Answers, RowFact, WatchOutcome
from ralph_mission.adapters.observers.database.state import WatchState
from ralph_mission.adapters.observers.database.targets import Target, format_value, join_key, number
from ralph_mission.config.database import Top

NEWS = 100  # new rows reported by one look; the rest at the next
ODD = 20  # rows without a finite value before a ranking's first one
LEFT = 200  # rows that are looked up again after they ceased to match
BORDER = 300  # rows that share the last value


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
    values = [(column, row[column.name]) for column, _ in _telling(target)]
    return " and ".join(
        f"is {'' if value else 'not '}{quality(column)}"
        if isinstance(value, bool)
        else f"has {words_of(column.name)} {state_words(column, format_value(value)) or 'nothing'}"
        for column, value in values
    )


def _telling(target: Target) -> list[tuple[Column, Filter]]:
    """The conditions on a row's state, if any; conditions that only select rows are no event."""
    pairs = list(zip(target.states, target.where, strict=True))
    return [pair for pair in pairs if pair[0].type in ("bool", "enum")] or pairs


def _wanted(target: Target, many: bool, negated: bool = False) -> str:
    """The state that `where` describes, in words for one row or many."""
    be, have = ("are", "have") if many else ("is", "has")
    no = " no longer" if negated else ""
    phrases = []
    for column, one in _telling(target):
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
