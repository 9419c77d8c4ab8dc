"""`new_since`, `top` and `where`: rows that are told themselves."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from ralph_mission.adapters.database.model import CAP, Filter, Query, Row, RowOrder, Value
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.numbers import join_key, number
from ralph_mission.adapters.observers.database.results import Answers, RowFact, WatchOutcome
from ralph_mission.adapters.observers.database.state import WatchState
from ralph_mission.adapters.observers.database.targets import Target
from ralph_mission.config.database import Top

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
