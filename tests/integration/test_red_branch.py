"""A default branch that turns red and green again, from the server's runs to what a person reads."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.mission.model.mission import Urgency
from tests.integration.hub import Hub, open_hub

CI = ".github/workflows/ci.yml"
FILES = {CI: "on: push\n", "src/code.txt": "fine\n"}
LOG = (
    b"2026-05-04T12:00:00.0Z ##[group]Run make test\n2026-05-04T12:00:00.0Z ##[endgroup]\n"
    b"2026-05-04T12:00:01.0Z E   AssertionError: @everyone, the token is ghp_0123456789abcdefghijklmnopqrstuvwxyz\n"
    b"2026-05-04T12:00:02.0Z ##[error]Process completed with exit code 1.\n"
)


def run(hub: Hub, number: int, conclusion: str) -> None:
    """A run for the newest commit."""
    hub.fake.workflow_run(number, "completed", conclusion, "push", hub.fake.clock.present(), path=CI)
    if conclusion == "failure":
        steps = [("make test", "failure")]
        hub.fake.workflow_job(number, "test", "failure", steps, LOG)


@pytest.mark.long  # the observer has its own tests
def test_a_red_branch_is_one_issue_with_its_culprit_and_what_the_log_says_and_makes_the_next_look_soon(
    tmp_path: Path,
) -> None:
    with open_hub(tmp_path, FILES) as hub:
        run(hub, 1, "success")
        bad = hub.person("robin").push("main", {"src/code.txt": b"broken\n"}, message="Break it")
        run(hub, 2, "failure")
        report, _ = hub.cycle()
        (issue,) = hub.issues
        assert issue.title.startswith(f"main is red: ci fails since {bad[:8]} by robin")
        assert bad[:12] in (issue.body or "") and "make test" in (issue.body or "")
        assert "AssertionError" in (issue.body or "")
        assert "@everyone" not in (issue.body or "") and "ghp_" not in (issue.body or "")
        assert report.urgency is Urgency.HIGH
        run(hub, 3, "failure")
        hub.cycle(timedelta(minutes=20))
        assert len(hub.issues) == 1


def test_green_again_closes_the_issue_by_itself(tmp_path: Path) -> None:
    with open_hub(tmp_path, FILES) as hub:
        run(hub, 1, "success")
        hub.person("robin").push("main", {"src/code.txt": b"broken\n"}, message="Break it")
        run(hub, 2, "failure")
        hub.cycle()
        hub.person("robin").push("main", {"src/code.txt": b"fine\n"}, message="Mend it")
        run(hub, 3, "success")
        hub.cycle(timedelta(minutes=20))
        (issue,) = hub.issues
        assert (issue.state, issue.state_reason) == ("closed", "completed")
