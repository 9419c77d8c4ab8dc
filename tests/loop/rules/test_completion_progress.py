from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ralph_mission.loop.model.state import CheckResult, HatOutput, Prd, RunSnapshot, RunState, UserStory
from ralph_mission.loop.rules import completion
from tests.loop.making import spec

BEGUN = RunState(
    "run", "Build the thing", datetime(2026, 3, 2, tzinfo=UTC), last=HatOutput("builder", 1, promised=True)
)


def test_a_promise_before_red_checks_is_no_promise_after_them() -> None:
    state = completion.state_after_red_checks(spec(), BEGUN, CheckResult(False, True, "1 failed"))
    assert state.last is not None and not state.last.promised
    assert completion.looks_done(spec(), BEGUN, RunSnapshot())
    assert not completion.looks_done(spec(), state, RunSnapshot())


CHAIN = Prd(
    stories=(
        UserStory("API", "api", priority=1, needs=("DB",)),
        UserStory("DB", "schema", priority=2, needs=("unheard-of",)),
        UserStory("DOC", "docs", priority=3),
    )
)


def test_a_story_waits_for_those_it_needs_and_a_skipped_one_holds_up_only_them() -> None:
    stories, begun = spec("prd"), replace(BEGUN, last=None)
    snapshot = RunSnapshot(prd=CHAIN)
    assert completion.item_of(stories, begun, snapshot) == "DB"
    skipped = replace(begun, skipped=frozenset({"DB"}))
    assert completion.item_of(stories, skipped, snapshot) == "DOC"
    ending = completion.find_dead_end(stories, replace(begun, skipped=frozenset({"DB", "DOC"})), snapshot)
    assert ending is not None and ending.detail.endswith("DB schema, DOC docs; 1 wait for them")


def test_stories_that_only_wait_for_each_other_are_begun_all_the_same() -> None:
    circle = Prd(stories=(UserStory("A", "a", needs=("B",)), UserStory("B", "b", needs=("A",))))
    assert completion.item_of(spec("prd"), replace(BEGUN, last=None), RunSnapshot(prd=circle)) == "A"
