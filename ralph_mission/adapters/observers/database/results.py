"""What watches found, as signals, and what is remembered of them from look to look.

Facts are typed, so that a post can be rendered from them; what could not be judged is said in words. A signal holds
our own words and numbers, and the cells of rows as quotations marked as such. What is remembered is one short line
of the memory file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

from ralph_mission.adapters.database.model import Row, Value
from ralph_mission.adapters.observers.database.targets import Target, format_value, number
from ralph_mission.adapters.observers.text import block, one_line
from ralph_mission.config.database import DatabaseWatch
from ralph_mission.mission.model.mission import Signal
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass

EPISODES = 200  # groups that are told of at a time
SAMPLES = 400  # values remembered for one watch
ROOM = 80_000  # characters for all watches: memory has room for everybody's cursors together


@dataclass(frozen=True, slots=True)
class WatchEpisode:
    """What was told of a group: `since` is its occurrence, `way` says up or down."""

    group: str
    since: datetime
    way: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value as it once was, where the database itself keeps no history."""

    group: str
    at: datetime
    value: Decimal


@dataclass(frozen=True, slots=True)
class WatchState:
    """`started`: a first look was taken. `since` is how far `new_since` got, null before any row;
    `border` are the rows at that very value which are known: several may share a time. `passed`: all of them are.
    `odd` are rows without a finite value that were told: nothing comes after them. `crowd` is there when more groups
    were told than can be remembered: those that are not are taken for told since then.
    """

    started: bool = False
    since: Value = None
    border: tuple[str, ...] = ()
    passed: bool = False
    episodes: tuple[WatchEpisode, ...] = ()
    samples: tuple[Sample, ...] = ()
    odd: tuple[str, ...] = ()
    crowd: datetime | None = None


def about(watch: DatabaseWatch) -> str:
    """Which question a state answers. Another kind, unit or severity does not make it another question."""
    asked = watch.model_dump(mode="json", exclude={"name", "kind", "unit", "severity", "include"})
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def load(kept: str, watches: tuple[DatabaseWatch, ...]) -> dict[str, WatchState]:
    """By watch. What cannot be read, or belongs to other settings, is a first look."""
    try:
        found = json.loads(kept)
    except (ValueError, RecursionError):
        found = {}
    entries = found if isinstance(found, dict) else {}
    return {watch.name: _load(entries.get(watch.name), about(watch)) for watch in watches}


def dump(states: Mapping[str, WatchState], watches: tuple[DatabaseWatch, ...]) -> str:
    """On one line; only what differs from a first look."""
    kept = {watch.name: _dump(states[watch.name], about(watch)) for watch in watches if watch.name in states}
    kept = {name: entry for name, entry in kept.items() if len(entry) > 1}
    sizes = {name: len(json.dumps(entry)) for name, entry in kept.items()}
    while sum(sizes.values()) > ROOM and _shorten(kept[largest := max(sizes, key=lambda name: sizes[name])]):
        sizes[largest] = len(json.dumps(kept[largest]))
    return json.dumps(kept, separators=(",", ":"))


def _shorten(entry: dict[str, Any]) -> bool:
    """With the later half of its longest list; False when it has none."""
    longest = max(("border", "odd", "told", "values"), key=lambda name: len(entry.get(name, ())))
    if not entry.get(longest):
        return False
    half = len(entry[longest]) // 2
    if longest == "told":
        entry["crowd"] = entry.get("crowd") or max(since for _, since, _ in entry["told"])
        entry["told"] = entry["told"][:half]
    elif longest == "border":
        entry["border"], entry["passed"] = [], True  # rows that share its value are taken for known
    else:
        entry[longest] = entry[longest][half + 1 :]
    return True


def _dump(state: WatchState, asked: str) -> dict[str, Any]:
    entry = {
        "since": _encode(state.since) if state.started else None,
        "border": list(state.border),
        "passed": state.passed,
        "odd": list(state.odd),
        "told": [[one.group, format_value(one.since), one.way] for one in state.episodes[:EPISODES]],
        "crowd": format_value(state.crowd) if state.crowd else None,
        "values": [[one.group, format_value(one.at), str(one.value)] for one in state.samples[-SAMPLES:]],
    }
    return {"about": asked, **{name: value for name, value in entry.items() if value}}


def _load(entry: Any, asked: str) -> WatchState:
    with suppress(ValueError, TypeError, KeyError, InvalidOperation):
        if entry["about"] == asked:
            return WatchState(
                "since" in entry,
                _decode(entry["since"]) if "since" in entry else None,
                tuple(map(str, entry.get("border", ()))),
                bool(entry.get("passed", False)),
                tuple(WatchEpisode(str(group), _time(at), str(way)) for group, at, way in entry.get("told", ())),
                tuple(Sample(str(group), _time(at), _finite(value)) for group, at, value in entry.get("values", ())),
                tuple(map(str, entry.get("odd", ()))),
                _time(entry["crowd"]) if "crowd" in entry else None,
            )
    return WatchState()


def _encode(value: Value) -> list[str]:
    kinds = {bool: "bool", int: "int", Decimal: "decimal", datetime: "time", type(None): "null"}
    return [kinds.get(type(value), "text"), format_value(value)]


def _decode(pair: Any) -> Value:
    kind, said = pair
    if not isinstance(said, str):
        raise TypeError
    return _READERS[kind](said)


def _time(said: Any) -> datetime:
    at = datetime.fromisoformat(said)
    if at.tzinfo is None:
        raise ValueError
    return at


def _finite(said: Any) -> Decimal:
    value = Decimal(str(said))
    if not value.is_finite():
        raise ValueError
    return value


_READERS: Mapping[str, Callable[[str], Value]] = {
    "bool": lambda said: said == "true",
    "int": int,
    "decimal": _finite,
    "time": _time,
    "null": lambda said: None,
    "text": str,
}


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


def mark_told(state: WatchState, told: Mapping[str, WatchEpisode], keep: Iterable[WatchEpisode] = ()) -> WatchState:
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


def build_signal(watch: DatabaseWatch, found: RowFact, hidden: Sequence[str] = ()) -> Signal:
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
