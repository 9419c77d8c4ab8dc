"""Whether a role could write: it tries, in a transaction that is rolled back, to change no row at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import Executable

from ralph_mission.gateways.database.sessions import Caps, trying
from ralph_mission.gateways.database.shapes import Shape

PROBE = "ralph_may_write"


def writable(engine: sa.Engine, caps: Caps, shapes: Sequence[Shape], schema: str) -> tuple[str, ...]:
    """What was not refused, such as `DELETE on chains`; nothing for a role that may only read. Raises Trouble.

    The transaction says itself that it may write: a role that only has read-only as its habit is told too.
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
    """What it was given, though the try failed for another reason: a generated column, a lock."""
    if connection.dialect.name == "postgresql":
        table = sa.table(shape.table, schema=shape.schema or schema or None)
        place = connection.dialect.identifier_preparer.format_table(table).replace("%%", "%")  # it is no statement
        with suppress(DBAPIError), connection.begin_nested():
            row = connection.execute(_GRANTS, {"place": place}).one()
            yield from (f"{verb} on {shape.place}" for verb, given in zip(_VERBS, row, strict=True) if given)


_VERBS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
_GRANTS = sa.text(
    "SELECT may AND has_any_column_privilege(place, 'INSERT'), may AND has_any_column_privilege(place, 'UPDATE'),"
    " may AND has_table_privilege(place, 'DELETE'), may AND has_table_privilege(place, 'TRUNCATE')"
    " FROM (SELECT NOT pg_is_in_recovery() AS may, to_regclass(:place) AS place) AS asked"
)


def _try_statement(connection: sa.Connection, statement: Executable) -> bool:
    """Whether it went through. Whatever it fails for, it did not write."""
    step = connection.begin_nested()
    try:
        connection.execute(statement)
    except DBAPIError:
        step.rollback()
        return False
    step.rollback()
    return True
