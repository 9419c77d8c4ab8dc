"""SQLAlchemy on a real PostgreSQL in another time zone, and on SQLite: exact answers, nothing written, nothing told."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import psycopg
import pytest
import sqlalchemy as sa
import sqlalchemy.dialects.postgresql.psycopg

from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.model import Aggregate, Catalog, Column, Filter, Interest, Query, RowOrder, Shape
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.database.sql import open_sql
from ralph_mission.adapters.database.statements import Dialect, build_select
from ralph_mission.errors import UserError
from tests.adapters.database import world
from tests.adapters.database.contract import EXACT, QUESTIONS, interest


def asking(postgres, user="reader", schema=world.SCHEMA, **caps):
    return open_sql(read_address(postgres.url(user=user), "DATABASE_URL"), schema, world.patient(**caps))


@pytest.fixture(scope="module")
def reader(postgres):
    with asking(postgres) as database:
        yield database


@pytest.mark.parametrize("name", [*QUESTIONS, *EXACT])
@pytest.mark.benign("sql")
def test_postgresql_answers(reader, name):
    query, expected = ({**QUESTIONS, **EXACT})[name]
    reader.describe(interest(query))
    assert list(reader.rows(query)) == expected


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.benign("sql")
def test_sqlite_answers(tmp_path, name):
    query, expected = QUESTIONS[name]
    world.in_sqlite(tmp_path / "a b.db")
    with open_sql(read_address(f"sqlite:///{tmp_path}/a b.db", "DATABASE_URL"), world.SQLITE_SCHEMA) as database:
        database.describe(interest(query))
        assert list(database.rows(query)) == expected


@pytest.mark.parametrize("moment", ["2030-06-01T11:00:00Z", "2030-06-02T00:00:00Z"])
def test_the_latest_of_each_is_found_without_sorting_the_table(postgres, moment):
    """However many rows a series has: what is sorted is one of each, even where several share the moment."""
    rows = "SELECT 1000 + n, 7 + 2 * (n % 2), 1, NULL, '2030-05-01T00:00:00Z'::timestamptz + n / 4 * '1 s'::interval"
    postgres.run(f"INSERT INTO aprs {rows}, NULL, NULL FROM generate_series(1, 4000) n")
    try:
        order = (RowOrder("createdAt", True), RowOrder("id", True))
        until = (Filter("createdAt", "<=", datetime.fromisoformat(moment)),)
        query = Query("Apr", ("id", "chainId"), until, order, first_of="chainId")
        asked = build_select(query, world.SCHEMA, Dialect()).compile(dialect=sa.dialects.postgresql.psycopg.dialect())
        with psycopg.connect(postgres.url()) as connection:
            explained = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {asked}", asked.params).fetchone()[0]
            found = {chain: number for number, chain, *_ in connection.execute(str(asked), asked.params)}
        last = 4 if moment > "2030-06-01T11:00:00Z" else 3
        assert found == {7: 2, 9: last, 11: 5}
        assert all(node["Actual Rows"] < 20 for node in sorts(explained[0]["Plan"]))
    finally:
        postgres.run("DELETE FROM aprs WHERE id > 1000")


def sorts(node):
    """Every step of a plan that sorts."""
    inner = [one for child in node.get("Plans", ()) for one in sorts(child)]
    return [node, *inner] if "Sort" in node["Node Type"] else inner


@pytest.mark.attack(58)
def test_nothing_is_written_even_by_one_who_could(postgres):
    postgres.run(
        "CREATE TABLE IF NOT EXISTS touched (at timestamptz)",
        "CREATE OR REPLACE FUNCTION touch() RETURNS int LANGUAGE sql AS 'INSERT INTO touched VALUES (now()); SELECT 1'",
    )
    with asking(postgres, "app") as database, pytest.raises(UserError, match="refused to write"):
        database.describe(Interest("query own", (), "SELECT touch() AS one"))
        database.rows(Query("query own", ("one",)))
    assert postgres.run("SELECT count(*) FROM touched") == [(0,)]


# --- names without a Prisma schema -----------------------------------------------------


def test_without_a_schema_names_are_those_of_the_database(postgres):
    with asking(postgres, schema=None) as database:
        catalog = database.describe(Interest("aprs", ("chain.parent",)))
        assert [c.type for c in catalog.shape("aprs").columns] == [
            *("int", "int", "decimal", "float", "time", "time", "time")
        ]
        assert catalog.shape("tags").columns == ()
        query = Query("aprs", ("id", "chain.parent.name"), (Filter("chain_id", "=", 9),), (RowOrder("id"),), limit=1)
        assert database.rows(query) == [{"id": 3, "chain.parent.name": "Cosmos Hub"}]
        votes = Aggregate("votes", "sum", "votes", "power")
        database.describe(Interest("gov.proposals", ("votes",)))
        query = Query("gov.proposals", ("status",), (Filter("status", "=", "passed"),), aggregates=(votes,))
        assert database.rows(query) == [{"status": "passed", "votes": 1}]


def test_a_schema_in_the_address_is_where_tables_are(postgres):
    url = postgres.url(user="reader", query="?schema=gov&connection_limit=3&sslmode=prefer")
    with open_sql(read_address(url, "DATABASE_URL")) as database:
        database.describe(Interest("votes"))
        assert len(database.rows(Query("votes", ("voter",)))) == 3


QUOTED = """
model Quoted {
  id  Int    @id @map("an \\"id\\"")
  n   Int    @map("Größe; DROP TABLE tags --")
  @@map("Quo\\"ted")
  @@schema("public")
}
"""


@pytest.fixture
def quoted(postgres):
    postgres.run(
        'CREATE TABLE "Quo""ted" ("an ""id""" int PRIMARY KEY, "Größe; DROP TABLE tags --" int)',
        'INSERT INTO "Quo""ted" VALUES (1, 5), (2, NULL)',
        'GRANT SELECT ON "Quo""ted" TO reader',
    )
    yield {**world.FILES, "prisma/quoted.prisma": QUOTED}
    postgres.run('DROP TABLE "Quo""ted"')


def test_names_are_quoted_whatever_is_in_them(postgres, quoted):
    schema = world.parse(quoted, "prisma")
    for given, source, number in ((schema, "Quoted", "n"), (None, 'Quo"ted', "Größe; DROP TABLE tags --")):
        with asking(postgres, schema=given) as database:
            shape = database.describe(Interest(source)).shape(source)
            assert [one.type for one in shape.columns] == ["int", "int"] and len(shape.key) == 1
            query = Query(
                source, (number,), (Filter(number, ">", 1),), (RowOrder(number, True),), first_of=shape.key[0]
            )
            assert database.rows(query) == [{number: 5}]
            assert database.writable(Interest(source)) == ()
    assert postgres.run("SELECT count(*) FROM tags") == [(3,)]


# --- what does not fit -----------------------------------------------------------------


def test_a_difference_between_schema_and_database_names_both(postgres):
    renamed = world.MAIN.replace('@map("chain_id")\n  chain     Chain', '@map("chainid")\n  chain     Chain')
    schema = world.parse({**world.FILES, "prisma/schema.prisma": renamed}, "prisma")
    with asking(postgres, schema=schema) as database:
        with pytest.raises(UserError) as caught:
            database.describe(Interest("Apr"))
        database.describe(Interest("Chain"))
        assert len(database.drift()) == 1
    assert caught.value.what == (
        "prisma: field Apr.chainId is column aprs.chainid, which the database lacks; did you mean chain_id?"
    ).replace("column aprs", "column public.aprs")


def test_a_table_that_may_not_be_read_is_named(postgres):
    postgres.run("CREATE TABLE IF NOT EXISTS hidden (id int)")
    with (
        asking(postgres, schema=None) as database,
        pytest.raises(UserError, match=r"may not read table public\.hidden"),
    ):
        database.describe(Interest("hidden"))
        database.rows(Query("hidden", ("id",)))


@pytest.mark.attack(59)
def test_what_takes_too_long_is_ended_by_the_server(postgres):
    with asking(postgres, seconds=0.2) as database, pytest.raises(UserError, match="took too long over query slow"):
        database.describe(Interest("query slow", (), "SELECT 1 AS one FROM pg_sleep(600)"))
        database.rows(Query("query slow", ("one",)))


@pytest.mark.attack(59)
def test_nobody_waits_for_a_lock(postgres):
    with asking(postgres, lock_seconds=0.1) as database, psycopg.connect(postgres.url()) as other:
        database.describe(Interest("Tag"))
        other.execute("LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UserError, match=r"table public\.tags was locked"):
            database.rows(Query("Tag", ("id",)))


@pytest.mark.attack(59)
def test_an_answer_that_is_too_large_is_not_carried_away(postgres):
    with asking(postgres, bytes=1_000_000) as database, pytest.raises(UserError, match="more than 1 MB"):
        many = "SELECT repeat(chr(97 + n % 20), 3000) AS text FROM generate_series(1, 1000) n"
        database.describe(Interest("query large", (), many))
        database.rows(Query("query large", ("text",)))


@pytest.mark.attack(58, 59)
def test_sqlite_is_interrupted_and_cannot_be_written(tmp_path):
    world.in_sqlite(tmp_path / "a.db")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS many FROM n"
    with open_sql(read_address(f"sqlite:///{tmp_path}/a.db", "DATABASE_URL"), None, Caps(seconds=0.2)) as database:
        with pytest.raises(UserError, match="took too long"):
            database.describe(Interest("query endless", (), endless))
        assert database.writable(Interest("tags")) == ()
    with (
        pytest.raises(UserError, match="file cannot be opened"),
        open_sql(read_address(f"file:{tmp_path}/none.db", "D")),
    ):
        pass
    assert not (tmp_path / "none.db").exists()


def test_a_server_that_knows_no_encoding_is_read_as_unicode(postgres):
    postgres.run("CREATE DATABASE old ENCODING 'SQL_ASCII' TEMPLATE template0", database="postgres")
    odd = r"INSERT INTO words VALUES (1, convert_from('\xc3b6', 'SQL_ASCII')), (2, convert_from('\xff', 'SQL_ASCII'))"
    postgres.run("CREATE TABLE words (id int PRIMARY KEY, word text)", odd, database="old")
    with open_sql(read_address(postgres.url("old"), "DATABASE_URL")) as database:
        database.describe(Interest("words"))
        assert database.rows(Query("words", ("word",), (Filter("word", "=", "ö"),))) == [{"word": "ö"}]
        with pytest.raises(UserError, match=r"table public\.words holds a value that cannot be read"):
            database.rows(Query("words", ("word",)))


def test_one_odd_text_is_not_the_end_of_a_table(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute("CREATE TABLE t (id integer primary key, word text, meta json)")
        made.execute("INSERT INTO t VALUES (1, CAST(x'ff41' AS TEXT), ?), (2, 'fine', NULL)", ('{"a": "\\ud800"}',))
    made.close()
    with open_sql(read_address(f"sqlite:///{tmp_path}/a.db", "DATABASE_URL")) as database:
        database.describe(Interest("t"))
        rows = database.rows(Query("t", ("word", "meta"), order=(RowOrder("id"),)))
    assert rows == [{"word": "\ufffdA", "meta": '{"a":"?"}'}, {"word": "fine", "meta": None}]


def test_a_number_that_no_column_can_hold_is_found_nowhere(postgres):
    with asking(postgres) as database:
        database.describe(Interest("Chain"))
        assert database.rows(Query("Chain", ("id",), (Filter("supply", "=", 10**30),))) == []
        assert len(database.rows(Query("Chain", ("id",), (Filter("supply", "<", 10**30),)))) == 3


# --- somebody's own SQL ----------------------------------------------------------------


@pytest.mark.benign("sql")
def test_an_owners_own_query_is_a_table(postgres):
    text = "SELECT c.name, sum(a.value)::numeric AS total, max(created_at)::timestamptz AS at -- ':x' %s\n"
    text += "FROM chains c JOIN aprs a ON a.chain_id = c.id GROUP BY c.name;"
    with asking(postgres) as database:
        shape = database.describe(Interest("query totals", (), text)).shape("query totals")
        assert [(column.name, column.type) for column in shape.columns] == [
            *(("name", "text"), ("total", "decimal"), ("at", "time"))
        ]
        query = Query("query totals", ("name", "total"), (Filter("total", ">", Decimal("0.2")),), (RowOrder("total"),))
        assert [row["name"] for row in database.rows(query)] == ["Cosmos Hub", "Osmosis"]


@pytest.mark.benign("sql")
def test_a_comment_at_its_end_hides_nothing(postgres):
    with asking(postgres) as database:
        database.describe(Interest("query one", (), "SELECT 1 AS one -- that is all"))
        assert database.rows(Query("query one", ("one",), (Filter("one", ">", 1),))) == []


@pytest.mark.parametrize("text", ["SELECT 1 AS one; DELETE FROM tags", "SELECT 1 AS one) AS own; DELETE FROM tags; --"])
@pytest.mark.attack(58)
def test_it_is_one_statement(postgres, text):
    with asking(postgres, "app") as database, pytest.raises(UserError, match="does not understand"):
        database.describe(Interest("query two", (), text))
    assert postgres.run("SELECT count(*) FROM tags") == [(3,)]


# --- the role ---------------------------------------------------------------------------


def test_a_role_that_may_only_read_is_refused(postgres):
    before = postgres.run("SELECT xmin::text, count(*) FROM tags GROUP BY 1")
    with asking(postgres) as database:
        assert database.writable(Interest("Tag")) == ()
    assert postgres.run("SELECT xmin::text, count(*) FROM tags GROUP BY 1") == before


def test_what_another_may_is_told_and_not_done(postgres):
    postgres.run(
        "DROP ROLE IF EXISTS habit",
        "CREATE ROLE habit LOGIN",
        "ALTER ROLE habit SET default_transaction_read_only = on",
        "GRANT SELECT, UPDATE ON tags TO habit",
    )
    with asking(postgres, "habit", None) as database:
        assert database.writable(Interest("tags")) == ("UPDATE on public.tags",)
    with asking(postgres, "app", None) as database:
        assert database.writable(Interest("tags")) == (
            *("INSERT on public.tags", "UPDATE on public.tags", "DELETE on public.tags", "CREATE TABLE"),
            "TRUNCATE on public.tags",
        )
    assert postgres.run("SELECT to_regclass('ralph_may_write')") == [(None,)]
    postgres.run("REVOKE ALL ON tags FROM habit", "DROP ROLE habit")


def test_what_a_role_was_given_is_told_though_a_column_is_generated(postgres):
    postgres.run(
        "DROP ROLE IF EXISTS adder",
        'CREATE TABLE "Odd %s" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, b int)',
        "CREATE ROLE adder LOGIN",
        'GRANT SELECT, INSERT (a), UPDATE (b) ON "Odd %s" TO adder',
    )
    with asking(postgres, "adder", None) as database:
        assert database.writable(Interest("Odd %s")) == ("INSERT on public.Odd %s", "UPDATE on public.Odd %s")
    postgres.run('DROP TABLE "Odd %s"', "DROP ROLE adder")


def test_a_time_without_end_is_named_as_what_cannot_be_read(postgres):
    postgres.run("CREATE TABLE ends (at timestamptz)", "INSERT INTO ends VALUES ('infinity')")
    postgres.run("GRANT SELECT ON ends TO reader")
    with asking(postgres, schema=None) as database, pytest.raises(UserError) as caught:
        database.describe(Interest("ends"))
        database.rows(Query("ends", ("at",)))
    assert caught.value.what == "table public.ends holds a value that cannot be read"
    postgres.run("DROP TABLE ends")


# --- no address in any text --------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user": "nobody-of-here"}, "refuses the user or the password"),
        ({"database": "of-another"}, "no database of that name"),
        ({"port": 1}, "nothing listens"),
        ({"query": "?sslmode=require"}, "the database does not support TLS"),
        ({"query": "?strange=1"}, "has an unknown part"),
    ],
)
def test_where_it_is_stands_in_no_complaint(postgres, change, said):
    server = replace(postgres, port=change.pop("port", postgres.port))
    url = server.url(**{"user": "reader", **change})
    with pytest.raises(UserError) as caught, open_sql(read_address(url, "DATABASE_URL"), world.SCHEMA) as database:
        database.describe(Interest("Tag"))
    told = f"{caught.value.what} {caught.value.next_step} {caught.value!r}"
    assert said in told
    for secret in ("127.0.0.1", str(server.port), "a-Pass", "reader", "nobody-of", "of-another"):
        assert secret not in told.replace("port=1", "")
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_a_server_that_says_nothing_is_given_up(monkeypatch):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"postgresql://reader:x@127.0.0.1:{mute.getsockname()[1]}/app"
        with (
            pytest.raises(UserError, match="does not answer"),
            open_sql(read_address(url, "D"), None, Caps(connect_seconds=2)) as one,
        ):
            one.describe(Interest("tags"))


def test_one_connection_serves_threads_one_after_the_other(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute("CREATE TABLE t (id integer primary key)")
    made.close()
    with open_sql(read_address(f"sqlite:///{tmp_path}/a.db", "DATABASE_URL")) as database:
        told = []
        thread = threading.Thread(target=lambda: told.append(database.describe(Interest("t")).shape("t").key))
        thread.start()
        thread.join()
    assert told == [("id",)]


def test_a_text_that_would_be_an_endless_number_is_none(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, n BLOB)")
        made.execute("INSERT INTO odd VALUES (1, '1e999999999'), (2, '12')")
    odd = Shape("odd", "odd", "", (Column("id", "id", "int"), Column("n", "n", "int")), ("id",))
    with open_sql(read_address(f"sqlite:///{tmp_path}/a.db", "DATABASE_URL"), Catalog((odd,))) as database:
        rows = database.rows(Query("odd", ("n",), order=(RowOrder("id"),)))
    assert [row["n"] for row in rows] == [Decimal("1e999999999"), 12]
