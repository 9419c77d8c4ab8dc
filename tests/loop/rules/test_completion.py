from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ralph_mission.loop.model.spec import LoopPreset, RunSpec
from ralph_mission.loop.model.state import VERDICT, Hat, HatOutput, LoopEvent, Prd, RunSnapshot, RunState, UserStory
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


# --- declared done, and nothing changed ---


def test_a_promise_without_a_changed_file_is_refused_once_and_ends_the_run_the_second_time() -> None:
    spec = RunSpec("build it", LoopPreset("loop"), require_change=True)
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC), changed=False)
    assert "no file was changed" in completion.remaining(spec, state, RunSnapshot())
    assert completion.find_dead_end(spec, state, RunSnapshot()) is None
    for _ in range(2):
        state = completion.state_after_open_tasks(spec, state, "no file was changed")
    ending = completion.find_dead_end(spec, state, RunSnapshot())
    assert ending and ending.reason == "idle" and "declared done 2 times" in ending.detail


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec("look", LoopPreset("loop")),
        RunSpec("look", LoopPreset("loop"), require_change=True, persistent=True),
        RunSpec("look", LoopPreset("hats", hats=(Hat("r", publishes=(VERDICT,)),)), require_change=True),
    ],
    ids=["not required", "persistent", "reviewed"],
)
def test_who_reviews_or_never_ends_needs_no_changed_file(spec: RunSpec) -> None:
    state = RunState("r", "look", datetime(2026, 5, 4, tzinfo=UTC), changed=False)
    assert completion.remaining(spec, state, RunSnapshot()) == ""


def test_a_changed_file_of_any_session_of_the_run_is_enough() -> None:
    spec = RunSpec("build it", LoopPreset("loop"), require_change=True)
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC), changed=False)
    state = completion.advance_state(spec, state, HatOutput("", 1, touched=("src/a.py",)), 1.0)
    state = completion.advance_state(spec, state, HatOutput("", 2, promised=True), 2.0)
    assert completion.remaining(spec, state, RunSnapshot()) == ""


def test_events_that_are_required_have_to_be_said_in_the_run() -> None:
    spec = RunSpec("build it", LoopPreset("loop"), required_events=("review.passed", "tests.passed"))
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC))
    state = completion.advance_state(spec, state, HatOutput("", 1, LoopEvent("tests.passed")), 1.0)
    assert completion.remaining(spec, state, RunSnapshot()) == "this has to be said first: review.passed"
    state = completion.advance_state(spec, state, HatOutput("", 2, LoopEvent("review.passed")), 2.0)
    assert completion.remaining(spec, state, RunSnapshot()) == ""


def test_what_changed_for_one_story_does_not_count_for_the_next() -> None:
    stories = tuple(UserStory(name, name, "", (), 1, passes=name == "US-1") for name in ("US-1", "US-2"))
    spec = RunSpec("build it", LoopPreset("prd", stories=True))
    state = RunState("r", "b", datetime(2026, 5, 4, tzinfo=UTC), item="US-1", touched=frozenset({"src/a.py"}))
    after = completion.focus(spec, state, RunSnapshot(prd=Prd("x", "y", "z", stories)))
    assert (after.item, after.touched) == ("US-2", frozenset())
