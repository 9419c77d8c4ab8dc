"""Read-only connections with time-outs: one short transaction per query, also through poolers.

A database's refusals are reworded, as its messages may contain a host, a user or a row.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ralph_mission.adapters.database.address import Address
from ralph_mission.errors import UserError
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


# --- refusals ---------------------------------------------------------------------------

EXPLANATIONS = {
    "28": ("the database refuses the user or the password", "let the address name a role that may log in", "you"),
    "3D000": ("the server has no database of that name", "look at the end of its address", "you"),
    "42501": ("the role may not read {what}", "GRANT SELECT on it to the role", "you"),
    "42P01": ("the database has no {what}", "look at the name, or migrate the database", "you"),
    "42703": ("the database lacks a column of {what}", "look at the schema, or migrate the database", "you"),
    "42": ("the database does not understand what was asked of {what}", "look at the watch", "you"),
    "22": ("{what} holds a value that cannot be read", "leave that column out of the watch", "you"),
    "57014": (
        "the database took too long over {what}",
        "an index on the fields that the watch names would help",
        "network",
    ),
    "55P03": ("{what} was locked", "the next look tries again", "network"),
    "25006": ("the database refused to write", "nothing of ours writes; look at the query", "you"),
    "53": ("the database has no room for another connection", "the next look tries again", "network"),
    "08": ("the database closed the connection", "the next look tries again", "network"),
    "57": ("the database is starting or stopping", "the next look tries again", "network"),
}
"""By SQLSTATE, with the longest matching prefix. PostgreSQL's appendix A."""
HINTS = (
    (r"password authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist", "28"),
    (r"database .* does not exist", "3D000"),
    (r"interrupted", "57014"),
    (r"database is locked", "55P03"),
    (r"no such table", "42P01"),
    (r"no such column", "42703"),
    (r"readonly database|attempt to write", "25006"),
    (r"too many connections|too many clients|remaining connection slots", "53"),
    (r"starting up|shutting down", "57"),
    (r"^(timestamp|date) too (large|small)", "22"),  # psycopg's own: infinity has no place in Python
    (r"codec can't (de|en)code", "22"),  # Python's own, where the server does not know its texts' encoding
)
"""Without an SQLSTATE: before a session exists, and in SQLite."""
REACH = (
    (r"invalid (URI|connection) ", "the database's address has an unknown part", "look at what follows its ?"),
    (r"root certificate file", "the file of sslrootcert cannot be read", "name a file of certificates that is there"),
    (
        r"does not match host name",
        "the database's certificate is for another host",
        "let the address name the host as the certificate does, or take sslmode=verify-ca",
    ),
    (
        r"verify failed",
        "the database's certificate is not signed by a trusted authority",
        "let sslrootcert name the file of the authority that does",
    ),
    (
        r"not support SSL",
        "the database does not support TLS, and sslmode requires it",
        "look at sslmode, and at ssl of the server",
    ),
    (r"certificate|SSL|TLS", "the database's certificate does not fit", "look at sslmode and sslrootcert"),
    (r"resolve|translate host|Name or service|getaddrinfo", "the database's host has no address", "look at its name"),
    (r"refused", "nothing listens where the database should be", "start the database or its tunnel"),
    (r"timeout|timed out", "the database does not answer", "look at the network, a firewall or the tunnel"),
    (r"unable to open database file", "the database's file cannot be opened", "look at its path"),
    (r"not a database|malformed", "the file is not an SQLite database", "look at its path"),
)


def explain_error(error: BaseException, what: str) -> UserError:
    """A UserError with who must act. `what`: our words, such as "table chains"."""
    origin = getattr(error, "orig", None) or error
    message = str(origin)
    code = getattr(origin, "sqlstate", None) or next((code for words, code in HINTS if re.search(words, message)), "")
    for length in (5, 2):
        if (short := code[:length]) in EXPLANATIONS and code:
            reason, hint, who = EXPLANATIONS[short]
            return UserError(reason.format(what=what), hint, who)
    return _why_unreachable(message, type(origin).__name__, what)


def _why_unreachable(message: str, name: str, what: str) -> UserError:
    for words, reason, hint in REACH:
        if re.search(words, message, re.IGNORECASE):
            return UserError(reason, hint, "network")
    return UserError(
        f"the database failed over {what} ({name})", "look at its log; the next look tries again", "network"
    )
