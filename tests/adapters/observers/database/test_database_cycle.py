"""The database in whole cycles: what moved is a finding, and where the database is stands nowhere."""

from __future__ import annotations

from pathlib import Path

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
    first = cli_here("cycle", "--json", "--now", "2030-06-01T12:00:00Z", repo=repo, env=env)
    again = cli_here("cycle", "--json", "--force", "--now", "2030-06-01T13:00:00Z", repo=repo, env=env)
    assert (first.code, again.code) == (0, 0), first.err + again.err
    found = {one["title"]: one["kind"] for one in first.json["findings"]}
    assert found["apr: Cosmos Hub went up by 30.00 % from 0.1 to 0.13 since 2030-05-31 12:00 UTC"] == "anomaly"
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
    assert line["detail"] == "not configured: nobody says where the database is; set DATABASE_URL in the environment"
    assert [one["kind"] for one in told.json["findings"]] == ["todo"]
