"""The database in whole cycles: what moved is a finding, and where the database is stands nowhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.database import build
from ralph_mission.adapters.observers.database.results import WatchState, dump
from ralph_mission.config.database import DatabaseSettings
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.database import world
from tests.helpers import cli_here, git, make_repo
from tests.postgres_server import Server

SETTINGS = """hands: {fixers: []}
observers:
  database:
    prisma_schema: prisma
    watches:
      - {name: apr, model: Apr, value: value, by: chainId, at: createdAt, change: {over: 29.9%, within: 24h},
         include: [chain.name], unit: '%'}
"""


def test_what_moved_is_a_finding_and_nothing_tells_where(tmp_path: Path, postgres: Server) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **world.FILES})
    env = {"DATABASE_URL": postgres.url(user="reader")}
    before = cli_here("cycle", "--json", "--now", "2030-06-01T10:00:00Z", repo=repo, env=env)
    assert before.json["findings"] == []  # the first look is a baseline
    first = cli_here("cycle", "--json", "--force", "--now", "2030-06-01T12:00:00Z", repo=repo, env=env)
    again = cli_here("cycle", "--json", "--force", "--now", "2030-06-01T13:00:00Z", repo=repo, env=env)
    assert (first.code, again.code) == (0, 0), first.err + again.err
    found = {one["title"]: one["kind"] for one in first.json["findings"]}
    assert found["apr: Cosmos Hub went up by 30 % from 0.1 to 0.13 since 2030-05-31 12:00 UTC"] == "anomaly"
    told = [[(one["fingerprint"], one["occurrence"]) for one in run.json["findings"]] for run in (first, again)]
    assert told[0] == told[1]
    issues = [mission["title"].partition(" went")[0] for mission in again.json["missions"]]
    assert issues == ["apr: Cosmos Hub", "apr: Osmosis"]  # one a cycle, none twice
    everything = first.out + first.err + again.out + again.err + git(repo, "log", "-p", "--all")
    assert not any(word in everything for word in ("a-Pass-W0rd", str(postgres.port), "127.0.0.1"))


def test_without_an_address_the_cycle_goes_on_and_says_so_once(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **world.FILES, "a.py": "# TODO mend\n"})
    told = cli_here("cycle", "--json", repo=repo)
    (line,) = (one for one in told.json["observers"] if one["name"] == "database")
    assert (told.code, line["status"]) == (0, "unavailable")
    assert line["detail"] == "not configured: no DATABASE_URL; set DATABASE_URL in the environment"
    assert [one["kind"] for one in told.json["findings"]] == ["todo"]


# --- observing ---

NOW = datetime.fromisoformat("2030-06-01T12:00:00+00:00")
APR = {"model": "Apr", "value": "value", "by": "chainId", "at": "createdAt", "include": ["chain.name"]}
WATCHES = {
    "change": {**APR, "change": {"over": "30%", "within": "24h"}, "unit": "%"},
    "votes": {
        "model": "Proposal",
        "value": "count(votes)",
        "at": "votes.at",
        "change": {"over": "50%", "within": "24h"},
    },
    "power": {"model": "Proposal", "value": "sum(votes.power)", "at": "at", "threshold": {"above": 9007199254740993}},
    "news": {"model": "Proposal", "where": {"status": "VOTING_PERIOD"}, "new_since": "key", "include": ["chain.name"]},
    "top": {"model": "Chain", "top": {"order_by": "supply", "take": 2}, "include": ["name"]},
    "low": {**APR, "threshold": {"below": 0.2}},
    "odd": {"model": "Apr", "value": "ratio", "at": "createdAt", "outlier": {"within": "9d"}},
    "dead": {"model": "Apr", "at": "createdAt", "by": "chainId", "missing": "90m", "include": ["chain.name"]},
    "open": {"model": "Proposal", "where": {"open": True, "chainId": [7, None]}, "include": ["chain.name", "meta"]},
}


@pytest.fixture
def look(tmp_path: Path, postgres, backend):
    """One look; without a `cursor` after one that found nothing. Settings may be others."""
    name, environment = backend
    repo = make_repo(tmp_path / "repo", world.FILES)
    git_of = Git.open(repo)

    def taken(watches=None, cursor=None, now=NOW, user="reader", **settings):
        chosen = DatabaseSettings.model_validate(
            {
                "backend": name,
                "prisma_schema": "prisma",
                "watches": [{"name": key, **watch} for key, watch in (watches or WATCHES).items()],
                **settings,
            }
        )
        told = {"DATABASE_URL": postgres.url(user=user), **environment}
        cursor = calm(chosen) if cursor is None else cursor
        context = ObservationContext(
            Branch("main", git(repo, "rev-parse", "HEAD").strip()), now, None, cursor, str(tmp_path)
        )
        return build(chosen, git_of, told).observe(context)

    return taken


def calm(settings):
    """What is remembered after a look that found nothing."""
    states = {one.name: WatchState(started=one.new_since is None) for one in settings.watches}
    return dump(states, settings.watches)


def group_words(observation):
    """By watch: which, and in what words."""
    found: dict[str, list[str]] = {}
    for signal in observation.signals:
        found.setdefault(signal.essence[1], []).append(signal.title.partition(": ")[2])
    return found


def test_each_watch_finds_exactly_what_was_planted(look, postgres):
    before = statistics(postgres)
    first = look()
    assert first.status == "ok", first.detail
    assert group_words(first) == {
        "change": ["Osmosis went up by 30 % from 10 to 13 since 2030-05-31 12:00 UTC"],
        "votes": [
            f"{world.ONE} went up by 100 % from 1 to 2 since 2030-05-31 12:00 UTC",
            f"{world.THREE} went up (no percentage can be given from zero) from 0 to 1 since 2030-05-31…",
        ],
        "power": [f"{world.ONE} is 9,007,199,254,740,995, above 9,007,199,254,740,993"],
        "top": ['Ünïcode "quoted" $1 %s :id, Cosmos Hub are the first 2 now'],
        "low": ["Cosmos Hub is 0.13, below 0.2"],
        "dead": ['Ünïcode "quoted" $1 %s :id has no row since 2030-06-01 10:00 UTC, for longer than 1.5 h'],
        "open": ["Cosmos Hub is open now"],
    }
    assert "change: 1 of 3 not judged" in first.detail
    again = look(cursor=first.cursor, now=NOW + timedelta(minutes=1))
    assert list(group_words(again)) == list(group_words(first))
    assert [one.occurrence for one in again.signals] == [one.occurrence for one in first.signals]
    assert statistics(postgres) == before


JUNO = (
    "INSERT INTO chains VALUES (13, 'Juno', 1, NULL)",
    """INSERT INTO aprs SELECT 100 + n, 13, NULL, 5 + n / 100.0,
       '2030-05-30T00:00:00Z'::timestamptz + n * '1 h'::interval, NULL, NULL FROM generate_series(0, 11) n""",
    "INSERT INTO aprs VALUES (120, 13, NULL, 50, '2030-06-01T11:30:00Z', NULL, NULL)",
    f"INSERT INTO gov.votes VALUES ('{world.TWO}', 'eve', 3, '2030-06-01T11:00:00Z')",
)
ODD = {"model": "Apr", "value": "ratio", "by": "chainId", "at": "createdAt", "include": ["chain.name"]}


@pytest.fixture
def planted(postgres):
    """What comes between two looks; the world is as it was afterwards."""
    yield lambda: postgres.run(*JUNO)
    postgres.run(
        "DELETE FROM aprs WHERE chain_id = 13",
        "DELETE FROM chains WHERE id = 13",
        "DELETE FROM gov.votes WHERE power = 3",
    )


def test_all_seven_kinds_find_between_two_looks_what_was_planted_and_no_more(look, postgres, planted):
    kinds = {
        "change": WATCHES["change"],
        "new-since": {"model": "Vote", "new_since": "at", "include": ["voter", "proposal.status"]},
        "top": WATCHES["top"],
        "threshold": WATCHES["low"],
        "outlier": {**ODD, "outlier": {"within": "9d"}},
        "missing": WATCHES["dead"],
        "where": {"model": "Vote", "where": {"voter": "eve", "power": 3}, "include": ["voter"]},
    }
    first = look(kinds)
    assert look(kinds, "").signals == ()
    assert sorted(group_words(first)) == ["change", "missing", "threshold", "top"]
    planted()  # PostgreSQL counts these writes later: that a look writes nothing is tested where nobody else does
    second = look(kinds, first.cursor)
    whole = group_words(first)
    assert group_words(second) == whole | {
        "new-since": ["eve is new"],
        "outlier": ["Juno is 50, usual is 5.055 (score 1010.5, by median absolute deviation of 12 values)"],
        "where": ["eve has voter eve and has power 3 now"],
    }
    assert [dict(one.facts)["usual"] for one in second.signals if one.essence[1] == "outlier"] == ["5.055"]


def test_the_role_that_looks_may_not_write(postgres):
    with (
        psycopg.connect(postgres.url(user="reader")) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("DELETE FROM aprs")


def test_news_are_told_once(look, postgres):
    watch = {"votes": {"model": "Vote", "new_since": "at", "include": ["proposal.chain.name", "power"]}}
    first = look(watch)
    assert (first.signals, first.complete) == ((), False)
    postgres.run(f"INSERT INTO gov.votes VALUES ('{world.TWO}', 'eve', 3, '2030-06-01T11:00:00Z')")
    try:
        second = look(watch, first.cursor)
        assert [dict(one.facts)["row.voter"] for one in second.signals] == ["eve"]
        assert look(watch, second.cursor).signals == ()
    finally:
        postgres.run("DELETE FROM gov.votes WHERE voter = 'eve'")


def test_what_is_over_is_gone(look, postgres):
    watch = {"low": WATCHES["low"]}
    first = look(watch)
    postgres.run("UPDATE aprs SET value = 0.2 WHERE id = 2")
    try:
        again = look(watch, first.cursor)
        assert (again.signals, again.gone) == ((), (("database", "low", "7"),))
    finally:
        postgres.run("UPDATE aprs SET value = 0.13 WHERE id = 2")


def test_a_watch_fails_alone(look):
    seen = look({"typo": {"model": "Chian", "where": {"id": 7}}, "open": WATCHES["open"]})
    assert (seen.status, seen.complete, list(group_words(seen))) == ("ok", False, ["open"])
    assert "watch typo: prisma has no model or table Chian; did you mean Chain?" in seen.detail


def test_when_all_fail_it_is_unavailable_and_forgets_nothing(look):
    first = look({"low": WATCHES["low"]})
    seen = look({"low": WATCHES["low"]}, first.cursor, user="nobody-of-here")
    assert (seen.status, seen.cursor) == ("unavailable", first.cursor)
    assert seen.detail == "the database refuses the user or the password; let the address name a role that may log in"


def test_without_a_schema_in_the_commit_it_says_so(look):
    seen = look(prisma_schema="prisma/none.prisma")
    assert (seen.status, seen.detail) == (
        "unavailable",
        "no commit here holds the Prisma schema prisma/none.prisma; fix observers.database.prisma_schema",
    )


def test_an_address_that_nobody_gave_is_said_once(tmp_path):
    repo = make_repo(tmp_path / "repo")
    settings = DatabaseSettings.model_validate({"watches": [{"name": "w", **WATCHES["open"]}]})
    seen = build(settings, Git.open(repo), {}).observe(
        ObservationContext(Branch("", ""), NOW, None, "kept", str(tmp_path))
    )
    assert (seen.status, seen.cursor) == ("unavailable", "kept")
    assert seen.detail == "not configured: no DATABASE_URL; set DATABASE_URL in the environment"


def test_an_owners_own_query_is_watched(look, backend):
    if backend[0] == "prisma":
        pytest.skip("it takes no SQL, and its settings say so")
    watch = {"own": {"sql": "SELECT 'a' AS name, 5 AS n", "by": "name", "value": "n", "threshold": {"above": 4}}}
    assert group_words(look(watch)) == {"own": ["a is 5, above 4"]}


def statistics(postgres):
    """What the server itself counted as written."""
    return postgres.run(
        "SELECT pg_stat_force_next_flush()",
        "SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables",
    )


def test_what_no_time_is_left_for_is_told(tmp_path):
    world.in_sqlite(tmp_path / "a.db")
    watch = {"table": "tags", "value": "weight", "threshold": {"above": 4}}
    settings = DatabaseSettings.model_validate({"watches": [{"name": name, **watch} for name in ("one", "two")]})
    hasty = build(settings, Git.open(make_repo(tmp_path / "repo")), {"DATABASE_URL": f"sqlite:///{tmp_path}/a.db"})
    context = ObservationContext(Branch("", ""), NOW, None, calm(settings), str(tmp_path))
    assert group_words(hasty.observe(context)) == {"one": ["3 is 5, above 4"], "two": ["3 is 5, above 4"]}
    seen = replace(hasty, patience=-1.0).observe(context)
    assert (seen.status, seen.detail) == ("unavailable", "watch one: no time was left for it; an index would help")


def test_nothing_and_an_empty_text_are_two_series(look):
    watch = {"model": "Odd", "value": "n", "by": "word", "threshold": {"above": 0}}
    seen = look({"words": watch})
    assert group_words(seen) == {"words": ["(none) is 1, above 0", "(empty) is 2, above 0", "None is 3, above 0"]}
    assert [one.essence[2] for one in seen.signals] == ["(none)", "(empty)", "None"]
    again = look({"words": watch}, seen.cursor)
    assert [one.essence for one in again.signals] == [one.essence for one in seen.signals]


def test_tables_and_columns_with_odd_names_are_watched_without_a_schema(look, postgres, backend):
    if backend[0] == "prisma":
        pytest.skip("without a schema there is no Prisma")
    watch = {"table": "gov.Odd %s Tabl e", "value": "n", "by": "select", "threshold": {"above": 2}}
    seen = look({"odd": watch | {"include": ["small"]}}, prisma_schema=None)
    assert group_words(seen) == {"odd": ["0.7 is 3, above 2"]}
