from __future__ import annotations

from datetime import UTC, datetime

from ralph_mission.loop.model.state import HatOutput, RunSnapshot, RunState
from ralph_mission.loop.rules import completion
from tests.loop.making import spec

BEGUN = RunState(
    "run", "Build the thing", datetime(2026, 3, 2, tzinfo=UTC), last=HatOutput("builder", 1, promised=True)
)


def test_a_promise_before_red_checks_is_no_promise_after_them() -> None:
    state = completion.state_after_red_checks(spec(), BEGUN, "1 failed")
    assert state.last is not None and not state.last.promised
    assert completion.looks_done(spec(), BEGUN, RunSnapshot())
    assert not completion.looks_done(spec(), state, RunSnapshot())
