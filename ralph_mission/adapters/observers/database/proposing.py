"""Watches that a schema suggests: booleans such as jailed, amounts, histories, and new rows of named things.

No database is queried. Only columns with unambiguous names are proposed; a person removes what is too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralph_mission.adapters.database.model import Catalog, Column, Relation, Shape
from ralph_mission.adapters.observers.database.targets import (
    compact_name,
    name_column,
    name_paths,
    parents,
    plural,
    quality,
    words_of,
)
from ralph_mission.values import dataclass

BAD = frozenset(
    (
        *("jailed", "tombstoned", "slashed", "suspended", "banned", "frozen", "paused", "blocked"),
        *("disabled", "failed", "offline", "halted", "locked", "expired"),
    )
)
GOOD = frozenset(("active", "enabled", "online", "healthy", "alive", "available"))
"""Booleans whose changes in either direction matter to somebody."""
LIVE = ("voting", "live", "open", "failed", "error", "overdue")
STATES = ("status", "state", "phase")
RATES = frozenset(("commission", "commissionrate", "rate", "takerate"))
AMOUNTS = frozenset(("tokens", "stake", "staked", "totalstaked", "balance", "tvl", "apr", "apy", "price", "hashrate"))
COPY_WORDS = frozenset(("history", "snapshot", "snapshots", "daily", "log", "logs", "archive", "backup"))
"""Words in the names of tables that copy other tables: the same would be reported twice."""
WEEKLY = frozenset(("tvl",))
"""Amounts whose changes are worth a post; compared over a week, as is usual for such figures."""
RANKED = ("apr", "apy", "tvl")
NUMBERS = ("int", "decimal", "float", "text")
CREATED = ("createdat", "created", "timestamp", "time", "recordedat")
NEW = 3  # tables whose new rows are proposed
MOST = 14  # watches


@dataclass(frozen=True, slots=True)
class ProposedWatch:
    """A watch as `ralph.yml` has it, and why."""

    settings: Mapping[str, Any]
    why: str

    @property
    def name(self) -> str:
        """Its name in reports."""
        return str(self.settings["name"])


def propose_watches(catalog: Catalog) -> tuple[ProposedWatch, ...]:
    """The watches, most relevant first: each name once, each amount for the table that most others belong to."""
    living = (one for one in catalog.shapes if not COPY_WORDS & {*words_of(one.name).split()})
    shapes = sorted(living, key=lambda one: (-_weight(one, catalog), one.name))
    kinds = (_states, _histories, _amounts, _votes, _rankings, _news)
    found = {one.name: one for kind in reversed(kinds) for one in reversed(list(kind(shapes, catalog)))}
    order = [one.name for kind in kinds for one in kind(shapes, catalog)]
    return tuple(found[name] for name in dict.fromkeys(order))[:MOST]


def _weight(shape: Shape, catalog: Catalog) -> int:
    """How many relations the table has, or the one that it belongs to."""
    own = len(shape.relations)
    return max([own, *(len(catalog.shape(one.target).relations) for one in _owners(shape, catalog))])


def _owners(shape: Shape, catalog: Catalog) -> list[Relation]:
    return [one for one in parents(shape, catalog) if not _column(shape, one.pairs[0][0]).nullable]


def _column(shape: Shape, name: str) -> Column:
    found = shape.column(name)
    assert found is not None  # only relations whose columns exist
    return found


def _states(shapes: Sequence[Shape], catalog: Catalog) -> Iterator[ProposedWatch]:
    for shape in shapes:
        for column in shape.columns if name_paths(shape, catalog) else ():
            word = quality(column)
            if column.type == "bool" and word in BAD | GOOD:
                settings = {"name": _slug(word), "model": shape.name, "where": {column.name: word in BAD}}
                yield ProposedWatch(settings, f"{plural(shape.name)} that become {word}, or cease to be")


def _histories(shapes: Sequence[Shape], catalog: Catalog) -> Iterator[ProposedWatch]:
    """Watches for tables of values over time: large changes, and missing rows."""
    for shape in shapes:
        at, values = _created(shape), [one for one in shape.columns if compact_name(one.name) == "value"]
        owner = _owners(shape, catalog)
        if not at or not values or len(owner) != 1 or name_column(shape):
            continue
        name, by = _slug(words_of(shape.name)), owner[0].pairs[0][0]
        series = {"model": shape.name, "by": by, "at": at}
        moved = {"name": name, **series, "value": values[0].name, "change": {"over": "30%", "within": "24h"}}
        yield ProposedWatch(moved, f"{words_of(shape.name)} that moves by more than 30 % in a day")
        yield ProposedWatch(
            {"name": f"{name}-feed", **series, "missing": "24h"}, f"no new {words_of(shape.name)} for a day"
        )


def _amounts(shapes: Sequence[Shape], catalog: Catalog) -> Iterator[ProposedWatch]:
    for shape in shapes:
        if _created(shape) and not name_column(shape):
            continue  # a log of events: its newest rows are no series
        for column in shape.columns if name_paths(shape, catalog) else ():
            word = compact_name(column.name)
            if column.type not in NUMBERS or column.many or word not in AMOUNTS | RATES:
                continue
            over, within = ("10%", "24h") if word in RATES else ("30%", "7d" if word in WEEKLY else "24h")
            change = {"over": over, "within": within}
            settings = {
                "name": _slug(words_of(column.name)),
                "model": shape.name,
                "value": column.name,
                "change": change,
            }
            post = {"kind": "content", "severity": "low"} if word in WEEKLY else {}
            yield ProposedWatch({**settings, **post}, f"{words_of(column.name)} of {plural(shape.name)} that moves")


def _votes(shapes: Sequence[Shape], catalog: Catalog) -> Iterator[ProposedWatch]:
    for shape in shapes:
        for column in shape.columns:
            if column.type == "enum" and compact_name(column.name) in STATES and name_paths(shape, catalog):
                words = {name: set(words_of(name).split()) for name, _ in column.values}
                live = next((name for wanted in LIVE for name, parts in words.items() if wanted in parts), "")
                if live:
                    name = f"{_slug(words_of(shape.name))}-{_slug(words_of(column.name))}"
                    settings = {"name": name, "model": shape.name, "where": {column.name: live}, "kind": "news"}
                    yield ProposedWatch(settings, f"{plural(shape.name)} that become {live}, and what becomes of them")


def _rankings(shapes: Sequence[Shape], catalog: Catalog) -> Iterator[ProposedWatch]:
    for word in RANKED:
        for shape in shapes:
            column = next((one for one in shape.columns if compact_name(one.name) == word), None)
            if column and column.type in NUMBERS and not _created(shape) and name_paths(shape, catalog):
                top = {"order_by": column.name, "take": 5}
                settings = {
                    "name": f"top-{word}",
                    "model": shape.name,
                    "top": top,
                    "kind": "content",
                    "severity": "low",
                }
                yield ProposedWatch(settings, f"the five with the highest {word}")
                return


def _news(shapes: Sequence[Shape], catalog: Catalog) -> Iterator[ProposedWatch]:
    """New rows of top-level things: they have a name, no parent, and children."""
    hub = next((shape for shape in shapes if name_column(shape)), None)
    alone = [
        shape
        for shape in shapes
        if name_column(shape)
        and (shape is hub or not _owners(shape, catalog))
        and any(one.many for one in shape.relations)
    ]
    for shape in sorted(alone, key=lambda one: -len(one.relations))[:NEW]:
        key = shape.column(shape.key[0]) if len(shape.key) == 1 else None
        since = key.name if key and key.type == "int" else _created(shape)
        if since:
            settings = {"name": f"new-{_slug(plural(shape.name))}", "model": shape.name, "new_since": since}
            yield ProposedWatch({**settings, "kind": "content", "severity": "low"}, f"new {plural(shape.name)}")


def _created(shape: Shape) -> str:
    times = {compact_name(one.name): one.name for one in shape.columns if one.type == "time"}
    return next((times[name] for name in CREATED if name in times), "")


def _slug(words: str) -> str:
    return "-".join(words.split())
