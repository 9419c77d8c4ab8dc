"""Runners on machines of their own, as workflow runs of the same repository."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from ralph_mission.errors import Lost, UserError
from tests.crash.dying import Died
from tests.fakes.github.faults import Crash
from tests.fakes.github.nouns import Request
from tests.integration.hub import Hub

NOW = timedelta(0)


def as_run(hub: Hub, number: int, status: str = "in_progress", conclusion: str | None = None) -> None:
    """From now on a workflow run of that number is the runner."""
    hub.fake.workflow_run(number, status, conclusion)
    hub.actions = hub.actions | {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": str(number),
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_JOB": "cycle",
        "RUNNER_NAME": f"runner-{number}",
    }


def fresh(hub: Hub) -> str:
    """The name of a clone that is not there yet."""
    return f"another-{len(list(hub.folder.iterdir()))}"


def two_wake(hub: Hub) -> None:
    """While one is about to write its intents down, another machine does its whole cycle. Both runs are over then."""
    as_run(hub, 1)
    other = replace(hub, runner=fresh(hub))
    as_run(other, 2)
    waiting = [other]

    def comes_between(request: Request) -> None:
        if request.below != "/git-receive-pack" or not waiting:
            return
        with suppress(Died):
            with suppress(Lost, UserError):  # it ends by itself, and the first one goes on
                waiting.pop().cycle(NOW, force=False)
            return
        raise Crash  # one power cut for both

    undo = hub.fake.before(comes_between)
    try:
        hub.cycle(NOW, force=False)
    finally:
        undo()
        hub.fake.workflow_run(1, "completed", "failure")
        hub.fake.workflow_run(2, "completed", "failure")
        shutil.rmtree(other.folder / other.runner, ignore_errors=True)
        as_run(hub, 3)
