"""The watches' findings as signals: one per cause.

Facts are typed, so that a post can be rendered from them; what could not be judged is a note. A signal holds our own
words and numbers, and the cells of rows as marked quotations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from math import isfinite

from ralph_mission.adapters.database.model import Row, Value
from ralph_mission.adapters.observers.database.state import WatchEpisode, WatchState
from ralph_mission.adapters.observers.database.targets import Target, format_value, number
from ralph_mission.adapters.observers.looking import block, one_line
from ralph_mission.config.database import DatabaseWatch
from ralph_mission.mission.model.mission import Signal
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass

DRAWN = 100  # values of a series
Answers = Mapping[str, Sequence[Row]]
"""The rows of each query of a plan, by its name in the plan."""


@dataclass(frozen=True, slots=True)
class RowFact:
    """One fact. `facts` are ours: numbers, units, the window; `fields` are cells of the row, which are untrusted text.

    `words` say what happened to `name`, the row's readable name. The fingerprint is made of `essence`, the watch and
    its group. Facts with the same `bundle` have one cause: they are reported as one, in the words of `many`.
    """

    watch: str
    group: str
    occurrence: str
    words: str
    facts: tuple[tuple[str, Value], ...] = ()
    fields: tuple[tuple[str, Value], ...] = ()
    series: tuple[tuple[datetime, float], ...] = ()
    name: str = ""
    bundle: str = ""
    many: str = ""

    @property
    def essence(self) -> tuple[str, ...]:
        """Identifies the thing: the same at every look."""
        return ("database", self.watch, self.group)

    def pairs(self) -> tuple[tuple[str, str | int | float], ...]:
        """The facts for a signal: exact numbers as text, times in UTC, cells below `row.`; unknown ones are left
        out."""
        values = (*self.facts, *((f"row.{name}", value) for name, value in self.fields))
        return tuple(
            (name, value if type(value) is int else format_value(value)) for name, value in values if value is not None
        )


def _moved(one: RowFact) -> Decimal:
    percent = dict(one.facts).get("change_percent")
    return percent if isinstance(percent, Decimal) else Decimal(0)


@dataclass(frozen=True, slots=True)
class WatchOutcome:
    """One watch's result at one look. `notes` say what was not compared, and why; they hold no untrusted text."""

    found: tuple[RowFact, ...]
    state: WatchState
    notes: tuple[str, ...] = ()


def make_lasting_fact(target: Target, row: Row, begun: WatchEpisode, words: str, many: str, **facts: Value) -> RowFact:
    """A fact that holds since a look; `many` words it for all that began then."""
    occurrence = format_value(begun.since)
    fact = make_row_fact(target, row, begun.group, occurrence, words, **facts)
    return replace(fact, many=many, bundle=f"{begun.way} {occurrence}") if begun.together else fact


def make_row_fact(target: Target, row: Row, group: str, occurrence: str, words: str, **facts: Value) -> RowFact:
    """A fact about a row; an empty row if the fact is that one is missing."""
    watch = target.watch
    common: dict[str, Value] = {"watch": watch.name, "model": target.shape.name, "sort": watch.sort}
    if group:
        common["group"] = group
    name = target.name(row)
    if name:
        common["name"] = name
    if watch.unit:
        common["unit"] = watch.unit
    fields = tuple((name, row[name]) for name in target.fields if name in row)
    return RowFact(watch.name, group, occurrence, words, tuple({**common, **facts}.items()), fields, name=name)


NAMED = 3  # of a bundle, in its title
LISTED = 20  # of a bundle, with their cells


def merge(found: Iterable[RowFact]) -> Iterator[RowFact]:
    """Merge the facts of each bundle into one, at the place of its first."""
    found = list(found)
    bundles: dict[str, list[RowFact]] = {}
    for one in found:
        bundles.setdefault(one.bundle, []).append(one)
    for one in found:
        if not one.bundle:
            yield one
        elif bundles[one.bundle][0] is one:
            yield _merged(bundles[one.bundle])


def _merged(alike: Sequence[RowFact]) -> RowFact:
    alike = sorted(alike, key=lambda one: (-abs(_moved(one)), one.name or one.group))
    first = alike[0]
    names = [one.name or one.group for one in alike]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    called = ", ".join(names[:NAMED]) + more
    shared = set.intersection(*({*one.facts} for one in alike))
    own = (pair for pair in first.facts if pair in shared and pair[0] not in ("group", "name"))
    cells = ((f"{place}.{name}", value) for place, one in enumerate(alike[:LISTED], 1) for name, value in one.fields)
    return RowFact(
        first.watch,
        "",
        first.occurrence,
        f"{len(alike)} {first.many}",
        (*own, ("count", len(alike)), ("name", called)),
        tuple(cells),
        name=called,
        bundle=first.bundle,
    )


def notes(reasons: Iterable[str], total: int) -> tuple[str, ...]:
    """What was not judged, counted by reason."""
    return tuple(f"{number} of {total} not judged: {reason}" for reason, number in sorted(Counter(reasons).items()))


def full(rows: Sequence[Row], limit: int) -> tuple[str, ...]:
    """The note for an answer that reached the maximum length."""
    return (f"only the first {limit:,} rows were read",) if len(rows) >= limit else ()


def series(points: Iterable[tuple[Value, Value]]) -> tuple[tuple[datetime, float], ...]:
    """Times and values for a chart, oldest first: the last ones, without those that a float cannot hold."""
    numbers = ((at, number(value)) for at, value in points if isinstance(at, datetime))
    known = sorted((at, float(value)) for at, value in numbers if value is not None)
    return tuple(point for point in known if isfinite(point[1]))[-DRAWN:]


APART = 3  # episodes of one look that are reported one by one; more have one cause


def begin(
    state: WatchState, present: Mapping[str, str], now: datetime, apart: int = APART, joining: timedelta | None = None
) -> dict[str, WatchEpisode]:
    """Since when each group is in its state, by direction: as remembered, else since now.

    At the first look nothing is news. More than `apart` that begin at once in the same direction begin `together`, also
    with those that did within `joining`.
    """
    before = {one.group: one for one in state.episodes}
    fresh = {group: way for group, way in present.items() if group not in before or before[group].way != way}
    many = Counter(fresh.values())
    quiet = not state.started or state.crowd
    running = {
        one.way: one
        for one in state.episodes
        if joining and one.together and not one.quiet and now - one.since < joining
    }

    def began(group: str, way: str) -> WatchEpisode:
        if way in running and not quiet:
            return replace(running[way], group=group)
        return WatchEpisode(group, now, way, quiet, many[way] > apart)

    lasting = {one.group: one for one in state.episodes if one.group in present and one.group not in fresh}
    return {**lasting, **{group: began(group, way) for group, way in fresh.items()}}


def mark_told(state: WatchState, episodes: Mapping[str, WatchEpisode], keep: Iterable[WatchEpisode] = ()) -> WatchState:
    """The state with the current episodes, and the earlier ones that must still be remembered."""
    earlier = {one.group: one for one in keep if one.group not in episodes}
    return replace(state, started=True, episodes=(*episodes.values(), *earlier.values()), crowd=False)


def silent(state: WatchState, episodes: Mapping[str, WatchEpisode]) -> tuple[str, ...]:
    """Notes about episodes that are not reported: those of a first look, and those whose start was forgotten."""
    count = sum(one.quiet for one in episodes.values())
    if state.crowd:
        return (f"{len(episodes)} at once are too many to remember: which of them are new is not known",)
    return (f"{count} as they were before the first look",) if count and not state.started else ()


def way(value: Decimal, base: Decimal) -> str:
    """The direction in which a value left its base."""
    return "up" if value > base else "down"


def moment(at: datetime) -> str:
    """A time for people, to the minute."""
    return format_value(at)[:16].replace("T", " ") + " UTC"


UNTRUSTED = "cells of the row, untrusted, quoted"
CELL = 200  # characters


def build_signal(watch: DatabaseWatch, found: RowFact, secrets: Sequence[str] = ()) -> Signal:
    """One finding. `secrets` are values that must not be shown, such as a password."""
    cells = [f"> {name}: {_cell(value, secrets)}" for name, value in found.pairs() if name.startswith("row.")]
    quoted = f"\n({UNTRUSTED}):\n" + "\n".join(cells) if cells else ""
    called = subject(watch, found)
    words = f"{found.words}: {called}" if found.bundle else f"{called} {found.words}"
    facts = (
        (name, value if isinstance(value, int | float) else _cell(value, secrets)) for name, value in found.pairs()
    )
    return Signal(
        observer="database",
        kind=watch.kind,
        title=one_line(redact(f"{watch.name}: {words}", secrets)),
        essence=found.essence,
        occurrence=found.occurrence,
        severity=watch.severity,
        confidence=0.9,
        effort=2.0,
        detail=block(f"{watch.source}, watched as {watch.name} ({watch.sort}): {found.words}.{quoted}"),
        facts=tuple(facts),
        series=found.series,
    )


def subject(watch: DatabaseWatch, found: RowFact) -> str:
    """The readable name of the thing; else the group, else the table."""
    return found.name or found.group or watch.source


def _cell(value: str | int | float, secrets: Sequence[str]) -> str:
    return redact(one_line(str(value), CELL), secrets)
