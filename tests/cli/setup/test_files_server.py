"""`ralph init --server`: a tunnel, a role that only reads, a runner; nothing secret in any of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.init_place import states
from tests.cli.setup.test_files_workflow import sections
from tests.helpers import Result, cli_here, make_repo
from tests.postgres_server import Server, Unavailable, running

UNITS = ("ralph-tunnel@.service", "ralph-runner@.service")
READER = "ralph_reader"


def write_units(repo: Path, folder: Path, *options: str) -> Result:
    return cli_here("init", "--server", "--units", str(folder), "--json", *options, repo=repo)


def test_units_are_what_systemd_accepts(tmp_path: Path) -> None:
    repo, folder = make_repo(tmp_path / "repo"), tmp_path / "some units 100%"
    write_units(repo, folder)
    tunnel, runner = (sections((folder / name).read_text())["Service"] for name in UNITS)
    assert tunnel["EnvironmentFile"] == "%f/.ralph/tunnel.env" and runner["WorkingDirectory"] == "%f"
    if shutil.which("systemd-analyze"):
        verify = ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in UNITS)]
        said = subprocess.run(verify, capture_output=True, text=True, check=False).stderr.splitlines()
        assert [line for line in said if "autossh is not executable" not in line] == []


def test_the_tunnel_refuses_a_host_it_does_not_know_and_ends_when_it_cannot_forward(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write_units(repo, tmp_path / "units")
    command = (tmp_path / "units" / UNITS[0]).read_text()
    for option in ("StrictHostKeyChecking=yes", "BatchMode=yes", "ExitOnForwardFailure=yes", "-M 0"):
        assert option in command


def test_the_settings_of_the_tunnel_are_their_owners_and_stay(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    told = write_units(repo, tmp_path / "units")
    place = repo / ".ralph/tunnel.env"
    assert states(told)["tunnel.env"] == "new" and place.stat().st_mode & 0o777 == 0o600
    place.write_text("TUNNEL_HOST=me@host\n")
    assert states(write_units(repo, tmp_path / "units", "--force"))["tunnel.env"] == "kept"
    assert place.read_text() == "TUNNEL_HOST=me@host\n"


def test_what_was_written_is_known_again(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write_units(repo, tmp_path / "units")
    assert {states(write_units(repo, tmp_path / "units"))[name] for name in (*UNITS, "ralph-reader.sql")} == {
        "unchanged"
    }


def test_every_step_is_told_in_order(tmp_path: Path) -> None:
    steps = write_units(make_repo(tmp_path / "repo"), tmp_path / "units").json["steps"]
    words = ("psql", "\\password", "tunnel.env", "link", "ralph-tunnel@", "DATABASE_URL", "runner", "ralph-runner@")
    assert [any(word in step for step in steps[place:]) for place, word in enumerate(words)] == [True] * len(words)
    assert not any(step.startswith("Settings,") for step in steps)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        with running() as server:
            yield server
    except Unavailable as missing:
        pytest.skip(str(missing))  # the text says what would bring one


@pytest.mark.long  # a server of its own
def test_the_role_reads_what_is_there_and_what_comes_and_writes_nothing(tmp_path: Path, server: Server) -> None:
    import psycopg

    write_units(make_repo(tmp_path / "repo"), tmp_path / "units")
    sql = (tmp_path / "units/ralph-reader.sql").read_text()
    server.run("CREATE ROLE owner_of_all", "CREATE TABLE old (n int)", "ALTER TABLE old OWNER TO owner_of_all")
    server.run(
        "GRANT ALL ON SCHEMA public TO owner_of_all", sql, sql, "SET ROLE owner_of_all; CREATE TABLE new (n int)"
    )
    with psycopg.connect(server.url(user=READER), autocommit=True) as reader:
        assert reader.execute("SELECT count(*) FROM old, new").fetchone() == (0,)
        reader.execute("SET default_transaction_read_only = off")
        for attempt in ("INSERT INTO old VALUES (1)", "DELETE FROM new", "CREATE TABLE mine (n int)", "CREATE ROLE x"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(attempt)
        assert reader.execute("SHOW statement_timeout").fetchone() == ("30s",)
    again = server.run("SELECT rolconnlimit, rolsuper FROM pg_roles WHERE rolname = 'ralph_reader'")
    assert again == [(5, False)]
