"""A person's word on a run is kept once, and is what the threshold is learned from."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import state
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CONVERGED, LoopEvent, ReviewIssue, RunState

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
LEFT = LoopEvent(CONVERGED, issues=(ReviewIssue("a name", severity="minor"),))
RUN = RunState("20260504-120000-hats", "build it", NOON, pending=LEFT, kind="refactor")


def test_the_last_run_is_judged_with_its_kind_and_what_was_left(tmp_path: Path) -> None:
    state.save(tmp_path, RUN)
    state.say(tmp_path, True)
    said = [json.loads(line) for line in state.path(tmp_path).read_text().splitlines()]
    assert said == [{"kind": "refactor", "left": 1, "accepted": True, "run": RUN.run_id}]


def test_a_run_is_judged_once(tmp_path: Path) -> None:
    state.save(tmp_path, RUN)
    state.say(tmp_path, True)
    with pytest.raises(UserError, match="judged already"):
        state.say(tmp_path, False)


def test_only_a_run_that_a_reviewer_ended_is_judged(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run"):
        state.say(tmp_path, True)
    state.save(tmp_path, RunState("run", "build it", NOON))
    with pytest.raises(UserError, match="no reviewer"):
        state.say(tmp_path, True)


def test_a_run_that_was_put_away_is_still_known(tmp_path: Path) -> None:
    state.save(tmp_path, RUN)
    place = tmp_path / state.RUNS / RUN.run_id
    place.mkdir(parents=True)
    (tmp_path / state.STATE).rename(place / "state.json")
    assert state.say(tmp_path, False, RUN.run_id)[1].accepted is False
    with pytest.raises(UserError, match="no run"):
        state.say(tmp_path, True, "../../other")


def test_a_linked_work_tree_tells_the_checkout_it_came_from(tmp_path: Path) -> None:
    assert state.path(tmp_path / ".ralph/worktrees/shop") == tmp_path / state.NAME
