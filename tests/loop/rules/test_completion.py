from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ralph_mission.loop.model.state import HatOutput, RunSnapshot, RunState
from ralph_mission.loop.rules import completion
from tests.loop.making import pbr, stories

BEGUN = RunState(
    "run", "Build the thing", datetime(2026, 3, 2, tzinfo=UTC), last=HatOutput("builder", 1, promised=True)
)


def test_stories_that_all_pass_wait_for_their_reviewer() -> None:
    reviewed, snapshot = pbr(), RunSnapshot(prd=stories(True, True))
    reviewed = replace(reviewed, preset=replace(reviewed.preset, stories=True))
    assert not completion.looks_done(reviewed, replace(BEGUN, iteration=1), snapshot)
    assert completion.looks_done(reviewed, replace(BEGUN, iteration=0), snapshot)
