"""`ralph watch` as a process: real cycles, one due time, and an end that is prompt and clean."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.storage.memory.making import on_server
from tests.helpers import cli_here, git, make_repo
from tests.integration.test_interrupts import SLOWLY
from tests.integration.world import world

MAIN = "import sys; from ralph_mission.cli.main import main; sys.exit(main())"


def started(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def journal(repo: Path) -> list[dict]:
    names = git(repo, "ls-tree", "-r", "--name-only", "ralph-memory", "memory/journal").splitlines()
    return [json.loads(git(repo, "show", f"ralph-memory:{name}")) for name in names]


def test_once_runs_the_cycle_that_is_due_and_says_when_the_next_is(tmp_path):
    hub = world(tmp_path / "repo")
    told = cli_here("watch", "--once", repo=hub.repo)
    assert told.code == 0
    (line,) = told.out.splitlines()
    assert "cycle 1: " in line
    assert "; next 20" in line
    assert [document["report"]["trigger"] for document in journal(hub.repo)] == ["watch"]
    assert cli_here("due", repo=hub.repo).code == 10


def test_help_says_that_once_waits_until_it_is_due():
    assert "starts when due" in " ".join(cli_here("watch", "--help").out.split())


@pytest.mark.long  # signals to processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_cycles_ends_it_at_once_with_130(tmp_path, number):
    hub = world(tmp_path / "repo")
    with started(sys.executable, "-uc", MAIN, "watch", "--repo", str(hub.repo)) as process:
        assert process.stdout is not None
        assert "cycle 1: " in process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.count("\n") == 1
    assert cli_here("memory", "verify", repo=hub.repo).code == 0


@pytest.mark.long  # signals to processes
def test_a_signal_within_a_cycle_ends_it_and_the_next_carries_on(tmp_path):
    hub = world(tmp_path / "repo")
    command = (sys.executable, "-c", SLOWLY, "observe", "watch", "--repo", str(hub.repo))
    with started(*command) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "READY\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 130
    assert cli_here("watch", "--once", repo=hub.repo).code == 0
    assert len(journal(hub.repo)) == 1


def test_settings_that_are_wrong_end_it_before_anything(tmp_path):
    hub = world(tmp_path / "repo", config="schedule: {hgh: 15m}\n")
    told = cli_here("watch", repo=hub.repo)
    assert told.code == 2
    assert "Did you mean high" in told.err


def test_what_has_no_effect_is_said_at_the_start(tmp_path):
    hub = world(tmp_path / "repo", config="hands: {fixers: []}\nplugins: {}\n")
    told = cli_here("watch", "--once", repo=hub.repo)
    assert "note: " in told.out.splitlines()[0]


def test_on_github_the_servers_memory_says_when(tmp_path):
    settings = "forge: {kind: github}\nhands: {fixers: []}\nobservers:\n  code: {markers: {}}\n"
    repo = make_repo(tmp_path / "repo", {"ralph.yml": settings})
    with on_server(repo, tmp_path / "server.git") as fake:
        env = {
            "GITHUB_TOKEN": fake.token(),
            "GITHUB_REPOSITORY": fake.repository,
            "GITHUB_API_URL": fake.api_url,
            "GITHUB_SERVER_URL": fake.url,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        told = cli_here("watch", "--once", repo=repo, env=env)
        assert (told.code, told.out.count("\n")) == (0, 1)
        assert fake.branch("ralph-memory")
        assert git(repo, "branch", "--list", "ralph-memory") == ""
        assert cli_here("due", repo=repo, env=env).code == 10
        assert fake.dispatches == []
