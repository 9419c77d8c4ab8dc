"""`threshold`, `outlier`, `missing`: states of a series, reported when they begin and not again while they last.

The kinds of watches: their queries, and how they judge the rows. Pure: rows and a state in, facts out.

outcome = look_at(find_target(watch, database.describe()), database.rows, state, now)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from ralph_mission.adapters.database.model import GROUPS, SERIES, Filter, Query, Row, RowOrder, Value
from ralph_mission.adapters.observers.database import conditions
from ralph_mission.adapters.observers.database import results as tell
from ralph_mission.adapters.observers.database.results import Answers, RowFact, WatchEpisode, WatchOutcome, WatchState
from ralph_mission.adapters.observers.database.targets import (
    Target,
    decimal,
    median,
    number,
    plain,
    round_exact,
    shown,
)
from ralph_mission.config.database import Outlier
from ralph_mission.values import dataclass

UNKNOWN = "the value now is unknown (null or not a number)"
BY_MEDIAN = Fraction("0.6745")  # makes the median absolute deviation of a normal distribution its standard deviation
BY_MEAN = Fraction("0.7979")  # the same of the mean absolute deviation
ALL_EQUAL = "all earlier values of the window are equal, so nothing says how far is far; a change watch would work"


# --- threshold ------------------------------------------------------------------------


def plan_threshold(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The latest value of each series."""
    return {"now": conditions.latest(target, now)}


def judge_threshold(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The series out of bounds; the occurrence is when that was first seen. A value equal to a bound is within."""
    out: dict[str, tuple[Row, Decimal, tuple[str, Decimal]]] = {}
    reasons, keep = [], []
    for row in answers["now"]:
        group, value = target.group(row), number(row[target.value])
        if value is None:
            reasons.append(UNKNOWN)
            keep += [one for one in state.episodes if one.group == group]  # neither returned nor ended
        elif bound := _crossed_bound(target, value):
            out[group] = (row, value, bound)
    episodes = tell.begin(state, {group: bound[0] for group, (_, _, bound) in out.items()}, now)
    total = len(answers["now"])
    found = (
        _beyond(target, row, value, bound, episodes[group], total)
        for group, (row, value, bound) in out.items()
        if not episodes[group].quiet
    )
    more = (*tell.full(answers["now"], GROUPS), *tell.silent(state, episodes))
    return WatchOutcome(tuple(found), tell.mark_told(state, episodes, keep), (*tell.notes(reasons, total), *more))


def _crossed_bound(target: Target, value: Decimal) -> tuple[str, Decimal] | None:
    bounds = target.watch.threshold
    assert bounds is not None
    if bounds.above is not None and value > bounds.above:
        return "above", bounds.above
    if bounds.below is not None and value < bounds.below:
        return "below", bounds.below
    return None


def _beyond(
    target: Target, row: Row, value: Decimal, bound: tuple[str, Decimal], since: WatchEpisode, total: int
) -> RowFact:
    way, limit = bound
    words = f"is {shown(value)}, {way} {shown(limit)}"
    facts: dict[str, Value] = {"value": value, "limit": limit, "direction": way, "since": since.since}
    return tell.make_lasting_fact(
        target, row, since, words, f"of {total} {target.noun} are {way} {shown(limit)}", **facts
    )


# --- outlier --------------------------------------------------------------------------


def plan_outlier(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The window's rows, latest first."""
    window = (Filter(target.at, ">", now - _outlier(target).within), Filter(target.at, "<=", now))
    return {"window": target.query(*window, order=(RowOrder(target.at, descending=True),), limit=SERIES)}


def judge_outlier(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The series whose latest value is far from the earlier ones of the window."""
    series: dict[str, list[Row]] = defaultdict(list)
    for row in answers["window"]:
        series[target.group(row)].append(row)
    judged = {group: _strange(target, rows) for group, rows in series.items()}
    far = {group: one for group, one in judged.items() if isinstance(one, _Far)}
    episodes = tell.begin(state, {group: one.way for group, one in far.items()}, now)
    found = tuple(
        replace(
            _far(target, series[group][0], one, episodes[group], len(judged), now),
            series=_values(target, series[group]),
        )
        for group, one in far.items()
        if not episodes[group].quiet
    )
    reasons = [one for one in judged.values() if isinstance(one, str)]
    more = (*tell.full(answers["window"], SERIES), *tell.silent(state, episodes))
    keep = [one for one in state.episodes if isinstance(judged.get(one.group), str)]
    return WatchOutcome(found, tell.mark_told(state, episodes, keep), (*tell.notes(reasons, len(judged)), *more))


def _values(target: Target, rows: Sequence[Row]) -> tuple[tuple[datetime, float], ...]:
    return tell.series((row.get(target.at), row.get(target.value)) for row in rows)


@dataclass(frozen=True, slots=True)
class _Far:
    value: Decimal
    usual: Fraction
    spread: Fraction
    score: Fraction
    measure: str
    values: int

    @property
    def way(self) -> str:
        return "up" if self.value > self.usual else "down"


def _outlier(target: Target) -> Outlier:
    assert target.watch.outlier is not None
    return target.watch.outlier


def _strange(target: Target, rows: Sequence[Row]) -> _Far | str | None:
    """How far the first row is from the rest; None if that is usual; a text with the reason if it cannot be judged."""
    value = number(rows[0][target.value])
    if value is None:
        return UNKNOWN
    earlier = [Fraction(one) for row in rows[1:] if (one := number(row[target.value])) is not None]
    if len(earlier) < _outlier(target).least:
        return f"its window has fewer than {_outlier(target).least} earlier values"
    return _score_outlier(value, earlier, Fraction(_outlier(target).score))


def _score_outlier(value: Decimal, earlier: Sequence[Fraction], limit: Fraction) -> _Far | str | None:
    usual = median(earlier)
    distances = [abs(one - usual) for one in earlier]
    spread, factor, measure = median(distances), BY_MEDIAN, "median absolute deviation"
    if not spread:  # more than half of them are equal
        spread, factor = sum(distances, Fraction(0)) / len(distances), BY_MEAN
        measure = "mean absolute deviation, because more than half of the values are equal"
    distance = abs(Fraction(value) - usual)
    if not spread:
        return ALL_EQUAL if distance else None
    score = factor * distance / spread
    return _Far(value, usual, spread, score, measure, len(earlier)) if score > limit else None


def _far(target: Target, row: Row, one: _Far, since: WatchEpisode, total: int, now: datetime) -> RowFact:
    usual, score = decimal(one.usual), round_exact(one.score, 1)
    words = f"is {shown(one.value)}, usual is {shown(usual)} (score {score}, by {one.measure} of {one.values} values)"
    facts: dict[str, Value] = {
        "value": one.value,
        "usual": usual,
        "spread": decimal(one.spread, 12),
        "measure": one.measure,
        "score": score,
        "over_score": _outlier(target).score,
        "direction": one.way,
        "values": one.values,
        "window_from": now - _outlier(target).within,
        "window_to": now,
    }
    many = f"of {total} {target.noun} are far {'above' if one.way == 'up' else 'below'} what is usual"
    return tell.make_lasting_fact(target, row, since, words, many, **facts)


# --- missing --------------------------------------------------------------------------


def plan_missing(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """The last row of each series that is not in the future: such a row would hide a missing feed for ever.

    Also queries that explain why there is none: the next future row, and any row.
    """
    order = (RowOrder(target.at, descending=True),)
    come = Filter(target.at, "<=", now)
    return {
        "last": target.query(come, order=order, first_of=target.by, limit=GROUPS if target.by else 1),
        "next": target.query(Filter(target.at, ">", now), order=(RowOrder(target.at),), limit=1),
        "any": target.query(limit=1),
    }


def judge_missing(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """The series that ended. One without any row never existed; several that end together are one dead feed.

    A series that ended before the first look is no news, unless no series has rows: then the feed is dead now.
    """
    patience = target.watch.missing
    assert patience is not None
    if not answers["last"]:
        episodes = tell.begin(replace(state, started=True), {"": "never"}, now)
        facts: dict[str, Value] = {"longer_than": _hours(patience), "unit_of_age": "h"}
        one = tell.make_lasting_fact(target, {}, episodes[""], _never(target, answers), "", **facts)
        return WatchOutcome((one,), tell.mark_told(state, episodes))
    silent = {target.group(row): (row, at) for row in answers["last"] if (at := _ended(target, row, patience, now))}
    whole = len(silent) == len(answers["last"])
    known = replace(state, started=True) if whole else state
    apart = 1 if target.by else tell.APART
    episodes = tell.begin(known, dict.fromkeys(silent, ""), now, apart, joining=patience)
    newest = max((at for _, at in silent.values()), default=now)
    many = f"of {len(answers['last'])} {target.noun} have no new row since {tell.moment(newest)}"
    found = tuple(
        _silent(target, row, at, patience, episodes[group], many, now)
        for group, (row, at) in silent.items()
        if not episodes[group].quiet
    )
    notes = (*tell.full(answers["last"], GROUPS), *tell.silent(known, episodes))
    return WatchOutcome(found, tell.mark_told(state, episodes), notes)


def _ended(target: Target, row: Row, patience: timedelta, now: datetime) -> datetime | None:
    at = row[target.at]
    return at if isinstance(at, datetime) and now - at > patience else None


def _never(target: Target, answers: Answers) -> str:
    """Why there is no last row."""
    if answers["next"] and isinstance(at := answers["next"][0][target.at], datetime):
        return f"has no row whose time has come: the next is of {tell.moment(at)}"
    return f"has rows, and none of them has a time ({target.at})" if answers["any"] else "has no row at all"


def _silent(
    target: Target, row: Row, at: datetime, patience: timedelta, since: WatchEpisode, many: str, now: datetime
) -> RowFact:
    words = f"has no row since {tell.moment(at)}, for longer than {_hours(patience)} h"
    facts: dict[str, Value] = {"last": at, "age": _hours(now - at), "longer_than": _hours(patience), "unit_of_age": "h"}
    return tell.make_lasting_fact(target, row, since, words, many, **facts)


def _hours(span: timedelta) -> Decimal:
    return plain(round_exact(Fraction(span // timedelta(seconds=1), 3600)))


# --- what lasts -----------------------------------------------------------------------


def _nothing_more(target: Target, state: WatchState, answers: Answers) -> dict[str, Query]:
    return {}


@dataclass(frozen=True, slots=True)
class Sort:
    """One kind of watch. `more` plans follow-up queries. `complete`: it finds everything that holds now, not only what
    is new."""

    plan: Callable[[Target, WatchState, datetime], dict[str, Query]]
    judge: Callable[[Target, Answers, WatchState, datetime], WatchOutcome]
    complete: bool = True
    more: Callable[[Target, WatchState, Answers], dict[str, Query]] = _nothing_more


SORTS: Mapping[str, Sort] = {
    "change": Sort(conditions.plan_change, conditions.judge_change),
    "new_since": Sort(conditions.plan_new, conditions.judge_new, complete=False),
    "top": Sort(conditions.plan_top, conditions.judge_top),
    "threshold": Sort(plan_threshold, judge_threshold),
    "outlier": Sort(plan_outlier, judge_outlier),
    "missing": Sort(plan_missing, judge_missing),
    "where": Sort(conditions.plan_where, conditions.judge_where, complete=False, more=conditions.plan_left),
}


def look_at(target: Target, ask: Callable[[Query], Sequence[Row]], state: WatchState, now: datetime) -> WatchOutcome:
    """Findings, the new state, and notes on what could not be judged; `ask` answers a query."""
    sort = SORTS[target.watch.sort]
    answers = {name: ask(query) for name, query in sort.plan(target, state, now).items()}
    answers |= {name: ask(query) for name, query in sort.more(target, state, answers).items()}
    outcome = sort.judge(target, answers, state, now)
    return replace(outcome, found=tuple(tell.merge(outcome.found)))
