"""What a database holds: tables, their columns, how they are related, and by which names they are called."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Literal

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
    """

    name: str
    column: str
    type: Type
    nullable: bool = False
    many: bool = False  # an array
    unique: bool = False
    values: tuple[tuple[str, str], ...] = ()
    native: str = ""


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
