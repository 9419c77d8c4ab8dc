"""Jobs of the action that take too long for `make test`: refused wakes, failing starts, and a runner that is new.

All of them run under the local runner's strict validation of the workflow and of action.yml.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.action.conftest import FILES, serving
from tests.action.runner import Job, Runner, release
from tests.action.test_action import HOSTILE
from tests.helpers import git

pytestmark = pytest.mark.real  # needs large software

STRICT = ("--strict",)
FORGED: Mapping[str, object] = {
    "action": "ralph-loop-trigger",
    "branch": HOSTILE,
    "client_payload": {
        "generation": HOSTILE,
        "not_before": "1999-01-01T00:00:00Z",
        "due": True,
        "force": True,
        "inputs": {"force": "true", "mode": "wake"},
    },
}


def runner_of(folder: Path, environment: Mapping[str, str] | None = None) -> Runner:
    (folder / "runner").mkdir()
    return Runner(folder / "runner", release(folder / "action"), STRICT, environment or {})


def commands(job: Job) -> list[str]:
    """What of ralph was started."""
    return [command for command, _ in job.starts]


def test_a_hostile_dispatch_runs_what_is_due_and_moves_nothing_that_is_not(tmp_path: Path) -> None:
    runner = runner_of(tmp_path)
    runner.seed()
    with serving(tmp_path, FILES) as github:
        token = github.token()
        due = runner.run(token, github.url, "repository_dispatch", payload=FORGED)
        assert (due.code, commands(due), due.outputs["cycle"]) == (0, ["cycle"], "1"), due.log
        refs, seen = git(github.bare, "for-each-ref"), len(github.journal)
        early = runner.run(token, github.url, "repository_dispatch", payload=FORGED)
        by_hand = runner.run(token, github.url, "workflow_dispatch", payload={"inputs": {"force": "false"}})
        for job in (early, by_hand):
            assert (job.code, commands(job), job.checkouts) == (0, [], []), job.log
            assert (job.outputs["cycle"], job.outputs["actions-taken"]) == ("", "0")
        assert git(github.bare, "for-each-ref") == refs
        assert {request.transport for request in github.journal[seen:]} == {"graphql"}
        assert [job.owned for job in (due, early, by_hand)] == [[], [], []]


def test_a_start_that_fails_changes_nothing_and_the_next_runs(tmp_path: Path) -> None:
    runner = runner_of(tmp_path)
    runner.tools.mkdir(parents=True)
    (runner.tools / "ralph-mission").write_text("in the way of every environment\n")
    with serving(tmp_path, FILES) as github:
        token = github.token()
        job = runner.run(token, github.url)
        assert job.code != 0 and "ralph_mission could not be installed" in job.log
        assert (job.leaks, commands(job)) == ([], [])
        assert {request.transport for request in github.journal} == {"graphql", "git"}, "asked, and checked out"
        (runner.tools / "ralph-mission").unlink()
        runner.seed()
        repaired = runner.run(token, github.url)
        assert repaired.code == 0, repaired.log


def test_a_gate_that_fails_ends_the_job(tmp_path: Path) -> None:
    runner = runner_of(tmp_path)
    runner.seed()
    with serving(tmp_path, FILES) as github:
        github.world.private = True
        blind = github.token(permissions={"contents": "none", "issues": "write"})
        job = runner.run(blind, github.url)
        assert (job.code != 0, commands(job), job.leaks) == (True, [], []), job.log


def test_a_new_runner_installs_from_a_registry_once_and_is_warm_the_second_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    runner = runner_of(tmp_path, registry)
    with serving(tmp_path, FILES) as github:
        token = github.token()
        cold = runner.run(token, github.url)
        assert (cold.code, cold.outputs["cycle"]) == (0, "1"), cold.log
        built = sorted(path.name for path in runner.place().parent.glob("*.built"))
        warm = runner.run(token, github.url, inputs={"force": "true"})
        assert (warm.code, warm.outputs["cycle"]) == (0, "2"), warm.log
    assert "installing ralph_mission" in cold.log and "installing ralph_mission" not in warm.log
    assert sorted(path.name for path in runner.place().parent.glob("*.built")) == built and len(built) == 1
    with capsys.disabled():
        print(f"\n[a new runner] preparing took {preparing(cold)}, the second time {preparing(warm)}")


def preparing(job: Job) -> str:
    """How long the installation took, as the local runner tells it."""
    found = re.search(r"Success - Main Install \[([^]]+)\]", job.log)
    assert found, job.log
    return found[1]
