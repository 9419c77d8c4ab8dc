"""A small database with everything that is easy to get wrong, its Prisma schema in two files, and who may read it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ralph_mission.adapters.database.prisma_schema import parse
from ralph_mission.adapters.database.sessions import Caps

MAIN = """
datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL")
  schemas  = ["public", "gov"]
}
generator client {
  provider        = "prisma-client-js"
  previewFeatures = ["multiSchema"]
}

/// A chain \"\"\" + str(1/0) + \"\"\"
model Chain {
  id      Int      @id
  name    String   @db.VarChar(80)
  supply  BigInt   @map("total_supply")
  parentId Int?    @map("parent_id")
  parent  Chain?   @relation("Parents", fields: [parentId], references: [id])
  forks   Chain[]  @relation("Parents")
  aprs    Apr[]
  proposals Proposal[]
  tags    Tag[]
  @@map("chains")
  @@schema("public")
}

model Apr {
  id        Int       @id
  chainId   Int       @map("chain_id")
  chain     Chain     @relation(fields: [chainId], references: [id])
  value     Decimal?  @db.Decimal(60, 30)
  ratio     Float?
  createdAt DateTime  @map("created_at") @db.Timestamptz(6)
  localAt   DateTime? @map("local_at") @db.Timestamp(3)
  day       DateTime? @db.Date
  @@map("aprs")
  @@schema("public")
}

model Tag {
  id     Int     @id
  word   String
  weight Int
  chains Chain[]
  @@map("tags")
  @@schema("public")
}

model Amount {
  id   Int     @id
  said String? @db.VarChar(80)
  at   String? @map("said_at")
  @@map("amounts")
  @@schema("public")
}
"""
GOVERNMENT = """
model Odd {
  id    Int       @id
  code  String?   @unique @map("The Code of a'b")
  word  String?   @map("select")
  n     Decimal?
  small Float?    @db.Real
  at    DateTime? @db.Timestamptz(3)
  marks Mark[]
  @@map("Odd %s Tabl e")
  @@schema("gov")
}

model Mark {
  id   Int     @id
  code String? @map("Code")
  odd  Odd?    @relation(fields: [code], references: [code])
  @@map("marks")
  @@schema("gov")
}

model Proposal {
  key      String  @id @map("proposal_key") @db.Uuid
  chainId  Int?    @map("chain_id")
  chain    Chain?  @relation(fields: [chainId], references: [id])
  status   Status
  open     Boolean
  meta     Json?
  votes    Vote[]
  @@map("proposals")
  @@schema("gov")
}

model Vote {
  proposalKey String   @map("proposal_key") @db.Uuid
  voter       String
  power       BigInt
  at          DateTime @db.Timestamptz(3)
  proposal    Proposal @relation(fields: [proposalKey], references: [key])
  @@id([proposalKey, voter])
  @@map("votes")
  @@schema("gov")
}

enum Status {
  VOTING_PERIOD @map("voting")
  PASSED        @map("passed")
  @@map("status")
  @@schema("gov")
}
"""
FILES = {"prisma/schema.prisma": MAIN, "prisma/government.prisma": GOVERNMENT}
SCHEMA = parse(FILES, "prisma")

TABLES = (
    "CREATE SCHEMA gov",
    "CREATE TYPE gov.status AS ENUM ('voting', 'passed')",
    """CREATE TABLE chains (id int PRIMARY KEY, name varchar(80) NOT NULL, total_supply bigint NOT NULL,
       parent_id int REFERENCES chains)""",
    """CREATE TABLE aprs (id int PRIMARY KEY, chain_id int NOT NULL REFERENCES chains, value numeric(60, 30),
       ratio float8, created_at timestamptz(6) NOT NULL, local_at timestamp(3), day date)""",
    "CREATE TABLE tags (id int PRIMARY KEY, word text NOT NULL, weight int NOT NULL)",
    "CREATE TABLE amounts (id int PRIMARY KEY, said varchar(80), said_at text)",
    """CREATE TABLE "_ChainToTag" ("A" int NOT NULL REFERENCES chains, "B" int NOT NULL REFERENCES tags,
       UNIQUE ("A", "B"))""",
    """CREATE TABLE gov.proposals (proposal_key uuid PRIMARY KEY, chain_id int REFERENCES chains,
       status gov.status NOT NULL, open boolean NOT NULL, meta jsonb)""",
    """CREATE TABLE gov."Odd %s Tabl e" (id int PRIMARY KEY, "The Code of a'b" text UNIQUE, "select" text,
       n numeric, small real, at timestamptz(3))""",
    """CREATE TABLE gov.marks (id int PRIMARY KEY, "Code" text REFERENCES gov."Odd %s Tabl e" ("The Code of a'b"))""",
    """CREATE TABLE gov.votes (proposal_key uuid NOT NULL REFERENCES gov.proposals, voter text NOT NULL,
       power bigint NOT NULL, at timestamptz(3) NOT NULL, PRIMARY KEY (proposal_key, voter))""",
)
ONE, TWO, THREE = (f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2, 3))
ROWS = (
    """INSERT INTO chains VALUES (7, 'Cosmos Hub', 9007199254740993, NULL), (9, 'Osmosis', 5, 7),
       (11, 'Ünïcode "quoted" $1 %s :id', 9223372036854775807, 9)""",
    """INSERT INTO aprs VALUES
       (1, 7, 0.1, 0.1, '2030-05-30T12:00:00Z', '2030-05-30T12:00:00', '2030-05-30'),
       (2, 7, 0.13, NULL, '2030-06-01T11:00:00Z', NULL, NULL),
       (3, 9, 10, 1.5, '2030-05-30T17:45:00+05:45', '2030-05-30T00:15:00.5', '2030-05-29'),
       (4, 9, 13.000000000000000000000000000001, 2, '2030-06-01T11:00:00.123Z', NULL, NULL),
       (5, 11, NULL, NULL, '2030-06-01T10:00:00Z', NULL, NULL)""",
    "INSERT INTO tags VALUES (1, 'pos', 2), (2, 'ibc', 3), (3, 'unused', 5)",
    """INSERT INTO amounts VALUES (1, '12345678901234567890.5', '2030-06-01T11:00:00Z'),
       (2, ' 1e3 ', '2030-06-01T16:30:00+05:45'), (3, 'many', 'yesterday'), (4, '', '2030-02-30'),
       (5, NULL, NULL), (6, '-7', '2028-02-29'), (7, '1,000', '2030-06-01 10:59:59.5')""",
    """INSERT INTO "_ChainToTag" VALUES (7, 1), (7, 2), (9, 2)""",
    f"""INSERT INTO gov.proposals VALUES
       ('{ONE}', 7, 'voting', true, '{{"b": [1, 2.5, null], "a": "ö \\" x", "aa": {{"d": 1, "c": true}}}}'),
       ('{TWO}', NULL, 'voting', false, NULL), ('{THREE}', 9, 'passed', true, '"text"')""",
    """INSERT INTO gov."Odd %s Tabl e" VALUES (1, NULL, NULL, 1, 0.1, NULL), (2, '', '', 2, 0.3, NULL),
       (3, 'None', 'None', 3, 0.7, NULL), (4, 'null', NULL, 4, NULL, NULL),
       (5, 'x', '', 5, 3, '2030-06-01T11:00:00Z')""",
    "INSERT INTO gov.marks VALUES (1, NULL), (2, NULL), (3, ''), (4, 'None'), (5, 'x'), (6, 'x')",
    f"""INSERT INTO gov.votes VALUES ('{ONE}', 'ann', 9007199254740993, '2030-05-30T12:00:00Z'),
       ('{ONE}', 'bob', 2, '2030-06-01T11:00:00Z'), ('{THREE}', 'ann', 1, '2030-06-01T11:00:00Z')""",
)
GRANTS = (
    "CREATE ROLE reader LOGIN",
    "GRANT USAGE ON SCHEMA public, gov TO reader",
    "GRANT SELECT ON ALL TABLES IN SCHEMA public, gov TO reader",
)


def in_sqlite(path: Path) -> None:
    """The same without what SQLite has not: schemas, enums, and numbers of more than sixteen digits."""
    words = {
        "gov.status": "text",
        "uuid": "text",
        "gov.": "",
        "timestamptz": "datetime",
        "timestamp(3)": "datetime",
        "jsonb": "json",
        "bigint": "integer",
    }
    with sqlite3.connect(path) as connection:
        for statement in (*TABLES[2:], *ROWS):
            for theirs, ours in words.items():
                statement = statement.replace(theirs, ours)
            connection.execute(statement)
    connection.close()


SQLITE_SCHEMA = parse(
    {name: text.replace('@@schema("public")', "").replace('@@schema("gov")', "") for name, text in FILES.items()},
    "prisma",
)


def patient(**caps: float) -> Caps:
    """Limits with time enough on any machine, however busy, but for those that a test is about."""
    return Caps(**{"seconds": 300.0, "connect_seconds": 300} | caps)
