"""A token that may not write issues: nothing gets through, cycle after cycle, and somebody hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import Result, cli_here
from tests.integration.hub import Hub, hub, unpaced

WEAK = {"contents": "write", "issues": "read", "pull_requests": "write", "actions": "read"}


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Hub]:
    with hub(tmp_path) as made:
        yield made


def test_a_cycle_in_which_everything_was_refused_has_failed_and_says_what_to_change(harbour):
    strong, harbour.token = harbour.token, harbour.fake.token(permissions=WEAK)
    for _ in range(2):
        report, telling = harbour.cycle()
        assert report.outcome == "failed"
        assert "issues: write" in telling.refusal
        assert any(telling.refusal in line for line in telling.remarks)
    harbour.token = strong
    report, telling = harbour.cycle()
    assert (report.outcome, telling.refusal) == ("done", "")
    assert harbour.pulls


def test_one_refusal_among_deeds_that_got_through_is_no_failure_of_the_cycle(harbour):
    harbour.fake.settings.actions_can_create_pulls = False
    report, telling = harbour.cycle()
    assert "failed" in {line.status for line in report.effects}
    assert (report.outcome, telling.refusal) == ("done", "")


def test_a_cycle_with_nothing_to_do_has_not_failed(tmp_path):
    with hub(tmp_path, {"a.txt": "fine\n"}) as harbour:
        harbour.token = harbour.fake.token(permissions=WEAK)
        harbour.cycle()
        assert harbour.cycle()[0].outcome == "done"


def run(harbour: Hub, token: str) -> Result:
    """The command of the action."""
    with unpaced():
        return cli_here(
            "cycle", "--force", "--forge", "github", repo=harbour.clone, env={**harbour.environ, "GITHUB_TOKEN": token}
        )


def test_the_command_fails_when_everything_was_refused(harbour):
    assert run(harbour, harbour.fake.token(permissions=WEAK)).code == 1
