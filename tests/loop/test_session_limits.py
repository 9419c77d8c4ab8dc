"""What a session may spend is what the run has left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ralph_mission.loop import hats
from ralph_mission.loop.model.spec import RunSpec
from ralph_mission.loop.model.state import RunSnapshot, RunState, SessionUsage
from ralph_mission.loop.prompt import session as prompt


@pytest.mark.parametrize(
    ("limit", "spent", "left"), [(None, 3.0, None), (5.0, None, 5.0), (5.0, 3.0, 2.0), (5.0, 7.0, 0.0)]
)
def test_the_money_of_a_session_is_what_is_left(limit, spent, left):
    preset = hats.find_preset("loop")
    spec = RunSpec("do it", replace(preset, limits=replace(preset.limits, usd=limit)))
    state = RunState("run", "do it", datetime(2026, 1, 1, tzinfo=UTC), usage=SessionUsage(1, cost_usd=spent))
    assert prompt.session_prompt(spec, state, RunSnapshot(), None, "/run").usd == left


@pytest.mark.parametrize(
    ("took", "seconds", "told"), [(0.0, 2700.0, "45 minutes"), (14_290.0, 110.0, "110 seconds"), (14_500.0, 1.0, "1 s")]
)
def test_the_time_of_a_session_is_what_is_left_and_its_prompt_says_so(took, seconds, told):
    spec = RunSpec("do it", hats.find_preset("loop"))
    spec = replace(spec, preset=replace(spec.preset, limits=replace(spec.limits, runtime=14_400.0)))
    state = RunState("run", "do it", datetime(2026, 1, 1, tzinfo=UTC), elapsed=took)
    session = prompt.session_prompt(spec, state, RunSnapshot(), None, "/run")
    assert session.seconds == seconds and f"You have {told}" in session.prompt


def test_turns_are_added_up():
    assert (SessionUsage(1, turns=2) + SessionUsage(1, turns=3)).turns == 5
