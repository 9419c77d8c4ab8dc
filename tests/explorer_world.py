"""The database of an explorer of chains: a PostgreSQL with its migrations, hundreds of validators, what a day brings.

The schema is a small one of ours, or with `VALIDATORINFO=DIR` in the environment that of a clone of validatorinfo with
all its migrations. What is filled are tables and columns that both have.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql

from tests.postgres_server import Server

SCHEMA = """
model Chain {
  id         Int     @id @default(autoincrement())
  name       String  @unique
  prettyName String  @map("pretty_name")
  nodes      Node[]
  prices     Price[]
  aprs       Apr[]
  tokenomics Tokenomics?
  proposals  Proposal[]
  @@map("chains")
}
model Node {
  id      Int     @id @default(autoincrement())
  chainId Int     @map("chain_id")
  moniker String
  jailed  Boolean @default(false)
  tokens  String
  rate    String
  chain   Chain   @relation(fields: [chainId], references: [id])
  @@map("nodes")
}
model Price {
  id        Int      @id @default(autoincrement())
  chainId   Int      @map("chain_id")
  value     Float    @default(0)
  createdAt DateTime @default(now()) @map("created_at") @db.Timestamptz(6)
  chain     Chain    @relation(fields: [chainId], references: [id])
  @@map("prices")
}
model Apr {
  id        Int      @id @default(autoincrement())
  chainId   Int      @map("chain_id")
  value     Float    @default(0)
  createdAt DateTime @default(now()) @map("created_at") @db.Timestamptz(6)
  chain     Chain    @relation(fields: [chainId], references: [id])
  @@map("aprs")
}
model Tokenomics {
  id      Int   @id @default(autoincrement())
  chainId Int   @unique @map("chain_id")
  tvl     Float @default(0)
  apr     Float @default(0)
  chain   Chain @relation(fields: [chainId], references: [id])
  @@map("tokenomics")
}
enum ProposalStatus {
  PROPOSAL_STATUS_VOTING_PERIOD
  PROPOSAL_STATUS_PASSED
}
model Proposal {
  id      Int            @id @default(autoincrement())
  chainId Int            @map("chain_id")
  title   String
  status  ProposalStatus
  chain   Chain          @relation(fields: [chainId], references: [id])
  @@map("proposals")
}
"""
MIGRATIONS = (
    "CREATE TABLE chains (id serial PRIMARY KEY, name text UNIQUE NOT NULL, pretty_name text NOT NULL)",
    """CREATE TABLE nodes (id serial PRIMARY KEY, chain_id int NOT NULL REFERENCES chains, moniker text NOT NULL,
       jailed boolean NOT NULL DEFAULT false, tokens varchar(256) NOT NULL, rate varchar(256) NOT NULL)""",
    """CREATE TABLE prices (id serial PRIMARY KEY, chain_id int NOT NULL REFERENCES chains, value float8 NOT NULL,
       created_at timestamptz(6) NOT NULL DEFAULT now())""",
    """CREATE TABLE aprs (id serial PRIMARY KEY, chain_id int NOT NULL REFERENCES chains, value float8 NOT NULL,
       created_at timestamptz(6) NOT NULL DEFAULT now())""",
    """CREATE TABLE tokenomics (id serial PRIMARY KEY, chain_id int UNIQUE NOT NULL REFERENCES chains,
       tvl float8 NOT NULL DEFAULT 0, apr float8 NOT NULL DEFAULT 0)""",
    "CREATE TYPE \"ProposalStatus\" AS ENUM ('PROPOSAL_STATUS_VOTING_PERIOD', 'PROPOSAL_STATUS_PASSED')",
    """CREATE TABLE proposals (id serial PRIMARY KEY, chain_id int NOT NULL REFERENCES chains, title text NOT NULL,
       status "ProposalStatus" NOT NULL)""",
)
CHAINS = (
    *("Cosmos Hub", "Osmosis", "Neutron", "Juno", "Stride", "Celestia"),
    *("Akash", "Kava", "Injective", "Dymension", "Secret", "Axelar"),
)
NODES = 66  # of each chain: 792 series in all
OWN = "Citizen Web3"
CLONE = os.environ.get("VALIDATORINFO", "")
NOTHING = {"integer": 0, "bigint": 0, "double precision": 0.0, "numeric": 0, "boolean": False, "jsonb": "{}"}


def schema_text() -> str:
    """The Prisma schema."""
    return _of_clone("prisma/schema.prisma") if CLONE else SCHEMA


def migrations() -> Iterator[str]:
    """What builds the tables."""
    if not CLONE:
        yield from MIGRATIONS
        return
    listed = _git("ls-tree", "-r", "--name-only", "HEAD", "prisma/migrations").splitlines()
    for path in sorted(path for path in listed if path.endswith("migration.sql")):
        # A server without pgvector keeps as text what nobody here watches.
        plain = re.sub(r"^CREATE EXTENSION IF NOT EXISTS vector;$", "", _of_clone(path), flags=re.MULTILINE)
        yield re.sub(r"^CREATE INDEX[^;]*vector_\w+_ops[^;]*;$", "", plain, flags=re.MULTILINE).replace(
            "vector(768)", "text"
        )


def _of_clone(path: str) -> str:
    return _git("show", f"HEAD:{path}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", CLONE, *arguments], capture_output=True, text=True, check=True).stdout


@dataclass
class ExplorerDatabase:
    """Rows as they are at `now`, and go on to be for a month."""

    server: Server
    name: str
    now: datetime
    _needed: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.url(self.name, user="explorer_reader")

    def build(self) -> None:
        self.server.run(f'CREATE DATABASE "{self.name}"', database="postgres")
        self.server.run(*migrations(), database=self.name)
        with self._connected() as connection:
            self._fill(connection)
        self.server.run(
            "DO $$ BEGIN CREATE ROLE explorer_reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO explorer_reader",
            database=self.name,
        )

    def run(self, *statements: str) -> None:
        self.server.run(*statements, database=self.name)

    def hours(self, table: str, first: float, last: float, factor: float = 1.0) -> None:
        """One row an hour for each chain, from and to so many hours from `now`."""
        self.run(
            f"INSERT INTO {table} (chain_id, value, created_at) SELECT id, {factor} * (10 + id), "
            f"'{self.now.isoformat()}'::timestamptz + n * '1 h'::interval "
            f"FROM chains, generate_series({first}, {last}) n"
        )

    def _fill(self, connection: psycopg.Connection) -> None:
        if CLONE:
            self._insert(connection, "ecosystems", name="cosmos", pretty_name="Cosmos")
        for n, pretty in enumerate(CHAINS, 1):
            more = {"ecosystem": "cosmos", "chain_id": f"chain-{n}"} if CLONE else {}
            self._insert(connection, "chains", id=n, name=pretty.lower(), pretty_name=pretty, **more)
            self._insert(connection, "tokenomics", chain_id=n, tvl=1_000_000.0 * n, apr=float(n))
            for k in range(NODES):
                own = {"operator_address": f"addr{n}-{k}"} if CLONE else {}
                moniker = OWN if k == 0 else f"validator {k}"
                jailed, tokens = 0 < k <= 34, str(10**12 + k)
                self._insert(
                    connection, "nodes", chain_id=n, moniker=moniker, jailed=jailed, tokens=tokens, rate="0.05", **own
                )
        connection.commit()
        for table in ("aprs", "prices"):
            self.hours(table, -48, 30 * 24)

    def _insert(self, connection: psycopg.Connection, table: str, **values: Any) -> None:
        """A row, with nothing in what must not be null and has no default."""
        filled = {**self._required(connection, table), **values}
        names = sql.SQL(", ").join(map(sql.Identifier, filled))
        marks = sql.SQL(", ").join(sql.Placeholder() * len(filled))
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, marks)
        connection.execute(statement, list(filled.values()))

    def _required(self, connection: psycopg.Connection, table: str) -> Mapping[str, Any]:
        if table not in self._needed:
            asked = (
                "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s "
                "AND table_schema = 'public' AND is_nullable = 'NO' AND column_default IS NULL"
            )
            rows = connection.execute(asked, [table]).fetchall()
            self._needed[table] = {str(name): str(kind) for name, kind in rows}
        kinds = self._needed[table]
        return {name: self.now if "timestamp" in kind else NOTHING.get(kind, "") for name, kind in kinds.items()}

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(self.server.url(self.name))

    # --- what a day brings --------------------------------------------------------------

    def tvl_rises(self, chain: str = "Osmosis") -> None:
        its = f"FROM chains c WHERE c.id = tokenomics.chain_id AND pretty_name = '{chain}'"
        self.run(f"UPDATE tokenomics SET tvl = tvl * 1.45 {its}")

    def bad_day(self, at: datetime) -> None:
        """Our validator is jailed and loses stake, another takes twice the commission, an APR jumps, a job is dead."""
        one = "FROM chains c WHERE c.id = nodes.chain_id AND pretty_name = '{}' AND moniker = '{}'"
        self.run(
            f"UPDATE nodes SET jailed = true, tokens = '550000000000' {one.format('Cosmos Hub', OWN)}",
            f"UPDATE nodes SET rate = '0.10' {one.format('Osmosis', 'validator 60')}",
            f"UPDATE nodes SET jailed = false {one.format('Juno', 'validator 7')}",
            "UPDATE aprs SET value = value * 1.45 FROM chains c WHERE c.id = aprs.chain_id AND pretty_name = 'Neutron' "
            f"AND created_at > '{(at - timedelta(hours=3)).isoformat()}'",
            f"DELETE FROM prices WHERE created_at > '{(at - timedelta(hours=25)).isoformat()}'",
        )


BAD_DAY = {
    "jailed: Citizen Web3 (Cosmos Hub) is jailed now",
    "jailed: validator 7 (Juno) is no longer jailed",
    "rate: validator 60 (Osmosis) went up by 100 % from 0.05 to 0.1",
    "tokens: Citizen Web3 (Cosmos Hub) went down by 45 % from 1,000,000,000,000 to 550,000,000,000",
    "apr: Neutron went up by 45 % from 13 to 18.85",
    "price-feed: 12 of 12 chains have no new row",
}
"""How findings of `bad_day` begin, up to ` since`."""


def beginnings(titles: Iterator[str] | list[str]) -> set[str]:
    """Titles up to when it was."""
    return {title.partition(" since ")[0] for title in titles}
