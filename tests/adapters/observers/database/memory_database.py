"""A `Database` over lists of dictionaries: what `queries` says, taken by its word."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cmp_to_key

from ralph_mission.adapters.database.model import Catalog, Column, Database, Relation, Shape, read_text
from ralph_mission.adapters.database.statements import cell
from ralph_mission.adapters.observers.database.results import WatchState, dump, load
from ralph_mission.adapters.observers.database.targets import find_target
from ralph_mission.adapters.observers.database.watches import look_at
from ralph_mission.config.database import DatabaseWatch

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)

CATALOG = Catalog(
    (
        Shape(
            "Chain",
            "chains",
            "",
            (
                Column("id", "id", "int", unique=True),
                Column("name", "name", "text"),
                Column("tvl", "tvl", "decimal", True),
            ),
            ("id",),
            (
                Relation("aprs", "Apr", True, (("id", "chainId"),)),
                Relation("votes", "Vote", True, (("id", "chainId"),)),
            ),
        ),
        Shape(
            "Apr",
            "aprs",
            "",
            (
                Column("id", "id", "int", unique=True),
                Column("chainId", "chain_id", "int"),
                Column("createdAt", "created_at", "time"),
                Column("value", "value", "decimal", True),
                Column("status", "status", "enum", values=(("VOTING", "voting"), ("OVER", "over"))),
                Column("labels", "labels", "text", many=True),
            ),
            ("id",),
            (Relation("chain", "Chain", False, (("chainId", "id"),)),),
        ),
        Shape(
            "Vote",
            "votes",
            "",
            (
                Column("id", "id", "int", unique=True),
                Column("chainId", "chain_id", "int"),
                Column("at", "at", "time"),
                Column("weight", "weight", "decimal"),
            ),
            ("id",),
        ),
        Shape(
            "Node",
            "nodes",
            "",
            (
                Column("id", "id", "int", unique=True),
                Column("chainId", "chain_id", "int"),
                Column("moniker", "moniker", "text"),
                Column("tokens", "tokens", "text"),
                Column("seen", "seen", "text", True),
                Column("jailed", "jailed", "bool"),
            ),
            ("id",),
            (Relation("chain", "Chain", False, (("chainId", "id"),)),),
        ),
        Shape("Log", "logs", "", (Column("line", "line", "text"), Column("n", "n", "int"))),
    ),
    "schema.prisma",
)


@dataclass
class Memory(Database):
    tables: dict = field(default_factory=dict)

    def describe(self, interest=None):
        return CATALOG

    def rows(self, query):
        shape = read_text(CATALOG, query.source, query.read_as).shape(query.source)
        texts = [column for column in shape.columns if column.text]
        found = [{**row, **{one.name: cell(row[one.name], one) for one in texts}} for row in self._table(shape)]
        found = [row for row in found if all(_holds(row, one) for one in query.where)]
        for order in reversed(query.order):
            found.sort(key=cmp_to_key(lambda a, b, order=order: _compared(a[order.field], b[order.field], order)))
        if query.first_of:
            found = list({row[query.first_of]: row for row in reversed(found)}.values())[::-1]
        return [self._told(shape, row, query) for row in found[: query.limit]]

    def _table(self, shape):
        return self.tables.get(shape.name, [])

    def _told(self, shape, row, query):
        made = {name: self._cell(shape, row, name.split(".")) for name in query.fields}
        for one in query.aggregates:
            (ours, theirs), *_ = shape.relation(one.relation).pairs
            related = self.tables.get(shape.relation(one.relation).target, [])
            mine = [r for r in related if r[theirs] == row[ours] and all(_holds(r, f) for f in one.where)]
            made[one.name] = len(mine) if one.function == "count" else sum((r[one.field] for r in mine), Decimal(0))
        return made

    def _cell(self, shape, row, path):
        if len(path) == 1 or row is None:
            return row and row[path[0]]
        relation = shape.relation(path[0])
        (ours, theirs), *_ = relation.pairs
        other = next((r for r in self.tables.get(relation.target, ()) if r[theirs] == row[ours]), None)
        return self._cell(CATALOG.shape(relation.target), other, path[1:])


def _holds(row, one):
    value = _ordered(row[one.field])
    if one.operator == "known":
        return value is not None
    if one.operator in ("=", "in"):
        return value in (one.value if one.operator == "in" else (one.value,))
    if value is None:
        return False
    holds = {
        ">": value > one.value,
        ">=": value >= one.value,
        "<": value < one.value,
        "<=": value <= one.value,
    }
    return holds[one.operator]


def _ordered(value):
    """As PostgreSQL has it: what is no number comes after all numbers."""
    return Decimal("Infinity") if isinstance(value, Decimal) and value.is_nan() else value


def _compared(a, b, order):
    if a is None or b is None:
        return (a is None) - (b is None)
    a, b = _ordered(a), _ordered(b)
    return ((a > b) - (a < b)) * (-1 if order.descending else 1)


def look(database, settings, state=None, now=NOW):
    """One look; without a state of a watch that looked before and found nothing, but for `new_since`.

    Its state is carried through the memory file's text.
    """
    watch = DatabaseWatch.model_validate({"name": "w", **settings})
    before = state or WatchState(started="new_since" not in settings)
    outcome = look_at(find_target(watch, database.describe()), database.rows, before, now)
    assert load(dump({watch.name: outcome.state}, (watch,)), (watch,))[watch.name].episodes == outcome.state.episodes
    return outcome


def first_look(database, settings, now=NOW):
    """One look of a watch that never looked."""
    return look(database, settings, WatchState(), now)
