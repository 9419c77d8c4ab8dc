"""Read-only connections with time-outs: one short transaction per query, also through poolers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ralph_mission.adapters.database import Address, explain_error
from ralph_mission.values import dataclass

INSTRUCTIONS = 10_000  # of SQLite's machine between two looks at the clock


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits per query: seconds on the server, seconds of waiting for a lock, bytes of its answer."""

    seconds: float = 15.0
    lock_seconds: float = 2.0
    bytes: int = 16_000_000
    connect_seconds: int = 10


def engine(address: Address, caps: Caps) -> sa.Engine:
    """An engine with one connection, which opens later."""
    if address.kind == "sqlite":
        return sa.create_engine("sqlite://", creator=lambda: _sqlite(address.path, caps), poolclass=sa.StaticPool)
    import psycopg

    def connect() -> Any:
        # A pooler between may give each transaction another connection: nothing is prepared, nothing set for long.
        # A server without an encoding of its own (SQL_ASCII) would else be given bytes for its texts.
        return psycopg.connect(
            address.url, connect_timeout=caps.connect_seconds, prepare_threshold=None, client_encoding="utf8"
        )

    return sa.create_engine("postgresql+psycopg://", creator=connect, pool_size=1, max_overflow=0, hide_parameters=True)


@contextmanager
def transaction(engine: sa.Engine, caps: Caps, what: str, readonly: bool = True) -> Iterator[sa.Connection]:
    """A transaction that is rolled back at its end. Raises UserError; `what`: the query in our words.

    One that is not `readonly` finds out a role's permissions.
    """
    try:
        postgres = engine.dialect.name == "postgresql"
        with engine.connect() as plain:
            connection = plain.execution_options(postgresql_readonly=readonly) if postgres else plain
            if postgres:
                connection.execute(_SETTINGS, _settings(caps))
            yield connection
            connection.rollback()
    except (SQLAlchemyError, UnicodeError, engine.dialect.loaded_dbapi.Error) as error:
        raise explain_error(error, what) from None


def stream_rows(connection: sa.Connection, select: sa.Select[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows as they arrive, one at a time in memory.

    SQLAlchemy would declare a cursor for that, for which PostgreSQL plans on one processor alone; psycopg need not.
    """
    if connection.dialect.name != "postgresql":
        yield from map(tuple, connection.execute(select))
        return
    compiled = select.compile(dialect=connection.dialect)
    with connection.connection.driver_connection.cursor() as cursor:  # type: ignore[union-attr]  # it is open
        yield from cursor.stream(str(compiled), compiled.params)


_SETTINGS = sa.text(
    "SELECT set_config('statement_timeout', :statement, true), set_config('lock_timeout', :lock, true),"
    " set_config('idle_in_transaction_session_timeout', :idle, true), set_config('TimeZone', 'UTC', true)"
)


def _settings(caps: Caps) -> dict[str, str]:
    milliseconds = {"statement": caps.seconds, "lock": caps.lock_seconds, "idle": 4 * caps.seconds}
    return {name: str(int(seconds * 1000)) for name, seconds in milliseconds.items()}


def _sqlite(path: str, caps: Caps) -> sqlite3.Connection:
    """Opened read-only; slow queries are interrupted."""
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, timeout=caps.lock_seconds, check_same_thread=False
    )
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")  # one odd text is not the whole table's end
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    began = {"at": 0.0}

    def restart(_: str) -> None:
        began["at"] = time.monotonic()

    connection.set_trace_callback(restart)
    connection.set_progress_handler(lambda: time.monotonic() - began["at"] > caps.seconds, INSTRUCTIONS)
    return connection
