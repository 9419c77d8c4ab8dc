"""What watches find and remember: findings as signals, one per cause, and the state between looks.

Facts are typed, so that a post can be rendered from them; what could not be judged is a note. A signal holds our own
words and numbers, and the cells of rows as marked quotations.

The state is one line of the memory file, bounded for all watches together. If there is no room, values are kept with
fewer digits, then at fewer times, then names as digests, and at last not at all. Nothing is reported twice or wrongly
because of that: forgotten things count as known.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from math import isfinite
from typing import Any

from ralph_mission.adapters.database.model import Row, Value
from ralph_mission.adapters.observers.database.targets import Target, format_value, number, plain
from ralph_mission.adapters.observers.looking import block, one_line
from ralph_mission.config.database import DatabaseWatch
from ralph_mission.mission.model.mission import Signal
from ralph_mission.safety.secrets import redact
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
    rows. `odd` are reported rows without a finite value, which nothing comes after. `truncated`: not all episodes were
    remembered, and an unknown one is no news. `digits`: how many digits of a value are remembered; 0: all.
    """

    started: bool = False
    since: Value = None
    border: tuple[str, ...] = ()
    passed: bool = False
    episodes: tuple[WatchEpisode, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    odd: tuple[str, ...] = ()
    truncated: bool = False
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
        return replace(state, episodes=state.episodes[: len(state.episodes) // 2], truncated=True)
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
        "crowd": state.truncated,
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
    quiet = not state.started or state.truncated
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
    return replace(state, started=True, episodes=(*episodes.values(), *earlier.values()), truncated=False)


def silent(state: WatchState, episodes: Mapping[str, WatchEpisode]) -> tuple[str, ...]:
    """Notes about episodes that are not reported: those of a first look, and those whose start was forgotten."""
    count = sum(one.quiet for one in episodes.values())
    if state.truncated:
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
