"""What a watch found: typed facts that a post can be rendered from, and what could not be judged, said in words.

What watches found as signals: our own words and numbers, and the cells of rows as quotations marked as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from math import isfinite

from ralph_mission.adapters.database.model import Row, Value
from ralph_mission.adapters.observers.database.numbers import format_value, number
from ralph_mission.adapters.observers.database.state import EPISODES, WatchEpisode, WatchState
from ralph_mission.adapters.observers.database.targets import Target
from ralph_mission.adapters.observers.text import block, one_line
from ralph_mission.config.database import DatabaseWatch
from ralph_mission.mission.model.mission import Signal
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass

DRAWN = 100  # values of a series
Answers = Mapping[str, Sequence[Row]]
"""The rows that each query of a plan brought, by its name in the plan."""


@dataclass(frozen=True, slots=True)
class RowFact:
    """One fact. `facts` are ours: numbers, units, the window; `fields` are cells of the row, which are foreign text.

    `words` say in our own words what happened. The fingerprint is made of `essence`, the watch and its group.
    """

    watch: str
    group: str
    occurrence: str
    words: str
    facts: tuple[tuple[str, Value], ...] = ()
    fields: tuple[tuple[str, Value], ...] = ()
    series: tuple[tuple[datetime, float], ...] = ()

    @property
    def essence(self) -> tuple[str, ...]:
        """Which thing: the same at every look."""
        return ("database", self.watch, self.group)

    def pairs(self) -> tuple[tuple[str, str | int | float], ...]:
        """As a signal carries them: exact numbers as text, times in UTC, cells below `row.`; unknown ones left out."""
        told = (*self.facts, *((f"row.{name}", value) for name, value in self.fields))
        return tuple(
            (name, value if type(value) is int else format_value(value)) for name, value in told if value is not None
        )


@dataclass(frozen=True, slots=True)
class WatchOutcome:
    """Of one watch at one look. `notes` say what was not compared, and why; they hold no foreign text."""

    found: tuple[RowFact, ...]
    state: WatchState
    notes: tuple[str, ...] = ()


def make_row_fact(target: Target, row: Row, group: str, occurrence: str, words: str, **facts: Value) -> RowFact:
    """A fact about a row, or with an empty row about what is not there."""
    watch = target.watch
    common: dict[str, Value] = {"watch": watch.name, "model": target.shape.name, "sort": watch.sort}
    if group:
        common["group"] = group
    if watch.unit:
        common["unit"] = watch.unit
    fields = tuple((name, row[name]) for name in target.fields if name in row)
    return RowFact(watch.name, group, occurrence, words, tuple({**common, **facts}.items()), fields)


def notes(reasons: Iterable[str], total: int) -> tuple[str, ...]:
    """What was not judged, counted by reason."""
    return tuple(f"{number} of {total} not judged: {reason}" for reason, number in sorted(Counter(reasons).items()))


def full(rows: Sequence[Row], limit: int) -> tuple[str, ...]:
    """Said when an answer was as long as an answer may be."""
    return (f"only the first {limit:,} rows were read",) if len(rows) >= limit else ()


def series(points: Iterable[tuple[Value, Value]]) -> tuple[tuple[datetime, float], ...]:
    """Times and values, oldest first, as a chart takes them: the last ones, and none that a float cannot hold."""
    told = ((at, number(value)) for at, value in points if isinstance(at, datetime))
    known = sorted((at, float(value)) for at, value in told if value is not None)
    return tuple(point for point in known if isfinite(point[1]))[-DRAWN:]


def episode(state: WatchState, group: str, way: str) -> WatchEpisode | None:
    """What was told of a group before, the same way; of one that there was no room to remember, as of the others."""
    known = next((one for one in state.episodes if one.group == group), None)
    if known is None:
        return WatchEpisode(group, state.crowd, way) if state.crowd else None
    return known if known.way == way else None


def limit_episodes(state: WatchState, told: Mapping[str, WatchEpisode]) -> dict[str, WatchEpisode]:
    """What is told now, those remembered longest first; those that nobody will remember all began at one time."""
    before = [one.group for one in state.episodes if one.group in told]
    order = {group: told[group] for group in (*before, *told)}
    late = list(order)[EPISODES:]
    since = max((told[group].since for group in late), default=None)
    return {**order, **{group: replace(told[group], since=since) for group in late if since}}


def crowd(told: Mapping[str, WatchEpisode]) -> tuple[str, ...]:
    """Said when more groups are told at a time than can be remembered one by one."""
    many = f"{len(told)} groups at once: those after the first {EPISODES} are reported as if they had begun together"
    return (many,) if len(told) > EPISODES else ()


def telling(state: WatchState, told: Mapping[str, WatchEpisode], keep: Iterable[WatchEpisode] = ()) -> WatchState:
    """The state with what is told now, and those before it that are still to be remembered."""
    kept = {one.group: one for one in keep if one.group not in told}
    episodes = (*told.values(), *kept.values())
    crowd = episodes[EPISODES].since if len(episodes) > EPISODES else None
    return replace(state, started=True, episodes=episodes, crowd=crowd)


def way(value: Decimal, base: Decimal) -> str:
    """In which direction a value left its base."""
    return "up" if value > base else "down"


def moment(at: datetime) -> str:
    """A time for people, to the minute."""
    return format_value(at)[:16].replace("T", " ") + " UTC"


UNTRUSTED = "cells of the row, untrusted, quoted"
CELL = 200  # characters


def signal(watch: DatabaseWatch, found: RowFact, hidden: Sequence[str] = ()) -> Signal:
    """One finding. `hidden` are values that must not be shown, such as a password."""
    cells = [f"> {name}: {_cell(value, hidden)}" for name, value in found.pairs() if name.startswith("row.")]
    quoted = f"\n({UNTRUSTED}):\n" + "\n".join(cells) if cells else ""
    facts = ((name, value if isinstance(value, int | float) else _cell(value, hidden)) for name, value in found.pairs())
    return Signal(
        observer="database",
        kind=watch.kind,
        title=one_line(redact(f"{watch.name}: {subject(watch, found)} {found.words}", hidden)),
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
    """What it is about, as people call it: what is included first, else the group, else the table."""
    first = watch.include[0] if watch.include else None
    names = [
        format_value(value) for name, value in found.fields if first and (name == first or name.endswith(f".{first}"))
    ]
    return ", ".join(filter(None, names)) or found.group or watch.source


def _cell(value: str | int | float, hidden: Sequence[str]) -> str:
    return redact(one_line(str(value), CELL), hidden)
