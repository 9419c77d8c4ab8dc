"""The Prisma client on the same PostgreSQL: the same answers, by the engine that can be had here."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psycopg
import pytest

from ralph_mission.adapters.database import prisma as tools
from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.model import Filter, Interest, Query, RowOrder
from ralph_mission.adapters.database.prisma import open_prisma
from ralph_mission.errors import UserError
from tests.adapters.database import world
from tests.adapters.database.contract import EXACT, QUESTIONS, interest
from tests.adapters.database.prisma_place import place as place
from tests.adapters.database.test_sql import quoted as quoted
from tests.conftest import ROOT

FINE = datetime(2030, 5, 30, 12, 0, 0, 1, tzinfo=UTC)
pytestmark = pytest.mark.real  # needs Node.js and 25 MB of packages


@pytest.fixture(scope="module")
def asking(postgres, place):
    @contextmanager
    def ask(user="reader", files=world.FILES, server=postgres, query="", **caps):
        address = read_address(server.url(user=user, query=query), "DATABASE_URL")
        with open_prisma(address, world.parse(files, "prisma"), place, world.patient(**caps)) as database:
            yield database

    return ask


@pytest.fixture(scope="module")
def reader(asking):
    with asking() as database:
        yield database


@pytest.mark.parametrize("name", [*QUESTIONS, *EXACT])
def test_it_answers_as_sqlalchemy_does(reader, name):
    query, expected = ({**QUESTIONS, **EXACT})[name]
    reader.describe(interest(query))
    assert list(reader.rows(query)) == expected


def test_the_engine_in_use_is_named(reader):
    assert reader.engine.startswith("Prisma 5.17.0, its engine in WebAssembly on Node.js v")


def test_a_client_is_made_once_for_every_schema(asking, place):
    def clients():
        return sorted(Path(place["XDG_CACHE_HOME"], "ralph-prisma").glob("client-*/ralph_client/client.py"))

    with asking():
        before = [(path, path.stat().st_mtime_ns) for path in clients()]
    with asking():
        assert [(path, path.stat().st_mtime_ns) for path in clients()] == before
    with asking(files={**world.FILES, "prisma/c.prisma": 'enum More { ONE\n @@schema("gov") }'}):
        assert len(clients()) == len(before) == 1


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\u2029"])
def test_a_text_that_the_client_would_change_is_refused(reader, letter):
    with pytest.raises(UserError, match="ends of lines"):
        reader.rows(Query("Tag", ("id",), (Filter("word", "=", f"a{letter}b"),)))


@pytest.mark.parametrize("letter", ["\n", "\r", '"', "\\", "\U0001f600"])
def test_no_letter_of_a_text_is_changed_on_its_way(reader, postgres, letter):
    word = f"a{letter}b"
    with psycopg.connect(postgres.url()) as writer:
        writer.execute("UPDATE tags SET word = %s WHERE id = 3", [word])
    try:
        assert reader.rows(Query("Tag", ("id", "word"), (Filter("word", "=", word),))) == [{"id": 3, "word": word}]
    finally:
        postgres.run("UPDATE tags SET word = 'unused' WHERE id = 3")


def test_names_with_quotation_marks_are_names(asking, quoted):
    with asking(files=quoted) as database:
        database.describe(Interest("Quoted"))
        query = Query("Quoted", ("id", "n"))
        assert database.rows(query) == database.beside.rows(query) != []


ODD = (
    Query("Odd", ("id", "n"), order=(RowOrder("n", True), RowOrder("id")), limit=3),
    Query("Odd", ("id", "small"), order=(RowOrder("id"),)),
    Query("Apr", ("id", "createdAt"), (Filter("createdAt", ">=", FINE),), (RowOrder("id"),)),
    Query("Proposal", ("key",), (Filter("key", "in", (world.ONE, world.THREE)),), (RowOrder("key"),)),
    Query("Proposal", ("key",), (Filter("key", ">", world.ONE),), (RowOrder("key"),)),
    Query("Tag", ("id",), (Filter("weight", "<", 10**30),), (RowOrder("id"),)),
)


@pytest.mark.parametrize("query", ODD)
def test_both_senders_get_the_same(postgres, reader, query):
    postgres.run(
        "UPDATE gov.\"Odd %s Tabl e\" SET n = 'NaN', small = 'Infinity' WHERE id = 1",
        "UPDATE aprs SET created_at = '2030-05-30T12:00:00.000001Z' WHERE id = 1",
    )
    try:
        found = [list(one.rows(query)) for one in (reader, reader.beside)]
        assert found[0] and (found[0] == found[1] or str(found[0]) == str(found[1]))  # no NaN equals another
    finally:
        postgres.run(
            'UPDATE gov."Odd %s Tabl e" SET n = 1, small = 0.1 WHERE id = 1',
            "UPDATE aprs SET created_at = '2030-05-30T12:00:00Z' WHERE id = 1",
        )


def test_what_no_python_has_is_one_line(postgres, reader):
    postgres.run("UPDATE aprs SET created_at = 'infinity' WHERE id = 1")
    try:
        with pytest.raises(UserError, match="createdAt holds what is no time"):
            reader.rows(Query("Apr", ("createdAt",)))
    finally:
        postgres.run("UPDATE aprs SET created_at = '2030-05-30T12:00:00Z' WHERE id = 1")


def test_its_sessions_cannot_write(postgres, asking):
    postgres.run(
        "CREATE TABLE IF NOT EXISTS touched (at timestamptz)",
        "CREATE OR REPLACE FUNCTION touch() RETURNS int LANGUAGE sql AS 'INSERT INTO touched VALUES (now()); SELECT 1'",
    )
    with asking("app") as database:
        with pytest.raises(UserError, match="refused to write"):
            database.worker.ask("SELECT touch()", [], "a function")
        with pytest.raises(UserError, match="failed over a change"):
            database.worker.ask("DELETE FROM tags", [], "a change")
    assert postgres.run("SELECT count(*) FROM touched") == [(0,)]


def test_a_difference_between_schema_and_database_names_both(asking):
    renamed = world.MAIN.replace('@map("total_supply")', '@map("supply_total")')
    with asking(files={**world.FILES, "prisma/schema.prisma": renamed}) as database:
        with pytest.raises(UserError, match=r"field Chain\.supply is column public\.chains\.supply_total"):
            database.describe(Interest("Chain"))
        assert database.describe(Interest("Vote"))


def test_it_waits_for_no_lock_and_takes_no_sql(postgres, asking):
    with asking(lock_seconds=0.2) as database, psycopg.connect(postgres.url()) as other:
        other.execute("LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UserError, match=r"table public\.tags"):
            database.rows(Query("Tag", ("id",)))
        other.rollback()
        assert len(database.rows(Query("Tag", ("id",)))) == 3
        with pytest.raises(UserError, match="takes no sql"):
            database.describe(Interest("query own", (), "SELECT 1"))


def test_a_late_answer_is_not_taken_for_the_next_one(postgres, asking, monkeypatch):
    monkeypatch.setattr("ralph_mission.adapters.database.prisma.LATE", -9.9)
    with asking(seconds=9, lock_seconds=1) as database, psycopg.connect(postgres.url()) as other:
        other.execute("LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UserError, match=r"took too long over table public\.tags"):
            database.rows(Query("Tag", ("id",)))
        with pytest.raises(UserError, match="engine of Prisma ended"):
            database.rows(Query("Chain", ("id",)))


def test_an_answer_that_is_too_large_is_not_carried_away(asking, postgres):
    postgres.run("INSERT INTO tags SELECT n, repeat('x', 4000), 1 FROM generate_series(1000, 1400) n")
    try:
        with asking(bytes=1_000_000) as database, pytest.raises(UserError, match="more than 1 MB"):
            database.rows(Query("Tag", ("word",)))
    finally:
        postgres.run("DELETE FROM tags WHERE id > 999")


def test_a_server_that_restarts_is_found_again(postgres, asking):
    with asking() as database:
        assert database.rows(Query("Tag", ("id",)))
        postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
        told = []
        for _ in range(2):
            try:
                told = database.rows(Query("Tag", ("id",)))
            except UserError as problem:
                assert problem.who == "network"
        assert len(told) == 3


@pytest.mark.parametrize("change", [{"user": "nobody-of-here"}, {"query": "?sslmode=require"}, {"port": 1}])
def test_where_it_is_stands_in_no_complaint(asking, postgres, change, capfd):
    server = replace(postgres, port=change.pop("port", postgres.port))
    with pytest.raises(UserError) as caught, asking(server=server, **change) as database:
        database.rows(Query("Tag", ("id",)))
    told = f"{caught.value.what} {caught.value.next_step} {caught.value!r} {''.join(capfd.readouterr())}"
    for secret in ("127.0.0.1", str(postgres.port), "a-Pass", "nobody-of"):
        assert secret not in told


def test_the_engine_answers_nobody_else(reader):
    """It listens on a port of this machine, where anybody may knock."""
    listening = _listening_ports(reader.worker.process.pid)
    answers = []
    for port in listening:
        try:
            answers.append(httpx.get(f"http://127.0.0.1:{port}/status", timeout=2, trust_env=False).json())
        except (httpx.HTTPError, ValueError):
            continue
    assert {} in answers and {"status": "ok"} not in answers


def _listening_ports(pid: int) -> set[int]:
    """Where a process or its children listen; `/proc/net/tcp` has the sockets of the whole machine."""
    processes = [pid]
    for parent in processes:  # grows while it is gone through
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            processes += [int(child) for child in children.read_text().split()]
    ours = {os.readlink(place) for process in processes for place in Path(f"/proc/{process}/fd").iterdir()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in ours}


def test_nothing_of_ours_is_in_its_environment(asking, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_" + "x" * 30)
    with asking() as database:
        told = Path(f"/proc/{database.worker.process.pid}/environ").read_bytes()
    assert b"ghs_" not in told and b"DATABASE_URL=" in told


def test_nothing_of_it_is_left(asking):
    with asking() as database:
        group = os.getpgid(database.worker.process.pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_the_packages_are_those_of_our_lock():
    ours = (tools.OURS / "package.json").read_text()
    theirs = (ROOT / "tests/real/node/package.json").read_text()
    assert json.loads(ours)["dependencies"].items() <= json.loads(theirs)["dependencies"].items()
