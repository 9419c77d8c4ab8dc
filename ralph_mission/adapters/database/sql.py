"""The backend of SQLAlchemy: PostgreSQL by psycopg, and SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from ralph_mission.adapters.database import catalogs
from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.model import (
    Catalog,
    Column,
    Interest,
    Query,
    Row,
    Shape,
    Value,
    drift,
    read_text,
    shapes_reached,
)
from ralph_mission.adapters.database.sessions import Caps, engine, reading, stream_rows
from ralph_mission.adapters.database.statements import Dialect, build_select, cell, shape_of
from ralph_mission.errors import UserError


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


@dataclass
class SqlDatabase:
    """Implements `queries.Database`."""

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
        with reading(self.connected, self.caps, "its connection") as connection:
            return bool(connection.connection.driver_connection.pgconn.ssl_in_use)  # type: ignore[union-attr]  # open

    def reach(self) -> None:
        """Raises UserError when nobody answers."""
        with reading(self.connected, self.caps, "its version") as connection:
            connection.execute(sa.text("SELECT 1"))

    def describe(self, interest: Interest) -> Catalog:
        """See `queries.Database`."""
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
        """See `queries.Database`."""
        if self.schema is None:
            return ()
        actual = self._reflect(*(Interest(shape.name) for shape in self.schema.shapes))
        return tuple(drift(self.schema, actual))

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """See `queries.Database`."""
        shapes = [] if interest.sql else [self.describe(interest).shape(interest.source)]
        return catalogs.writable(self.connected, self.caps, shapes, self.address.schema)

    def rows(self, query: Query) -> Sequence[Row]:
        """See `queries.Database`."""
        catalog, what = self._catalog(query.source), self.describe_source(query)
        selected = build_select(query, catalog, Dialect(self.address.kind, self.address.schema))
        with reading(self.connected, self.caps, what) as connection:
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
        with reading(self.connected, self.caps, "its tables") as connection:
            inspector = sa.inspect(connection)
            if self._actual is None:
                self._actual = catalogs.skeleton(inspector, self._schemas(inspector))
            places = {place for one in interests for place in self._places(one, self._actual)}
            self._actual = catalogs.add_columns(inspector, self._actual, places)
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
        with reading(self.connected, self.caps, interest.source) as connection:
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
    shape = catalog.shape(query.source)
    for one in relations:
        relation = shape.relation(one)
        assert relation is not None
        shape = catalog.shape(relation.target)
    column = shape.column(name)
    assert column is not None
    return column


def _count_column(catalog: Catalog, query: Query, place: int) -> Column:
    """The column of a computed number: a count is an integer, as is a sum of integers."""
    one = query.aggregates[place]
    summed = _column(catalog, query, f"{one.relation}.{one.field}").type if one.function == "sum" else "int"
    return Column(one.name, one.name, "int" if summed == "int" else "decimal")
