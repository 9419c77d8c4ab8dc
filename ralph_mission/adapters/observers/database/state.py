"""What is remembered of watches from look to look, as one short line of the memory file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ralph_mission.adapters.database.model import Value
from ralph_mission.adapters.observers.database.numbers import format_value
from ralph_mission.config.database import DatabaseWatch
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
