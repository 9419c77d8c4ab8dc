"""What one guard of the loop alone holds back: nothing else would notice these."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.loop import completion, progress, routing
from ralph_mission.loop.commands import denied
from ralph_mission.loop.items import Issue
from ralph_mission.loop.model import VERDICT, Board, Event, HatOutput, State
from ralph_mission.stores.loop import files
from ralph_mission.trouble import Trouble
from tests.loop.making import order, pbr, stories

BEGUN = State("run", "Build the thing", datetime(2026, 3, 2, tzinfo=UTC), last=HatOutput("builder", 1, promised=True))


def test_another_word_in_capitals_is_not_the_promise() -> None:
    assert not routing.promised("NOT_COMPLETE", "LOOP_COMPLETE")


def test_one_critical_issue_keeps_the_loop_open_whatever_the_threshold() -> None:
    critical = Issue("it loses data", "a.py", 1, "bug", "critical")
    assert not routing.converged(Event(VERDICT, "", (critical,)), 3)
    assert routing.converged(Event(VERDICT, "", (replace(critical, severity="minor"),)), 3)


def test_a_promise_before_red_checks_is_no_promise_after_them() -> None:
    state = progress.reddened(order(), BEGUN, "1 failed")
    assert state.last is not None and not state.last.promised
    assert completion.claimed(order(), BEGUN, Board())
    assert not completion.claimed(order(), state, Board())


def test_stories_that_all_pass_wait_for_their_reviewer() -> None:
    reviewed, board = pbr(), Board(prd=stories(True, True))
    reviewed = replace(reviewed, preset=replace(reviewed.preset, stories=True))
    assert not completion.claimed(reviewed, replace(BEGUN, iteration=1), board)
    assert completion.claimed(reviewed, replace(BEGUN, iteration=0), board)


@pytest.mark.attack(57)
def test_many_wrappers_in_a_row_cost_little_and_are_denied_where_they_name_a_program() -> None:
    """Each may run any of the words behind it, so there are more ways through them than anybody could follow."""
    wrapped = ["env"] * 100
    assert denied([*wrapped, "true"], ["git push --force"]) == ""
    assert denied([*wrapped, "git", "push", "--force"], ["git push --force"])


def test_what_is_too_deep_to_be_read_is_denied_where_it_names_a_program() -> None:
    assert denied([*["env"] * 12, "echo", "git"], ["git push --force"])
    assert denied(["env", "echo", "git"], ["git push --force"]) == ""


@pytest.mark.attack(57)
def test_a_lock_that_somebody_holds_is_trouble(tmp_path: Path) -> None:
    with files.locked(tmp_path / "a"), pytest.raises(Trouble, match="another process"), files.locked(tmp_path / "a", 0):
        pass
