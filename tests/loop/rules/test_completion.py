from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ralph_mission.loop.model.spec import LoopPreset, RunLimits, RunSpec
from ralph_mission.loop.model.state import (
    VERDICT,
    CheckResult,
    Hat,
    HatOutput,
    LoopEvent,
    PathChange,
    Prd,
    RunSnapshot,
    RunState,
    UserStory,
)
from ralph_mission.loop.rules import completion, routing
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
    assert completion.find_dead_end(spec, state, RunSnapshot()) is None
    assert "no file has changed" in completion.remaining(spec, state, RunSnapshot())
    undone = PathChange("tests/t.py", "modified", "it holds a secret")
    state = replace(state, last=HatOutput("", 1, changes=(undone,)))
    for _ in range(2):
        state = completion.state_after_open_tasks(spec, state, "nothing was changed")
    ending = completion.find_dead_end(spec, state, RunSnapshot())
    assert ending and ending.reason == "idle" and "called itself done 2 times" in ending.detail
    assert "tests/t.py (it holds a secret)" in ending.detail and "--pattern plan-build-review" in ending.next_step


def test_a_run_that_is_declared_done_again_and_again_at_the_same_red_check_ends() -> None:
    spec, red = RunSpec("build it", LoopPreset("loop")), CheckResult(False, True, "make test: exit 1\nE")
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC), iteration=1)
    for _ in range(completion.RED_CLAIMS):
        assert completion.find_dead_end(spec, state, RunSnapshot()) is None
        state = completion.state_after_red_checks(spec, state, red)
    ending = completion.find_dead_end(spec, state, RunSnapshot())
    assert ending and ending.reason == "stuck" and "the same red check: make test: exit 1" in ending.detail
    other = completion.state_after_red_checks(spec, state, replace(red, said="lint: exit 2"))
    assert completion.find_dead_end(spec, other, RunSnapshot()) is None


def test_only_a_claim_without_a_change_counts_as_an_empty_one() -> None:
    spec = RunSpec("build it", LoopPreset("loop"), require_change=True, required_events=("audit.done",))
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC), changed=False)
    why = completion.remaining(spec, state, RunSnapshot())
    assert "audit.done" in why and "no file has changed" in why
    assert completion.state_after_open_tasks(spec, state, why).claims == 0
    said = replace(state, said=frozenset({"audit.done"}))
    assert completion.state_after_open_tasks(spec, said, "nothing").claims == 1
    assert completion.state_after_open_tasks(spec, replace(said, changed=True), "a task is open").claims == 0


def test_a_missing_login_ends_the_run_at_once_and_asks_for_no_more_sessions() -> None:
    refused = HatOutput("", 1, failure="auth", reason="Not logged in (exit code 1)")
    state = RunState("r", "b", datetime(2026, 5, 4, tzinfo=UTC), iteration=1, failures=1, last=refused)
    ending = completion.reached_limit(RunLimits(iterations=1), state, 0.0)
    assert ending and (ending.reason, ending.detail) == ("failures", "Not logged in (exit code 1)")
    assert "max-iterations" not in ending.next_step
    worked = replace(state, iteration=2, last=replace(refused, progressed=True))
    assert completion.reached_limit(RunLimits(iterations=9), worked, 0.0) is None


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


def test_a_file_that_differs_from_when_the_run_began_is_enough_and_one_that_was_put_back_is_not() -> None:
    spec = RunSpec("build it", LoopPreset("loop"), require_change=True)
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC), changed=False)
    state = completion.advance_state(spec, state, HatOutput("", 1, mark="c0", changed=True), 1.0)
    assert state.begun == "c0" and completion.remaining(spec, state, RunSnapshot()) == ""
    back = completion.advance_state(spec, state, HatOutput("", 2, mark="c1", changed=False), 2.0)
    assert back.begun == "c0" and completion.remaining(spec, back, RunSnapshot())


def test_of_an_older_file_nobody_knows_with_what_the_run_began() -> None:
    left = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC), iteration=3)
    after = completion.take_up(left, "c3")
    assert (after.begun, after.taken, after.changed) == ("", "c3", True)


def test_events_that_are_required_have_to_be_said_in_the_run() -> None:
    spec = RunSpec("build it", LoopPreset("loop"), required_events=("review.passed", "tests.passed"))
    state = RunState("r", "build it", datetime(2026, 5, 4, tzinfo=UTC))
    state = completion.advance_state(spec, state, HatOutput("", 1, LoopEvent("tests.passed")), 1.0)
    assert completion.remaining(spec, state, RunSnapshot()) == "still to be emitted: review.passed"
    default, _ = routing.single_event(Hat("critic", default_publishes="review.passed"), (), "DONE")
    state = completion.advance_state(spec, state, HatOutput("", 2, default), 2.0)
    assert completion.remaining(spec, state, RunSnapshot()) == "still to be emitted: review.passed"  # nobody said it
    state = completion.advance_state(spec, state, HatOutput("", 2, LoopEvent("review.passed")), 2.0)
    assert completion.remaining(spec, state, RunSnapshot()) == ""


def test_what_changed_for_one_story_does_not_count_for_the_next() -> None:
    stories = tuple(UserStory(name, name, "", (), 1, passes=name == "US-1") for name in ("US-1", "US-2"))
    spec = RunSpec("build it", LoopPreset("prd", stories=True))
    state = RunState("r", "b", datetime(2026, 5, 4, tzinfo=UTC), item="US-1", taken="c0")
    after = completion.focus(spec, state, RunSnapshot(prd=Prd("x", "y", "z", stories)))
    assert (after.item, completion.take_up(after, "c1").taken) == ("US-2", "c1")
