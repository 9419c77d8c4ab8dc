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
from tests.integration.hub import Hub, open_hub

CONTROL = "acme/control"


def job(hub: Hub, run: int) -> None:
    """What the matrix job of a run gives to its cycle."""
    hub.actions = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": str(run),
        "GITHUB_JOB": "cycle",
        "RUNNER_NAME": f"runner-{run}",
        "RALPH_CONTROL_REPOSITORY": CONTROL,
        "RALPH_CONTROL_TOKEN": hub.actions.get("RALPH_CONTROL_TOKEN")
        or hub.fake.token(permissions={"actions": "read"}, repository=CONTROL),
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
    with open_hub(folder) as hub:
        hub.fake.workflow_run(1, "in_progress", repository=CONTROL)
        job(hub, 1)
        with killed_at(moment, applied):
            hub.cycle()
        job(hub, 2)
        hub.fake.workflow_run(2, "in_progress", repository=CONTROL)
        told = [hub.cycle()[0].outcome]
        hub.fake.workflow_run(1, "completed", "failure", repository=CONTROL)
        told.append(hub.cycle()[0].outcome)
        return len(hub.pulls), told


def test_a_job_that_died_is_taken_over_when_its_run_in_the_control_repository_is_over(tmp_path: Path) -> None:
    assert live_and_die(tmp_path, "/pulls", applied=True) == (1, ["lost", "done"])


def refs(hub: Hub) -> str:
    return git(hub.fake.bare, "for-each-ref")


@pytest.mark.parametrize("other", [CONTROL, "harbour/pier"])
def test_the_token_of_another_repository_opens_nothing_here(tmp_path: Path, other: str) -> None:
    with open_hub(tmp_path) as hub:
        before = refs(hub)
        job(hub, 1)
        hub.token = hub.fake.token(repository=other)  # which may write there
        with pytest.raises(UserError, match="does not let this token read"):
            hub.cycle()
        assert hub.threads == [] and refs(hub) == before


def test_what_a_cycle_writes_with_the_token_of_another_repository_is_refused(tmp_path: Path) -> None:
    with open_hub(tmp_path) as hub:
        before = refs(hub)
        sent, push = GitHubRequester.request, Remote.push

        def exchange() -> None:  # once everything is read, and before the first write
            hub.fake.world.tokens[hub.token].repository = "harbour/pier"

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
            hub.cycle()
        assert hub.fake.world.tokens[hub.token].repository  # it came to that
        assert hub.threads == [] and refs(hub) == before


def test_a_repository_is_asked_once_by_a_pull_request_of_the_forge(tmp_path: Path) -> None:
    from ralph_mission.cli.setup.onboarding import propose_settings

    with open_hub(tmp_path) as hub:
        with (
            mock.patch.dict(os.environ, hub.environ | {"RALPH_PAUSED": "1"}),
            pytest.raises(UserError, match="PAUSED"),
        ):
            propose_settings(hub.house(), "")
        for _ in range(2):
            with mock.patch.dict(os.environ, hub.environ):
                report, _ = propose_settings(hub.house(), "")
            assert report.staged
        (asked,) = hub.pulls
        assert (asked.title, asked.pull.head) == ("Configure Ralph", "ralph/configure")
        assert "observers:" in git(hub.fake.bare, "show", "ralph/configure:ralph.yml")
        assert hub.issues == []
        assert git(hub.fake.bare, "branch", "--list", "ralph-memory") == ""
        hub.person().close_pull(asked.number)
        with mock.patch.dict(os.environ, hub.environ):
            propose_settings(hub.house(), "")
        assert len(hub.pulls) == 1
