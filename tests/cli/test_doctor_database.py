"""`ralph doctor`: the database is ready, not configured or broken with the mend; what asks, the role and the schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.database import world
from tests.adapters.database.conftest import postgres as postgres
from tests.helpers import Result, cli_here, make_repo
from tests.postgres_server import Server

SETTINGS = """observers:
  database:
    prisma_schema: prisma
    watches:
      - {name: top, model: Chain, top: {order_by: supply}}
      - {name: typo, model: Chian, top: {order_by: supply}}
"""


def lines(told: Result) -> dict[str, tuple[str, str]]:
    checks = [check for check in told.json["checks"] if check["name"].startswith("database")]
    assert all(check["mend"] for check in checks if check["status"] != "ok")
    return {check["name"]: (check["status"], check["found"]) for check in checks}


def test_not_configured(tmp_path: Path) -> None:
    assert lines(cli_here("doctor", "--json", repo=make_repo(tmp_path / "repo"))) == {
        "database": ("note", "not configured")
    }


def test_without_an_address_it_is_not_configured(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **world.FILES})
    told = cli_here("doctor", "--json", repo=repo)
    assert lines(told) == {"database": ("note", "not configured: nobody says where the database is")}
    assert "set DATABASE_URL in the environment" in told.out


@pytest.mark.parametrize(("user", "role"), [("reader", "ok"), ("app", "wrong")])
def test_ready_with_role_and_schema(tmp_path: Path, postgres: Server, user: str, role: str) -> None:
    drifted = {**world.FILES, "prisma/more.prisma": 'model More {\n id Int @id\n @@schema("gov")\n}\n'}
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **drifted})
    told = cli_here("doctor", "--json", repo=repo, env={"DATABASE_URL": postgres.url(user=user)})
    found = lines(told)
    status, engine = found.pop("database")
    assert status == "ok" and engine.startswith("ready: SQLAlchemy 2.") and "PostgreSQL 1" in engine
    writes = "it may write: INSERT on public.chains, UPDATE on public.chains, DELETE on public.chains and 2 more"
    refused = "it may not write: what was tried was refused"
    difference = found.pop("database schema")
    assert difference[0] == "note"
    assert difference[1].startswith("prisma: model More is table gov.More, which the database lacks")
    assert found == {
        "database role": (role, refused if role == "ok" else writes),
        "database typo": ("wrong", "broken: watch typo: prisma has no model or table Chian"),
    }
    assert "a-Pass-W0rd" not in told.out + told.err


def test_broken_without_its_address_in_any_text(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **world.FILES})
    url = "postgresql://somebody:hunter2hunter2@127.0.0.1:1/of-another"
    told = cli_here("doctor", "--json", repo=repo, env={"DATABASE_URL": url})
    assert lines(told) == {"database": ("wrong", "broken: nothing listens where the database should be")}
    assert not any(word in told.out + told.err for word in ("somebody", "hunter2", "127.0.0.1:1", "of-another"))
