"""The patterns route as seed 001 says, and none of them has a dead end.

The presets' numbers are those of the systems that they stand for.
"""

from __future__ import annotations

import pytest

from ralph_mission.errors import UserError
from ralph_mission.loop.hats import (
    ERROR_PAUSE,
    HATS,
    IDLE_PAUSE,
    ISSUE_PAUSE,
    PATTERN_ALIASES,
    PATTERNS,
    PERSISTENT,
    PRESETS,
    TESTS,
    complaints,
    find_pattern,
    find_preset,
)
from ralph_mission.loop.model.state import (
    CONVERGED,
    PLANNED,
    RESUME,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    LoopEvent,
    ReviewIssue,
)
from ralph_mission.loop.rules.routing import find_hat, next_event
from ralph_mission.loop.rules.scope import why_outside

EVERY = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)


def called(pattern: str, topic: str) -> str:
    hat = find_hat(PATTERNS[pattern].hats, LoopEvent(topic))
    return hat.name if hat else ""


@pytest.mark.parametrize(
    ("topic", "hat"),
    [(START, "planner"), (PLANNED, "builder"), ("build.complete", "reviewer"),
     (VERDICT, "fixer"), ("fix.complete", "reviewer"), (VERIFICATION_FAILED, "builder"), (RESUME, "planner")],
)  # fmt: skip  # one table
def test_plan_build_review_routes_as_the_protocol_says(topic, hat):
    assert called("plan-build-review", topic) == hat


def test_a_verdict_with_issues_calls_the_fixer_and_without_ends_the_loop():
    issue = ReviewIssue("it breaks")
    assert next_event(LoopEvent(VERDICT, issues=(issue,)), 0).topic == VERDICT
    assert next_event(LoopEvent(VERDICT), 0).topic == CONVERGED


@EVERY
def test_no_pattern_has_a_dead_end_even_when_it_is_persistent(pattern):
    assert complaints(pattern.hats, persistent=True) == ()


@EVERY
def test_every_pattern_is_judged_by_a_reviewer_that_can_change_nothing(pattern):
    (reviewer,) = (hat for hat in pattern.hats if VERDICT in hat.publishes)
    assert reviewer.write_allowed == () and {"Edit", "Write"} <= set(reviewer.tools_denied)
    assert why_outside(reviewer, "src/a.py") and why_outside(reviewer, "README.md")


@EVERY
def test_nobody_judges_what_they_built(pattern):
    for hat in pattern.hats:
        assert not (VERDICT in hat.publishes and {"build.complete", "fix.complete"} & set(hat.publishes))


@EVERY
@pytest.mark.parametrize("topic", [PLANNED, VERIFICATION_FAILED])
def test_work_that_is_left_and_red_checks_find_somebody_who_may_write_code(pattern, topic):
    hat = find_hat(pattern.hats, LoopEvent(topic))
    assert hat is not None and not why_outside(hat, "src/a.py")


@EVERY
def test_every_hat_ends_with_one_kind_of_event_and_denies_what_is_dangerous(pattern):
    for hat in pattern.hats:
        assert len(hat.publishes) == 1 and not hat.default_publishes
        assert {"git push --force", "git reset --hard", "sudo"} <= set(hat.commands_denied)
        assert hat.instructions and hat.description and hat.model == ""


@pytest.mark.parametrize("path", ["tests/test_a.py", "src/app.test.ts", "a/b/test_x.py", "pkg/x_test.go", "docs/a.md"])
def test_a_builder_touches_neither_docs_nor_tests(path):
    assert why_outside(HATS["builder"], path) and why_outside(HATS["refactorer"], path)


def test_where_nobody_else_writes_tests_the_builder_does():
    (builder,) = (hat for hat in PATTERNS["plan-build-review"].hats if hat.name == "builder")
    assert not why_outside(builder, "tests/test_a.py") and why_outside(builder, "docs/a.md")


@pytest.mark.parametrize("hat", ["tester", "debugger"])
def test_who_shows_a_fault_does_not_mend_it(hat):
    assert why_outside(HATS[hat], "src/a.py") and not why_outside(HATS[hat], "tests/test_a.py")
    assert HATS[hat].write_allowed == TESTS


def test_the_seven_hats_and_the_four_patterns_are_there():
    assert set(HATS) == {"planner", "builder", "reviewer", "fixer", "tester", "debugger", "refactorer"}
    assert list(PATTERNS) == ["plan-build-review", "test-first", "refactor", "debug"]


@pytest.mark.parametrize(("name", "pattern"), [*PATTERN_ALIASES.items(), ("Plan_Build_Review", "plan-build-review")])
def test_a_pattern_has_other_names(name, pattern):
    assert find_pattern(name).name == pattern


def test_an_unknown_pattern_names_the_nearest():
    with pytest.raises(UserError) as caught:
        find_pattern("plan-buld-review")
    assert caught.value.next_step == "did you mean plan-build-review?" and caught.value.exit_code == 2


def test_loop_is_seed_000s_table():
    limits, preset = PRESETS["loop"].limits, PRESETS["loop"]
    assert (limits.iterations, limits.runtime, limits.usd) == (100, 14_400, None)
    assert (limits.failures, limits.redispatches) == (3, 3)
    assert (preset.promise, preset.stories, preset.hats) == ("LOOP_COMPLETE", False, ())


def test_fresh_is_seed_002s_table():
    limits, preset = PRESETS["fresh"].limits, PRESETS["fresh"]
    assert (limits.iterations, limits.turns, limits.session) == (20, 100, 2_700)
    assert (limits.retries, limits.retry_pause, limits.stuck) == (3, 5, 3)
    assert limits.runtime >= limits.iterations * limits.session  # no limit of ours cuts theirs
    assert preset.promise == "TASK_COMPLETE"


def test_prd_is_seed_004s_script():
    limits, preset = PRESETS["prd"].limits, PRESETS["prd"]
    assert (limits.iterations, limits.pause, preset.promise) == (10, 2, "COMPLETE")
    assert preset.stories


def test_issue_is_seed_000s_proposals():
    assert PRESETS["issue"].limits.iterations == 50
    assert (PERSISTENT.iterations, PERSISTENT.runtime, PERSISTENT.usd) == (10_000, 86_400, 50)
    assert (IDLE_PAUSE, ISSUE_PAUSE, ERROR_PAUSE) == (300, 30, 60)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_is_a_preset(name):
    assert find_preset(name).hats == PATTERNS[name].hats and find_preset(name).limits.iterations == 100


def test_names_are_forgiving_and_unknown_ones_name_the_nearest():
    assert find_preset("TDD").name == "test-first"
    with pytest.raises(UserError, match="no preset 'fesh'") as caught:
        find_preset("fesh")
    assert caught.value.next_step == "did you mean fresh?"
