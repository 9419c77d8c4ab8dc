"""An owner's own query as a table: what its answer's columns are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from ralph_mission.gateways.database.queries import Interest
from ralph_mission.gateways.database.shapes import Column, Shape, Type
from ralph_mission.gateways.database.statements import wrap_own_query

DRIVER_TYPES: Mapping[str, Type] = {
    **dict.fromkeys(("int2", "int4", "int8"), "int"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("timestamp", "timestamptz", "date"), "time"),
    **dict.fromkeys(("json", "jsonb"), "json"),
    "numeric": "decimal",
    "bool": "bool",
    "bytea": "bytes",
}
"""By PostgreSQL's own names; anything else is told as text."""
SAMPLED = 50  # rows that tell SQLite's types, which are those of its values


def shape_of(connection: sa.Connection, interest: Interest) -> Shape:
    """A shape without a key or relations."""
    postgres = connection.dialect.name == "postgresql"
    with connection.execute(wrap_own_query(interest.sql, 0 if postgres else SAMPLED)) as result:
        names = list(result.keys())
        types = (
            [_of_server(int(str(one[1]))) for one in result.cursor.description] if postgres and result.cursor else None
        )
        rows = [] if postgres else [tuple(row) for row in result]
    columns = [
        Column(name, name, types[place] if types else _of_values([row[place] for row in rows]), True)
        for place, name in enumerate(names)
    ]
    return replace(Shape(interest.source, interest.source, "", tuple(columns)), sql=interest.sql)


def _of_server(oid: int) -> Type:
    from psycopg import postgres

    known = postgres.types.get(oid)
    return DRIVER_TYPES.get(known.name, "text") if known else "text"


def _of_values(values: list[Any]) -> Type:
    kinds: dict[type, Type] = {int: "int", float: "float", Decimal: "decimal", bytes: "bytes"}
    found = {kinds.get(type(value), "text") for value in values if value is not None}
    return found.pop() if len(found) == 1 else "float" if found == {"int", "float"} else "text"
