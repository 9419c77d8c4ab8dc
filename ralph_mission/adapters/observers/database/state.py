"""The watches' state between looks: one line of the memory file, bounded for all watches together.

If there is no room, values are kept with fewer digits, then at fewer times, then names as digests, and at last not at
all. Nothing is reported twice or wrongly because of that: forgotten things count as known.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from ralph_mission.adapters.database.model import Value
from ralph_mission.adapters.observers.database.targets import format_value, plain
from ralph_mission.config.database import DatabaseWatch
from ralph_mission.values import dataclass

ROOM = 96_000  # characters for all watches: memory has room for everybody's cursors together
DIGITS = 6  # significant digits of a value if there is no room for all
LONG = 12  # characters of a series' name; a longer one is kept as its digest
QUIET, TOGETHER = "q", "t"


@dataclass(frozen=True, slots=True)
class WatchEpisode:
    """A group's state since a look; `way` is its direction: up, down.

    `quiet`: it began before the first look, or may have been reported already. `together`: it began with many others,
    and they are reported as one.
    """

    group: str
    since: datetime
    way: str = ""
    quiet: bool = False
    together: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values of all series at one look, by `series_key`, if the database keeps no history."""

    at: datetime
    values: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class WatchState:
    """`started`: a first look was taken. `since` is how far `new_since` got, null before any row; `border` are the
    known rows at that value: several may share a time. `passed`: all of them are known. In a ranking, `border` are its
    rows. `odd` are reported rows without a finite value, which nothing comes after. `crowd`: not all episodes were
    remembered, and an unknown one is no news. `digits`: how many digits of a value are remembered; 0: all.
    """

    started: bool = False
    since: Value = None
    border: tuple[str, ...] = ()
    passed: bool = False
    episodes: tuple[WatchEpisode, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    odd: tuple[str, ...] = ()
    crowd: bool = False
    digits: int = 0


def about(watch: DatabaseWatch) -> str:
    """Identifies the query a state belongs to. A different kind, unit or severity is still the same query."""
    settings = watch.model_dump(mode="json", exclude={"name", "kind", "unit", "severity", "include"})
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def series_key(group: str) -> str:
    """A series's key beside its values: its name, or eleven letters of its digest."""
    if len(group) <= LONG:
        return group
    return "~" + urlsafe_b64encode(hashlib.sha256(group.encode("utf-8", "replace")).digest()).decode()[:11]


def rounded(value: Decimal, digits: int) -> Decimal:
    """Round to a number of significant digits; 0: unchanged."""
    if not digits:
        return value
    with localcontext(prec=digits):
        return plain(+value)


# --- to read --------------------------------------------------------------------------


def load(text: str, watches: tuple[DatabaseWatch, ...]) -> dict[str, WatchState]:
    """States by watch. One that cannot be read, or belongs to other settings, is a first look."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = {}
    entries = found if isinstance(found, dict) else {}
    return {watch.name: _load(entries.get(watch.name), watch) for watch in watches}


def _load(entry: Any, watch: DatabaseWatch) -> WatchState:
    with suppress(ValueError, TypeError, KeyError, InvalidOperation, AttributeError):
        # Earlier versions did not remember sets and rankings.
        old = "lasting" not in entry
        if entry["about"] == about(watch) and not (old and watch.sort in ("where", "top", "missing")):
            return WatchState(
                "since" in entry,
                _decode(entry["since"]) if "since" in entry else None,
                tuple(map(str, entry.get("border", ()))),
                bool(entry.get("passed", False)),
                tuple(_old_episodes(entry) if old else _episodes(entry)),
                tuple(_old_snapshots(entry) if isinstance(entry.get("values"), list) else _snapshots(entry)),
                tuple(map(str, entry.get("odd", ()))),
                bool(entry.get("crowd", False)),
                int(entry.get("digits", 0)),
            )
    return WatchState()


def _episodes(entry: Any) -> Iterable[WatchEpisode]:
    for since, way, flags, groups in entry["lasting"]:
        at = _time(since)
        yield from (WatchEpisode(str(one), at, str(way), QUIET in flags, TOGETHER in flags) for one in groups)


def _old_episodes(entry: Any) -> Iterable[WatchEpisode]:
    return (WatchEpisode(str(group), _time(at), str(way)) for group, at, way in entry.get("told", ()))


def _snapshots(entry: Any) -> Iterable[Snapshot]:
    times = [_time(at) for at in entry.get("looks", ())]
    values: list[dict[str, Decimal]] = [{} for _ in times]
    for key, text in entry.get("values", {}).items():
        last = ""
        parts = text.split(",")
        for place, one in enumerate([*parts, *[""] * (len(times) - len(parts))][: len(times)]):
            last = one or last
            if last != "-":
                values[place][str(key)] = _finite(last)
    return map(Snapshot, times, values)


def _old_snapshots(entry: Any) -> Iterable[Snapshot]:
    """Snapshots of an earlier format: one value each with its group and time."""
    looks: dict[datetime, dict[str, Decimal]] = defaultdict(dict)
    for group, at, value in entry["values"]:
        looks[_time(at)][series_key(str(group))] = _finite(value)
    return (Snapshot(at, looks[at]) for at in sorted(looks))


def _decode(pair: Any) -> Value:
    kind, text = pair
    if not isinstance(text, str):
        raise TypeError
    return _READERS[kind](text)


def _time(text: Any) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError
    return at


def _finite(raw: Any) -> Decimal:
    value = Decimal(str(raw))
    if not value.is_finite():
        raise ValueError
    return value


_READERS: Mapping[str, Callable[[str], Value]] = {
    "bool": lambda word: word == "true",
    "int": int,
    "decimal": _finite,
    "time": _time,
    "null": lambda _: None,
    "text": str,
}


# --- to write -------------------------------------------------------------------------


def dump(states: Mapping[str, WatchState], watches: tuple[DatabaseWatch, ...]) -> str:
    """Write the states on one line; only differences from a first look, within the room there is."""
    entries = {watch.name: states[watch.name] for watch in watches if watch.name in states}
    digests = {watch.name: about(watch) for watch in watches}
    written = {name: _write(state, digests[name]) for name, state in entries.items()}
    while sum(map(len, written.values())) > ROOM:
        largest = max(written, key=lambda name: len(written[name]))
        entries[largest] = _shorten(entries[largest])
        written[largest] = _write(entries[largest], digests[largest])
    bare = {name for name in written if entries[name] == WatchState()}
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in written.items() if name not in bare) + "}"


def _shorten(state: WatchState) -> WatchState:
    """The state with less of its largest part."""
    values = sum(len(one.values) for one in state.snapshots)
    lists = {"values": values, "episodes": len(state.episodes), "border": len(state.border), "odd": len(state.odd)}
    longest = max(lists, key=lambda name: lists[name])
    if longest == "values":
        return _shorten_values(state)
    if longest == "episodes":
        return replace(state, episodes=state.episodes[: len(state.episodes) // 2], crowd=True)
    if longest == "border":
        return replace(state, border=(), passed=True)  # rows that share its value count as known
    return replace(state, odd=state.odd[len(state.odd) // 2 + 1 :]) if state.odd else WatchState()


def _shorten_values(state: WatchState) -> WatchState:
    if not state.digits:
        shorter = ({key: rounded(value, DIGITS) for key, value in one.values.items()} for one in state.snapshots)
        looks = tuple(replace(one, values=values) for one, values in zip(state.snapshots, shorter, strict=True))
        return replace(state, snapshots=looks, digits=DIGITS)
    if len(state.snapshots) > 1:
        return replace(state, snapshots=(*state.snapshots[:-2], state.snapshots[-1]))
    only = state.snapshots[0]
    half = sorted(only.values)[: len(only.values) // 2]
    return replace(state, snapshots=(replace(only, values={key: only.values[key] for key in half}),) if half else ())


def _write(state: WatchState, digest: str) -> str:
    entry = {
        "since": _encode(state.since) if state.started else None,
        "border": list(state.border),
        "passed": state.passed,
        "odd": list(state.odd),
        "crowd": state.crowd,
        "looks": [format_value(one.at) for one in state.snapshots],
        "values": _write_values(state.snapshots),
        "digits": state.digits,
    }
    document = {"about": digest, **{name: value for name, value in entry.items() if value}, "lasting": _lasting(state)}
    return json.dumps(document, separators=(",", ":"))


def _lasting(state: WatchState) -> list[list[Any]]:
    alike: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in state.episodes:
        flags = QUIET * one.quiet + TOGETHER * one.together
        alike[format_value(one.since), one.way, flags].append(one.group)
    return [[*key, groups] for key, groups in alike.items()]


def _write_values(snapshots: tuple[Snapshot, ...]) -> dict[str, str]:
    """Each series's values, oldest first: empty if unchanged, `-` if missing."""
    written = {}
    for key in sorted({key for one in snapshots for key in one.values}):
        texts = [str(plain(one.values[key])) if key in one.values else "-" for one in snapshots]
        shorter = [one if not place or one != texts[place - 1] else "" for place, one in enumerate(texts)]
        written[key] = ",".join(shorter).rstrip(",")
    return written


def _encode(value: Value) -> list[str]:
    kinds = {bool: "bool", int: "int", Decimal: "decimal", datetime: "time", type(None): "null"}
    return [kinds.get(type(value), "text"), format_value(value)]
