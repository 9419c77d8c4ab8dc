"""A cycle that a fleet's control repository starts in another repository, with a token for that one alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.forges.github.limits import GitHubRequester
from ralph_mission.errors import UserError
from tests.helpers import git
from tests.integration.dying import Killed
from tests.integration.hub import Hub, hub

CONTROL = "acme/control"


def job(harbour: Hub, run: int) -> None:
    """What the matrix job of a run gives to its cycle."""
    harbour.actions = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": str(run),
        "GITHUB_JOB": "cycle",
        "RUNNER_NAME": f"runner-{run}",
        "RALPH_CONTROL_REPOSITORY": CONTROL,
        "RALPH_CONTROL_TOKEN": harbour.actions.get("RALPH_CONTROL_TOKEN")
        or harbour.fake.token(permissions={"actions": "read"}, repository=CONTROL),
        "RALPH_FLEET": '{"usd_per_day":1,"pulls":true,"spoke":false,"priors":{}}',
    }


@contextmanager
def killed_at(moment: int | str, applied: bool) -> Iterator[list[str]]:
    """The process ends before or after a request to the API: its number, or how it ends. Gives those that it sent."""
    sent: list[str] = []
    original = GitHubRequester.request

    def request(self, method, path, body, headers):
        sent.append(f"{method} {path}")
        now = len(sent) == moment if isinstance(moment, int) else sent[-1].endswith(moment)
        if now and not applied:
            raise Killed
        answer = original(self, method, path, body, headers)
        if now:
            raise Killed
        return answer

    with mock.patch.object(GitHubRequester, "request", request), suppress(Killed):
        yield sent


def live_and_die(folder: Path, moment: int | str, applied: bool) -> tuple[int, list[str]]:
    """A cycle that dies, one while its run still goes on, one after it: the pulls made, how the last two ended."""
    with hub(folder) as harbour:
        harbour.fake.workflow_run(1, "in_progress", repository=CONTROL)
        job(harbour, 1)
        with killed_at(moment, applied):
            harbour.cycle()
        job(harbour, 2)
        harbour.fake.workflow_run(2, "in_progress", repository=CONTROL)
        told = [harbour.cycle()[0].outcome]
        harbour.fake.workflow_run(1, "completed", "failure", repository=CONTROL)
        told.append(harbour.cycle()[0].outcome)
        return len(harbour.pulls), told


def test_a_job_that_died_is_taken_over_when_its_run_in_the_control_repository_is_over(tmp_path: Path) -> None:
    assert live_and_die(tmp_path, "/pulls", applied=True) == (1, ["lost", "done"])


def test_the_control_repositorys_token_opens_nothing_here(tmp_path: Path) -> None:
    with hub(tmp_path) as harbour:
        job(harbour, 1)
        harbour.token = harbour.actions["RALPH_CONTROL_TOKEN"]
        with pytest.raises(UserError, match="does not let this token read"):
            harbour.cycle()
        assert harbour.threads == []


@pytest.mark.crash  # three cycles for each of 78 deaths
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("number", range(1, 40))
def test_a_job_killed_at_any_request_does_nothing_twice_and_is_taken_over(tmp_path, number, applied) -> None:
    pulls, told = live_and_die(tmp_path, number, applied)
    assert pulls == 1 and told[-1] == "done"


def test_a_repository_is_asked_once_by_a_pull_request_of_the_forge(tmp_path: Path) -> None:
    from ralph_mission.cli.setup.onboarding import propose_settings

    with hub(tmp_path) as harbour:
        with (
            mock.patch.dict(os.environ, harbour.environ | {"RALPH_PAUSED": "1"}),
            pytest.raises(UserError, match="PAUSED"),
        ):
            propose_settings(harbour.house(), "")
        for _ in range(2):
            with mock.patch.dict(os.environ, harbour.environ):
                report, _ = propose_settings(harbour.house(), "")
            assert report.staged
        (asked,) = harbour.pulls
        assert (asked.title, asked.pull.head) == ("Configure Ralph", "ralph/configure")
        assert "observers:" in git(harbour.fake.bare, "show", "ralph/configure:ralph.yml")
        assert harbour.issues == []
        assert git(harbour.fake.bare, "branch", "--list", "ralph-memory") == ""
        harbour.person().close_pull(asked.number)
        with mock.patch.dict(os.environ, harbour.environ):
            propose_settings(harbour.house(), "")
        assert len(harbour.pulls) == 1
