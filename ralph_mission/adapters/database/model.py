"""What a database holds: tables, their columns, how they are related, and by which names they are called.

What is asked of a database, in words that every backend understands.

Names in a query are those of its `Shape`: fields of a Prisma model, or columns where there is no schema.
Backends translate them, mapped names and mapped enum values included, and never take a value for SQL.
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
    {"enum", "text"},  # where a database has no enums
    {"decimal", "float"},
    {"decimal", "int"},
    {"bool", "int"},
    {"time", "text"},
    {"json", "text"},
)
"""Types that one database has for another: SQLite has few, and keeps the rest in those."""


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is what people call it, `column` what the database does. `values` are an enum's: (name, in database).

    `native` is the database's name of a type that a text does not become by itself, where it was reflected.
    `text`: kept as text, and read as `type`; what does not read like one is null.
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
    """The table between two others: its column for the near row and for the far one, as the database calls them."""

    table: str
    schema: str
    near: str
    far: str


@dataclass(frozen=True, slots=True)
class Relation:
    """From a row to related ones. `pairs` are (our field, theirs); with `through`, (our key, their key)."""

    name: str
    target: str
    many: bool
    pairs: tuple[tuple[str, str], ...]
    through: Through | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """One table. `key` are the fields that identify a row: empty when nothing does. `sql`: it is a query's answer."""

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
    """All tables. `origin` is how complaints call it: `prisma/schema.prisma`, or `the database`."""

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


def shapes_reached(catalog: Catalog, source: str, paths: Iterable[str]) -> tuple[Shape, ...]:
    """A table, and those that relations lead to; a name that is no relation leads nowhere. Raises as `shape` does."""
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
    """The catalog with columns of text that are read as something else, by their paths from `source`."""
    for path, kind in read_as:
        *relations, name = path.split(".")
        shape = catalog.shape(source)
        for one in relations:
            relation = shape.relation(one)
            assert relation is not None
            shape = catalog.shape(relation.target)
        columns = tuple(
            replace(one, type=kind, text=True, nullable=True) if one.name == name else one for one in shape.columns
        )
        read = replace(shape, columns=columns)
        catalog = replace(catalog, shapes=tuple(read if one is shape else one for one in catalog.shapes))
    return catalog


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody meant, as advice."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    rest = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"did you mean {close[0]}?" if close else f"known here: {rest or 'nothing'}"


def drift(wanted: Catalog, actual: Catalog) -> Iterator[str]:
    """Where a schema and its database differ, a line each that names both."""
    tables = {one.place: one for one in actual.shapes}
    bare = {one.table: one for one in actual.shapes}
    for shape in wanted.shapes:
        there = tables.get(shape.place) if shape.schema else bare.get(shape.table)
        if there is None:
            advice = nearest(shape.place, tables if shape.schema else bare)
            yield f"{wanted.origin}: model {shape.name} is table {shape.place}, which {actual.origin} lacks; {advice}"
        else:
            yield from _columns(wanted.origin, shape, actual.origin, there)


def _columns(origin: str, shape: Shape, actual: str, there: Shape) -> Iterator[str]:
    columns = {one.column: one for one in there.columns}
    for column in shape.columns:
        said = f"{origin}: field {shape.name}.{column.name} is column {shape.place}.{column.column}"
        found = columns.get(column.column)
        if found is None:
            yield f"{said}, which {actual} lacks; {nearest(column.column, columns)}"
        elif not _fits(column, found):
            yield f"{said} of type {_type_text(column)}, which in {actual} is {_type_text(found)}"
        elif lacking := sorted({v for _, v in column.values} - {v for _, v in found.values}) if found.values else []:
            yield f"{said} and may be {lacking[0]}, which its type in {actual} lacks"


def _fits(wanted: Column, actual: Column) -> bool:
    types = {wanted.type, actual.type}
    return "other" in types or (wanted.many == actual.many and (len(types) == 1 or types in ALIKE))


def _type_text(column: Column) -> str:
    return f"{column.type}{' list' if column.many else ''}"


Value = Decimal | int | str | bool | datetime | None
"""A cell, the same from every backend.

Numbers with a fraction are Decimal (a float by its shortest writing), never float. Times have a zone; what a
database keeps without one is UTC. Enums are the schema's names for them. JSON is text, its keys sorted, without
spaces; a list is JSON too. UUIDs are text.
"""
Row = Mapping[str, Value]
"""By the names in `Query.fields`, and by `Aggregate.name`."""

CAP = 1_000  # rows of any answer, but those of series and sets
SERIES = 20_000  # rows of a window that say what is usual
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
    """A number made of related rows: how many, or the sum of `field`; 0 where there are none.

    `where` is about the related rows, such as "at or before a time".
    """

    name: str
    function: Literal["count", "sum"]
    relation: str
    field: str = ""
    where: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """Rows of one table.

    `fields` may lead over relations to one row (`chain.name`), null where there is none. `first_of`: of the rows
    that are equal in this field (nulls are equal), only the first in `order`; `limit` counts what is left then.
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
    """What somebody wants to ask about: a model or a table, and relations from there, such as `chain` or `a.b`.

    With `sql`, the rows of that query are the table, and `source` is how it is called. `names`: what a row and those
    that it belongs to are called is wanted too, where it can be had.
    """

    source: str
    paths: tuple[str, ...] = ()
    sql: str = ""
    names: bool = False


class Database(Protocol):
    """A database that can be looked at and never written.

    Raises UserError (who="network" or "you") for everything that a database, a network or a settings file can
    cause; what it says never holds an address, a user or a password.
    """

    @property
    def engine(self) -> str:
        """What asks, by names and versions, for people."""
        ...

    def describe(self, interest: Interest) -> Catalog:
        """What is there: by the Prisma schema where there is one, checked against the database, else as reflected.

        Only what the interest reaches has columns and was checked.
        """
        ...

    def drift(self) -> tuple[str, ...]:
        """Every difference between the Prisma schema and the database, a line each that names both; no schema, none."""
        ...

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """What the role could write, found out by writes of no row that are rolled back; nothing, as it should be."""
        ...

    def rows(self, query: Query) -> Sequence[Row]:
        """At most `query.limit` rows of what was described."""
        ...
