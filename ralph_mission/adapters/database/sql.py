"""The backend of SQLAlchemy: PostgreSQL by psycopg, and SQLite; and the `Catalog` that is reflected from a database.

That has the names and keys of all tables, and the columns of needed ones. A relation is named by its column without
`_id` (`chain_id` leads to `chain`), or else by its target table; the inverse is named by its source table. To find out
whether a role could write, it tries statements that change no row, in a transaction that is rolled back.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.engine.reflection import Inspector, ObjectKind
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import Executable

from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.model import (
    Catalog,
    Column,
    Interest,
    Query,
    Relation,
    Row,
    Shape,
    Type,
    Value,
    drift,
    read_text,
    shapes_reached,
)
from ralph_mission.adapters.database.sessions import Caps, engine, stream_rows, transaction
from ralph_mission.adapters.database.statements import Dialect, build_select, cell, shape_of
from ralph_mission.errors import UserError
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


@contextmanager
def open_sql(address: Address, schema: Catalog | None = None, caps: Caps | None = None) -> Iterator[SqlDatabase]:
    """A database, closed at the end. `schema`: Prisma's, to be compared with the database.

    Raises UserError without an answer.
    """
    caps = caps or Caps()
    connected = engine(address, caps)
    try:
        database = SqlDatabase(connected, address, schema, caps)
        database.reach()
        yield database
    finally:
        connected.dispose()


@dataclasses.dataclass
class SqlDatabase:
    """Implements `model.Database`."""

    connected: sa.Engine
    address: Address
    schema: Catalog | None
    caps: Caps
    _actual: Catalog | None = field(default=None, init=False)
    _own: dict[str, Shape] = field(default_factory=dict, init=False)

    @property
    def engine(self) -> str:
        """SQLAlchemy and the server."""
        known = self.connected.dialect.server_version_info or ()
        server = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}[self.address.kind]
        return f"SQLAlchemy {sa.__version__}, {server} {'.'.join(map(str, known))}"

    @property
    def encrypted(self) -> bool:
        """Whether its connection speaks TLS. Raises UserError when nobody answers."""
        if self.address.kind != "postgresql":
            return False
        with transaction(self.connected, self.caps, "its connection") as connection:
            return bool(connection.connection.driver_connection.pgconn.ssl_in_use)  # type: ignore[union-attr]  # open

    def reach(self) -> None:
        """Raises UserError when nobody answers."""
        with transaction(self.connected, self.caps, "its version") as connection:
            connection.execute(sa.text("SELECT 1"))

    def describe(self, interest: Interest) -> Catalog:
        """See `model.Database`."""
        if interest.sql:
            return self._described(interest)
        actual = self._reflect(interest)
        if self.schema is None:
            return actual
        expected = replace(self.schema, shapes=shapes_reached(self.schema, interest.source, interest.paths))
        for line in drift(expected, actual):
            raise UserError(line, "migrate the database, or fix the schema")
        return self.schema

    def drift(self) -> tuple[str, ...]:
        """See `model.Database`."""
        if self.schema is None:
            return ()
        actual = self._reflect(*(Interest(shape.name) for shape in self.schema.shapes))
        return tuple(drift(self.schema, actual))

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """See `model.Database`."""
        shapes = [] if interest.sql else [self.describe(interest).shape(interest.source)]
        return writable(self.connected, self.caps, shapes, self.address.schema)

    def rows(self, query: Query) -> Sequence[Row]:
        """See `model.Database`."""
        catalog, what = self._catalog(query.source), self.describe_source(query)
        selected = build_select(query, catalog, Dialect(self.address.kind, self.address.schema))
        with transaction(self.connected, self.caps, what) as connection:
            return read_rows(query, catalog, self._stream(connection, selected, what), what)

    def describe_source(self, query: Query) -> str:
        """The query, in our words."""
        own = query.source in self._own
        return query.source if own else f"table {self._catalog(query.source).shape(query.source).place}"

    def text_dialect(self) -> Dialect:
        """The dialect of a driver that only carries text."""
        usual = self.address.schema or self.connected.dialect.default_schema_name or ""
        return Dialect(self.address.kind, usual, self._native_type)

    def _native_type(self, shape: Shape, column: Column) -> str:
        found = self._actual_column(shape, column)
        if found is None:
            self._reflect(Interest(shape.name))
            found = self._actual_column(shape, column)
        return found.native if found else ""

    def _actual_column(self, shape: Shape, column: Column) -> Column | None:
        known = self._actual.shapes if self._actual else ()
        there = [one for one in known if shape.place in (one.place, one.table)]
        return there[-1].column(column.column) if there else None

    # --- what is there ----------------------------------------------------------------

    def _catalog(self, source: str) -> Catalog:
        own = self._own.get(source)
        known = Catalog((own,)) if own else self.schema or self._actual
        assert known is not None, "described before it is asked"
        return known

    def _reflect(self, *interests: Interest) -> Catalog:
        with transaction(self.connected, self.caps, "its tables") as connection:
            inspector = sa.inspect(connection)
            if self._actual is None:
                self._actual = skeleton(inspector, self._schemas(inspector))
            places = {place for one in interests for place in self._places(one, self._actual)}
            self._actual = add_columns(inspector, self._actual, places)
        return self._actual

    def _schemas(self, inspector: sa.Inspector) -> list[str | None]:
        """The default schema comes last, and wins."""
        if self.address.kind == "sqlite":
            return [None]
        usual = self.address.schema or inspector.default_schema_name or "public"
        if self.schema is not None:
            return [*sorted({shape.schema for shape in self.schema.shapes} - {"", usual}), usual]
        return [*(name for name in inspector.get_schema_names() if not name.startswith(("pg_", "information_"))), usual]

    def _places(self, interest: Interest, actual: Catalog) -> set[str]:
        paths = interest.paths
        if interest.names:
            near = (self.schema or actual).shape(interest.source).relations
            paths = (*paths, *(one.name for one in near if not one.many))
        if self.schema is None:
            return {shape.place for shape in shapes_reached(actual, interest.source, paths)}
        shapes = shapes_reached(self.schema, interest.source, paths)
        tables = {shape.table for shape in shapes}
        return {shape.place for shape in actual.shapes if shape.table in tables}

    def _described(self, interest: Interest) -> Catalog:
        with transaction(self.connected, self.caps, interest.source) as connection:
            self._own[interest.source] = shape_of(connection, interest)
        return Catalog((self._own[interest.source],), interest.source)

    # --- rows -------------------------------------------------------------------------

    def _stream(self, connection: sa.Connection, select: sa.Select[Any], what: str) -> Iterator[Sequence[Any]]:
        """Row by row, up to a size limit."""
        size = 0
        for row in stream_rows(connection, select):
            size += sum(len(raw) if isinstance(raw, str | bytes) else 8 for raw in row)
            if size > self.caps.bytes:
                most = f"{self.caps.bytes // 1_000_000} MB"
                raise UserError(f"{what} answered with more than {most}", "include fewer or shorter fields")
            yield row


def read_rows(query: Query, catalog: Catalog, found: Iterable[Sequence[Any]], what: str) -> list[Row]:
    """A driver's rows, in the order of `build_select`. Raises UserError for a cell of another type."""
    catalog = read_text(catalog, query.source, query.read_as)
    columns = [_column(catalog, query, name) for name in query.fields]
    columns += [_count_column(catalog, query, place) for place in range(len(query.aggregates))]
    names = [*query.fields, *(one.name for one in query.aggregates)]
    return [dict(zip(names, _cells(row, columns, what), strict=True)) for row in found]


def _cells(row: Sequence[Any], columns: Sequence[Column], what: str) -> Iterator[Value]:
    for raw, column in zip(row, columns, strict=True):
        try:
            yield cell(raw, column)
        except (ValueError, OverflowError, TypeError):
            problem = f"{what}: {column.name} holds what is no {column.type}"
            raise UserError(problem, "fix the row, or leave the field out") from None


def _column(catalog: Catalog, query: Query, path: str) -> Column:
    *relations, name = path.split(".")
    column = catalog.follow(query.source, relations).column(name)
    assert column is not None
    return column


def _count_column(catalog: Catalog, query: Query, place: int) -> Column:
    """The column of a computed number: a count is an integer, as is a sum of integers."""
    one = query.aggregates[place]
    summed = _column(catalog, query, f"{one.relation}.{one.field}").type if one.function == "sum" else "int"
    return Column(one.name, one.name, "int" if summed == "int" else "decimal")


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
            columns[f"{schema}.{table}" if schema else table] = tuple(
                _reflected_column(one, inspector.dialect) for one in ones
            )
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


def _reflected_column(read: ReflectedColumn, dialect: sa.Dialect) -> Column:
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
    with transaction(engine, caps, "the role", readonly=False) as connection:
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
