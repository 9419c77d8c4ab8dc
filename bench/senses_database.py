"""A million rows in a real PostgreSQL, every kind of watch on them, and what the server's own log says it took."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import psycopg

from ralph_mission.adapters.database import Backend, open_database, sql
from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.model import Database
from ralph_mission.adapters.database.prisma_schema import parse
from ralph_mission.adapters.database.sessions import stream_rows
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.database import DatabaseObserver
from ralph_mission.adapters.observers.database.results import WatchState
from ralph_mission.config.database import DatabaseSettings, DatabaseWatch
from tests.adapters.database.prisma_place import PLACE, environment
from tests.postgres_server import Server, running

ROWS, CHAINS = 1_000_000, 200
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
WEEK = 7 * 24 * 3600.0
"""Seconds over which the rows are spread, the last of them now."""
MODELS = """datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL")
}
generator client {
  provider = "prisma-client-js"
}
model Chain {
  id       Int       @id
  name     String
  readings Reading[]
  @@map("chains")
}
model Reading {
  id      BigInt   @id
  chainId Int      @map("chain_id")
  chain   Chain    @relation(fields: [chainId], references: [id])
  value   Decimal  @db.Decimal(20, 6)
  at      DateTime @db.Timestamptz(3)
  @@index([chainId, at])
  @@index([at])
  @@map("readings")
}
"""
FILES = {"prisma/schema.prisma": MODELS}
SERIES = {"model": "Reading", "value": "value", "by": "chainId", "at": "at", "include": ["chain.name"]}
KINDS: Mapping[str, dict[str, Any]] = {
    "change": {**SERIES, "change": {"over": "50%", "within": "24h"}},
    "change-of-a-sum": {
        "model": "Chain",
        "sum": "readings.value",
        "at": "readings.at",
        "change": {"over": "50%", "within": "24h"},
    },
    "new-since": {"model": "Reading", "new_since": "id", "include": ["chain.name"]},
    "top": {"model": "Reading", "top": {"order_by": "value", "take": 5}, "include": ["chain.name"]},
    "threshold": {**SERIES, "threshold": {"above": 1_000_000}},
    "outlier": {**SERIES, "outlier": {"score": 5, "within": "2h"}},
    "missing": {"model": "Reading", "at": "at", "by": "chainId", "missing": "2h"},
    "where": {"model": "Reading", "where": {"value": -1}, "include": ["chain.name"]},
}
NEWER = 50
"""Rows that are new to `new_since`."""
_TOOK = re.compile(r"duration: ([\d.]+) ms +(parse|bind|execute|statement)")


@dataclass(frozen=True, slots=True)
class Log:
    """What a server says of the role `reader`: how long each of its statements took."""

    server: Server

    def written(self) -> int:
        """How long it is, in bytes."""
        ((size,),) = self.server.run(f"SELECT size FROM pg_stat_file({_LOG})")
        return int(size)

    def since(self, place: int) -> tuple[int, float]:
        """Statements that were carried out after that place, and the milliseconds of all their parts."""
        ((text,),) = self.server.run(f"SELECT pg_read_file({_LOG}, {place}, 1000000000)")
        parts = _TOOK.findall(text)
        return sum(part in ("execute", "statement") for _, part in parts), sum(float(took) for took, _ in parts)


_LOG = "current_setting('data_directory') || '/../log'"


@contextmanager
def planted(rows: int) -> Iterator[Server]:
    """A server with that many readings and a role that may only read. Raises tests.postgres_server.Unavailable."""
    with running() as server:
        server.run(
            "CREATE TABLE chains (id int PRIMARY KEY, name text NOT NULL)",
            "CREATE TABLE readings (id bigint PRIMARY KEY, chain_id int NOT NULL REFERENCES chains,"
            " value numeric(20, 6) NOT NULL, at timestamptz(3) NOT NULL)",
            f"INSERT INTO chains SELECT n, 'Chain ' || n FROM generate_series(0, {CHAINS - 1}) n",
            f"INSERT INTO readings SELECT n, n % {CHAINS}, CASE WHEN n IN (7, 77, 777) THEN -1 ELSE"
            f" 100 + n % {CHAINS} + (n::bigint * 7919 % 1000) / 1000.0 END,"
            f" '{NOW.isoformat()}'::timestamptz - ({rows} - n) * {WEEK / rows} * '1 s'::interval"
            f" FROM generate_series(1, {rows}) n",
            "CREATE INDEX ON readings (chain_id, at)",
            "CREATE INDEX ON readings (at)",
            "VACUUM ANALYZE readings",
            "CREATE ROLE reader LOGIN",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
            "ALTER ROLE reader SET log_min_duration_statement = 0",
        )
        yield server


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians in milliseconds of one watch: of the server, of the bare driver (0: not known), of the whole look."""

    watch: str
    backend: str
    statements: int
    server: float
    bare: float
    ours: float


@dataclass
class Bench:
    """Takes looks at one server by one backend."""

    server: Server
    rows: int
    backend: Backend
    database: Database
    said: list[tuple[str, Any]] = field(default_factory=list)  # what the driver was given, by the last look

    def measured(self, name: str, rounds: int) -> Measured:
        """One kind of watch; a round that does not count comes first."""
        watch = DatabaseWatch.model_validate({"name": name, **KINDS[name]})
        observing = DatabaseObserver(DatabaseSettings(watches=(watch,)), Git(Path(), Path(), None), {})
        state = WatchState(True, max(0, self.rows - NEWER)) if name == "new-since" else WatchState()

        def look() -> None:
            self.said.clear()
            found = observing.look(self.database, watch, state, NOW)
            if found.problem:
                raise SystemExit(str(found.problem))

        look()
        log, samples = Log(self.server), []
        with psycopg.connect(self.server.url(user="reader")) as plain:
            bare = self._bare(plain)
            for _ in range(rounds):
                place = log.written()
                ours = _milliseconds(look)
                statements, server = log.since(place)
                samples.append((server, _milliseconds(bare) if self.said else 0.0, ours, statements))
        servers, bares, lookups, counts = (median(column) for column in zip(*samples, strict=True))
        return Measured(name, self.backend, int(counts), servers, bares, lookups)

    def _bare(self, plain: psycopg.Connection) -> Callable[[], None]:
        def ask() -> None:
            for text, values in self.said:
                plain.execute(text, values).fetchall()
            plain.rollback()

        return ask

    def note(self, connection: Any, asked: Any) -> Iterator[tuple[Any, ...]]:
        """In place of `streamed`: the same, and the statement is noted."""
        compiled = asked.compile(dialect=connection.dialect)
        self.said.append((str(compiled), compiled.params))
        return stream_rows(connection, asked)


@contextmanager
def asking(server: Server, rows: int, backend: Backend, folder: Path) -> Iterator[Bench]:
    """A database opened by one backend, as an observer opens it for a look."""
    told = {**os.environ}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ))
        if backend == "prisma":
            told = environment(folder)
        schema, address = parse(FILES, "prisma/schema.prisma"), read_address(server.url(user="reader"), "DATABASE_URL")
        database = stack.enter_context(open_database(backend, address, schema, told))
        bench = Bench(server, rows, backend, database)
        if backend == "sqlalchemy":
            stack.enter_context(mock.patch.object(sql, "stream_rows", bench.note))
        yield bench


def backends() -> list[Backend]:
    """Those that can be had without a download."""
    return ["sqlalchemy", "prisma"] if (PLACE / "node_modules" / "@prisma").is_dir() else ["sqlalchemy"]


def _milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000
