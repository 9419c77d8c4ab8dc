"""A database's reflected `Catalog`: names and keys of all tables, columns of needed ones.

A relation is named by its column without `_id` (`chain_id` leads to `chain`), or else by its target table; the inverse
is named by its source table.

To find out whether a role could write, it tries statements that change no row, in a transaction that is rolled back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.engine.reflection import Inspector, ObjectKind
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import Executable

from ralph_mission.adapters.database.model import Catalog, Column, Relation, Shape, Type
from ralph_mission.adapters.database.sessions import Caps, trying
from ralph_mission.values import dataclass

KINDS: Sequence[tuple[type | tuple[type, ...], Type]] = (
    (sa.Enum, "enum"),
    (sa.Boolean, "bool"),
    (sa.Integer, "int"),
    ((sa.Float, sa.Double), "float"),
    (sa.Numeric, "decimal"),
    ((sa.DateTime, sa.Date), "time"),
    (sa.JSON, "json"),
    ((sa.String, sa.Uuid, pg.INET, pg.CIDR, pg.MACADDR), "text"),
    ((sa.LargeBinary, pg.BYTEA), "bytes"),
)
"""The first that fits; what is none of them is `other`, and cannot be told."""
NATIVE = (sa.Enum, sa.Float, sa.Double, sa.Uuid, pg.INET, pg.CIDR, pg.MACADDR, pg.CITEXT)
"""A text has to be cast to these before a comparison."""
Place = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A foreign key, by column names."""

    here: Place
    there: Place
    pairs: tuple[tuple[str, str], ...]
    name: str


def skeleton(inspector: Inspector, schemas: Iterable[str | None]) -> Catalog:
    """All tables and views of schemas with keys and relations, without columns."""
    found = [(schema, *_skeleton(inspector, schema)) for schema in dict.fromkeys(schemas)]
    shapes = [shape for _, ones, _ in found for shape in ones]
    places = {(shape.schema or None, shape.table) for shape in shapes}
    keys = [key for _, _, ones in found for key in ones if {key.here, key.there} <= places]
    return Catalog(tuple(replace(shape, relations=tuple(_relations(shape, keys))) for shape in shapes))


def add_columns(inspector: Inspector, catalog: Catalog, places: Collection[str]) -> Catalog:
    """Add missing columns of the tables at `places`."""
    bare = [shape for shape in catalog.shapes if shape.place in places and not shape.columns]
    columns: dict[str, tuple[Column, ...]] = {}
    for schema in {shape.schema or None for shape in bare}:
        names = [shape.table for shape in bare if (shape.schema or None) == schema]
        read = inspector.get_multi_columns(schema=schema, filter_names=names, kind=ObjectKind.ANY)
        for (_, table), ones in read.items():
            columns[f"{schema}.{table}" if schema else table] = tuple(_column(one, inspector.dialect) for one in ones)
    return replace(
        catalog, shapes=tuple(replace(one, columns=columns.get(one.place, one.columns)) for one in catalog.shapes)
    )


def _skeleton(inspector: Inspector, schema: str | None) -> tuple[list[Shape], list[_Foreign]]:
    where: Mapping[str, Any] = {"schema": schema, "kind": ObjectKind.ANY}
    primary = inspector.get_multi_pk_constraint(**where)
    tables = {*primary, *((schema, name) for name in _views(inspector, schema))}
    shapes = [
        Shape(
            name,
            name,
            schema or "",
            (),
            tuple(key["constrained_columns"]) if (key := primary.get((schema, name))) else (),
        )
        for _, name in sorted(tables, key=lambda place: place[1])
    ]
    return shapes, list(_foreign(inspector.get_multi_foreign_keys(**where)))


def _views(inspector: Inspector, schema: str | None) -> Iterator[str]:
    yield from inspector.get_view_names(schema)
    if inspector.dialect.name == "postgresql":
        yield from inspector.get_materialized_view_names(schema)


def _foreign(read: Mapping[Place, Sequence[Mapping[str, Any]]]) -> Iterator[_Foreign]:
    for (schema, table), keys in read.items():
        for key in keys:
            pairs = tuple(zip(key["constrained_columns"], key["referred_columns"], strict=False))
            there = (key.get("referred_schema") or schema, key["referred_table"])
            yield _Foreign((schema, table), there, pairs, key.get("name") or "")


def _relations(shape: Shape, keys: Sequence[_Foreign]) -> Iterator[Relation]:
    here: Place = (shape.schema or None, shape.table)
    out = [key for key in keys if key.here == here]
    back = [key for key in keys if key.there == here]
    names = Counter(_forward(key) for key in out)
    for key in out:
        name = _forward(key) if names[_forward(key)] == 1 else "_".join(ours for ours, _ in key.pairs)
        yield Relation(name, _place(key.there), False, key.pairs)
    counts = Counter(key.here[1] for key in back)
    for key in back:
        table = key.here[1]
        name = table if counts[table] == 1 else f"{table}_{_forward(key)}"
        yield Relation(name, _place(key.here), True, tuple((theirs, ours) for ours, theirs in key.pairs))


def _forward(key: _Foreign) -> str:
    column = key.pairs[0][0] if len(key.pairs) == 1 else ""
    short = re.sub(r"(_id|Id|_ID|ID)$", "", column)
    return short if short and short != column else key.there[1]


def _place(place: Place) -> str:
    return f"{place[0]}.{place[1]}" if place[0] else place[1]


def _column(read: ReflectedColumn, dialect: sa.Dialect) -> Column:
    kind: Any = read["type"]
    if isinstance(kind, pg.DOMAIN):
        kind = kind.data_type
    many = isinstance(kind, sa.ARRAY)
    kind = kind.item_type if many else kind
    values = tuple((value, value) for value in getattr(kind, "enums", None) or ())
    nullable, native = read.get("nullable", True), _native(kind, dialect)
    return Column(read["name"], read["name"], _type(kind), nullable, many, values=values, native=native)


def _native(kind: Any, dialect: sa.Dialect) -> str:
    if isinstance(kind, sa.CHAR):
        return "bpchar"  # which has no length; without one, CHAR is a single letter
    return dialect.type_compiler_instance.process(kind) if isinstance(kind, NATIVE) else ""


def _type(kind: Any) -> Type:
    return next((ours for theirs, ours in KINDS if isinstance(kind, theirs)), "other")


PROBE = "ralph_may_write"


def writable(engine: sa.Engine, caps: Caps, shapes: Sequence[Shape], schema: str) -> tuple[str, ...]:
    """The permitted writes, such as `DELETE on chains`; none for a read-only role. Raises UserError.

    The transaction is explicitly read-write: a role that is only read-only by default is reported too.
    """
    tried = [(f"{verb} on {shape.place}", statement) for shape in shapes for verb, statement in _writes(shape, schema)]
    if engine.dialect.name == "postgresql":
        tried.append(("CREATE TABLE", sa.text(f"CREATE TABLE {PROBE} ()")))
    with trying(engine, caps, "the role") as connection:
        done = [name for name, statement in tried if _try_statement(connection, statement)]
        granted = [name for shape in shapes for name in _granted_writes(connection, shape, schema)]
        return tuple(dict.fromkeys((*done, *granted)))


def _writes(shape: Shape, schema: str) -> Iterator[tuple[str, Executable]]:
    names = [one.column for one in shape.columns]
    if names:
        table = sa.table(shape.table, *map(sa.column, names), schema=shape.schema or schema or None)
        first = table.c[names[0]]
        yield "INSERT", sa.insert(table).from_select(names, sa.select(*table.c).where(sa.false()))
        yield "UPDATE", sa.update(table).values({first: first}).where(sa.false())
        yield "DELETE", sa.delete(table).where(sa.false())


def _granted_writes(connection: sa.Connection, shape: Shape, schema: str) -> Iterator[str]:
    """Granted writes whose attempt failed for another reason: a generated column, a lock."""
    if connection.dialect.name == "postgresql":
        table = sa.table(shape.table, schema=shape.schema or schema or None)
        place = connection.dialect.identifier_preparer.format_table(table).replace("%%", "%")  # it is no statement
        with suppress(DBAPIError), connection.begin_nested():
            row = connection.execute(_GRANTS, {"place": place}).one()
            yield from (f"{verb} on {shape.place}" for verb, granted in zip(_VERBS, row, strict=True) if granted)


_VERBS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
_GRANTS = sa.text(
    "SELECT may AND has_any_column_privilege(place, 'INSERT'), may AND has_any_column_privilege(place, 'UPDATE'),"
    " may AND has_table_privilege(place, 'DELETE'), may AND has_table_privilege(place, 'TRUNCATE')"
    " FROM (SELECT NOT pg_is_in_recovery() AS may, to_regclass(:place) AS place) AS asked"
)


def _try_statement(connection: sa.Connection, statement: Executable) -> bool:
    """Whether a statement succeeded. A failure never writes."""
    step = connection.begin_nested()
    try:
        connection.execute(statement)
    except DBAPIError:
        step.rollback()
        return False
    step.rollback()
    return True
