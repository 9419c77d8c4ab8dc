"""A cycle that a fleet's control repository starts in another repository, with a token for that one alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.forges.github.limits import GitHubRequester
from ralph_mission.adapters.git.remote import Denied, Remote
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


def refs(harbour: Hub) -> str:
    return git(harbour.fake.bare, "for-each-ref")


@pytest.mark.parametrize("other", [CONTROL, "harbour/pier"])
def test_the_token_of_another_repository_opens_nothing_here(tmp_path: Path, other: str) -> None:
    with hub(tmp_path) as harbour:
        before = refs(harbour)
        job(harbour, 1)
        harbour.token = harbour.fake.token(repository=other)  # which may write there
        with pytest.raises(UserError, match="does not let this token read"):
            harbour.cycle()
        assert harbour.threads == [] and refs(harbour) == before


def test_what_a_cycle_writes_with_the_token_of_another_repository_is_refused(tmp_path: Path) -> None:
    with hub(tmp_path) as harbour:
        before = refs(harbour)
        sent, push = GitHubRequester.request, Remote.push

        def exchange() -> None:  # once everything is read, and before the first write
            harbour.fake.world.tokens[harbour.token].repository = "harbour/pier"

        def request(self, method, *rest):
            if method != "GET":
                exchange()
            return sent(self, method, *rest)

        def pushed(self, *rest):
            exchange()
            return push(self, *rest)

        with (
            mock.patch.object(GitHubRequester, "request", request),
            mock.patch.object(Remote, "push", pushed),
            pytest.raises((UserError, Denied)),
        ):
            harbour.cycle()
        assert harbour.fake.world.tokens[harbour.token].repository  # it came to that
        assert harbour.threads == [] and refs(harbour) == before


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
