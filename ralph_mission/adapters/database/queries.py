"""What is asked of a database, in words that every backend understands.

Names in a query are those of its `Shape`: fields of a Prisma model, or columns where there is no schema.
Backends translate them, mapped names and mapped enum values included, and never take a value for SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from ralph_mission.adapters.database.shapes import Catalog
from ralph_mission.values import dataclass

Value = Decimal | int | str | bool | datetime | None
"""A cell, the same from every backend.

Numbers with a fraction are Decimal (a float by its shortest writing), never float. Times have a zone; what a
database keeps without one is UTC. Enums are the schema's names for them. JSON is text, its keys sorted, without
spaces; a list is JSON too. UUIDs are text.
"""
Row = Mapping[str, Value]
"""By the names in `Query.fields`, and by `Aggregate.name`."""

CAP = 1_000  # rows of any answer, but those of a series
SERIES = 20_000  # rows of a window that say what is usual
GROUPS = 1_000  # series of one watch

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
    """

    source: str
    fields: tuple[str, ...]
    where: tuple[Filter, ...] = ()
    order: tuple[RowOrder, ...] = ()
    first_of: str = ""
    aggregates: tuple[Aggregate, ...] = ()
    limit: int = CAP


@dataclass(frozen=True, slots=True)
class Interest:
    """What somebody wants to ask about: a model or a table, and relations from there, such as `chain` or `a.b`.

    With `sql`, the rows of that query are the table, and `source` is how it is called.
    """

    source: str
    paths: tuple[str, ...] = ()
    sql: str = ""


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
