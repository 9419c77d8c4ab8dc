"""An approved pull request and the workflow as `ralph init` writes it: merged once its checks are green, not before."""

from __future__ import annotations

import pytest

from ralph_mission.cli.setup.files import render_workflow
from tests.action.runner import INSTALLED, REPOSITORY, Runner
from tests.fakes.github.server import FakeGitHub

pytestmark = pytest.mark.long  # takes a job of the local runner for each state of a check

CI = ".github/workflows/ci.yml"


def test_an_approval_wakes_the_workflow_which_merges_on_green_alone_and_names_what_is_not(
    runner: Runner, github: FakeGitHub
) -> None:
    token, workflow = github.token(), render_workflow("cycle", INSTALLED, ("self-hosted",))
    assert runner.run(token, github.url, "schedule", workflow=workflow).code == 0
    (pull,) = (thread for thread in github.threads.values() if thread.pull)
    assert pull.pull
    sha, mara = pull.pull.head_sha, github.person("mara")
    mara.review(pull.number, "approved")
    (review,) = github.world.reviews.values()
    spoken = {
        "action": "submitted",
        "repository": {"default_branch": "main"},
        "review": {"author_association": "OWNER", "user": {"id": review.author.id}},
        "pull_request": {
            "number": pull.number,
            "user": {"id": pull.author.id},
            "head": {"ref": pull.pull.head, "repo": {"full_name": REPOSITORY}},
        },
    }

    def wake() -> str:
        """What the dashboard names after a review woke the workflow."""
        job = runner.run(token, github.url, "pull_request_review", payload=spoken, workflow=workflow)
        assert job.code == 0, job.log
        return next(thread.body or "" for thread in github.threads.values() if thread.title == "Ralph")

    for result, named in (
        ("failure", "tests ended with failure"),
        (None, "tests has not finished"),
        ("cancelled", "tests was cancelled"),
    ):
        github.check(sha, "tests", result)
        assert named in wake()
    github.check(sha, "tests", "success")
    github.workflow_run(
        70, "completed", "action_required", "pull_request", path=CI, head_sha=sha, head_branch=pull.pull.head
    )
    assert "Approve workflows to run" in wake()
    github.workflow_run(70, "completed", "success", "pull_request", path=CI, head_sha=sha, head_branch=pull.pull.head)
    github.ruleset("main", required_checks=("lint",))
    assert "the required check lint has not run" in wake()
    assert pull.pull.merged_at is None
    github.check(sha, "lint", "success")
    wake()
    assert pull.pull.merged_at is not None
