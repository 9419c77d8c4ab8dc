"""The presets' numbers are those of the systems that they stand for."""

from __future__ import annotations

import pytest

from ralph_mission.loop.patterns import PATTERNS
from ralph_mission.loop.presets import ERROR_PAUSE, IDLE_PAUSE, ISSUE_PAUSE, PERSISTENT, PRESETS, find_preset
from ralph_mission.trouble import UserError


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
