"""A database's structure: tables, columns, relations, and their names.

Queries of a database, independent of the backend.

Names in a query are those of its `Shape`: fields of a Prisma model, or columns where there is no schema.
Backends translate them, including mapped names and enum values, and never treat a value as SQL.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

Type = Literal["int", "decimal", "float", "text", "bool", "time", "enum", "json", "bytes", "other"]
ALIKE = (
    {"enum", "text"},  # if a database has no enums
    {"decimal", "float"},
    {"decimal", "int"},
    {"bool", "int"},
    {"time", "text"},
    {"json", "text"},
)
"""Compatible types between databases: SQLite has few, and stores the rest in those."""


@dataclass(frozen=True, slots=True)
class Column:
    """`name`: for people; `column`: in the database. `values` are an enum's: (name, in database).

    `native`: the database's name of a reflected type that needs a cast from text.
    `text`: stored as text, and read as `type`; unreadable values are null.
    """

    name: str
    column: str
    type: Type
    nullable: bool = False
    many: bool = False  # an array
    unique: bool = False
    values: tuple[tuple[str, str], ...] = ()
    native: str = ""
    text: bool = False


@dataclass(frozen=True, slots=True)
class Through:
    """The table between two others: its database columns for the near and the far row."""

    table: str
    schema: str
    near: str
    far: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from a row to others. `pairs` are (our field, theirs); with `through`, (our key, their key)."""

    name: str
    target: str
    many: bool
    pairs: tuple[tuple[str, str], ...]
    through: Through | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """One table. `key`: the fields that identify a row, or empty. `sql`: it is a query's result."""

    name: str
    table: str
    schema: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    sql: str = ""

    @property
    def place(self) -> str:
        """As the database calls it."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    def column(self, name: str) -> Column | None:
        """By either name; the schema's own wins."""
        by_name = {one.name: one for one in self.columns}
        return by_name.get(name) or {one.column: one for one in self.columns}.get(name)

    def relation(self, name: str) -> Relation | None:
        """By name."""
        return next((one for one in self.relations if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables. `origin`: its name in complaints: `prisma/schema.prisma`, or `the database`."""

    shapes: tuple[Shape, ...]
    origin: str = "the database"

    def shape(self, name: str) -> Shape:
        """By model or table name, `schema.table` included. Raises UserError when there is none, or several."""
        for called in ("name", "place", "table"):
            found = [one for one in self.shapes if getattr(one, called) == name]
            if len(found) > 1:
                raise UserError(
                    f"{self.origin} has several {name}: {', '.join(one.place for one in found)}", "name its schema too"
                )
            if found:
                return found[0]
        names = {called for one in self.shapes for called in (one.name, one.table)}
        raise UserError(f"{self.origin} has no model or table {name}", nearest(name, names))

    def follow(self, source: str, relations: Iterable[str]) -> Shape:
        """The table that relations lead to from `source`."""
        shape = self.shape(source)
        for name in relations:
            relation = shape.relation(name)
            assert relation is not None
            shape = self.shape(relation.target)
        return shape


def shapes_reached(catalog: Catalog, source: str, paths: Iterable[str]) -> tuple[Shape, ...]:
    """A table, and those that relations lead to; other names are ignored. Raises as `shape` does."""
    found = {(first := catalog.shape(source)).place: first}
    for path in paths:
        shape = first
        for name in path.split("."):
            relation = shape.relation(name)
            if relation is None:
                break
            shape = catalog.shape(relation.target)
            found[shape.place] = shape
    return tuple(found.values())


def read_text(catalog: Catalog, source: str, read_as: Iterable[tuple[str, Type]]) -> Catalog:
    """The catalog with text columns that are read as other types, by their paths from `source`."""
    for path, kind in read_as:
        *relations, name = path.split(".")
        shape = catalog.follow(source, relations)
        columns = tuple(
            replace(one, type=kind, text=True, nullable=True) if one.name == name else one for one in shape.columns
        )
        read = replace(shape, columns=columns)
        catalog = replace(catalog, shapes=tuple(read if one is shape else one for one in catalog.shapes))
    return catalog


def nearest(name: str, known: Iterable[str]) -> str:
    """The most similar name, as advice."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    rest = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"did you mean {close[0]}?" if close else f"known here: {rest or 'nothing'}"


def drift(expected: Catalog, actual: Catalog) -> Iterator[str]:
    """The differences between a schema and its database, a line each that names both."""
    tables = {one.place: one for one in actual.shapes}
    bare = {one.table: one for one in actual.shapes}
    for shape in expected.shapes:
        there = tables.get(shape.place) if shape.schema else bare.get(shape.table)
        if there is None:
            advice = nearest(shape.place, tables if shape.schema else bare)
            yield f"{expected.origin}: model {shape.name} is table {shape.place}, which {actual.origin} lacks; {advice}"
        else:
            yield from _columns(expected.origin, shape, actual.origin, there)


def _columns(origin: str, shape: Shape, actual: str, there: Shape) -> Iterator[str]:
    columns = {one.column: one for one in there.columns}
    for column in shape.columns:
        field = f"{origin}: field {shape.name}.{column.name} is column {shape.place}.{column.column}"
        found = columns.get(column.column)
        if found is None:
            yield f"{field}, which {actual} lacks; {nearest(column.column, columns)}"
        elif not _fits(column, found):
            yield f"{field} of type {_type_text(column)}, which in {actual} is {_type_text(found)}"
        elif missing := sorted({v for _, v in column.values} - {v for _, v in found.values}) if found.values else []:
            yield f"{field} and may be {missing[0]}, which its type in {actual} lacks"


def _fits(expected: Column, actual: Column) -> bool:
    types = {expected.type, actual.type}
    return "other" in types or (expected.many == actual.many and (len(types) == 1 or types in ALIKE))


def _type_text(column: Column) -> str:
    return f"{column.type}{' list' if column.many else ''}"


Value = Decimal | int | str | bool | datetime | None
"""A cell, the same from every backend.

Numbers with a fraction are Decimal (a float by its shortest writing), never float. Times have a zone; those
stored without one are UTC. Enums are the schema's names for them. JSON is text, its keys sorted, without
spaces; a list is JSON too. UUIDs are text.
"""
Row = Mapping[str, Value]
"""By the names in `Query.fields`, and by `Aggregate.name`."""

CAP = 1_000  # rows of any answer, except series and sets
SERIES = 20_000  # rows of a window that define the usual values
GROUPS = 20_000  # series of one watch, and rows of a set

Operator = Literal["=", "in", ">", ">=", "<", "<=", "known"]


@dataclass(frozen=True, slots=True)
class Filter:
    """`known`: not null, whatever `value`. `=` with None: null. A tuple only for `in`, which may hold None."""

    field: str
    operator: Operator
    value: Value | tuple[Value, ...] = None


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Nulls come last, either way."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A number from related rows: their count, or the sum of `field`; 0 without rows.

    `where` filters the related rows, such as "at or before a time".
    """

    name: str
    function: Literal["count", "sum"]
    relation: str
    field: str = ""
    where: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """Rows of one table.

    `fields` may follow relations to one row (`chain.name`), or null. `first_of`: of the rows that are equal in this
    field (nulls are equal), only the first in `order`; `limit` applies afterwards.
    `read_as`: fields of text, also of related rows (`delegations.amount`), that are read as numbers or times.
    """

    source: str
    fields: tuple[str, ...]
    where: tuple[Filter, ...] = ()
    order: tuple[RowOrder, ...] = ()
    first_of: str = ""
    aggregates: tuple[Aggregate, ...] = ()
    limit: int = CAP
    read_as: tuple[tuple[str, Type], ...] = ()


@dataclass(frozen=True, slots=True)
class Interest:
    """The subject of queries: a model or a table, and relations from there, such as `chain` or `a.b`.

    With `sql`, the rows of that query are the table, and `source` is its name. `names`: also include the names of a row
    and its parents, if available.
    """

    source: str
    paths: tuple[str, ...] = ()
    sql: str = ""
    names: bool = False


class Database(Protocol):
    """A read-only database.

    Raises UserError (who="network" or "you") for everything that a database, a network or a settings file can
    cause; its text never contains a host, a user or a password.
    """

    @property
    def engine(self) -> str:
        """The names and versions of client and server, for people."""
        ...

    def describe(self, interest: Interest) -> Catalog:
        """The catalog: from the Prisma schema, checked against the database, or else reflected.

        Only tables within the interest have columns and are checked.
        """
        ...

    def drift(self) -> tuple[str, ...]:
        """Every difference between the Prisma schema and the database, a line each that names both; none without a
        schema."""
        ...

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """The role's possible writes, found by rolled-back writes of no row; ideally none."""
        ...

    def rows(self, query: Query) -> Sequence[Row]:
        """At most `query.limit` rows of a described table."""
        ...
