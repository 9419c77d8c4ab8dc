from __future__ import annotations

from datetime import UTC, datetime

from ralph_mission.loop import completion, progress
from ralph_mission.loop.model import Board, HatOutput, State
from tests.loop.making import order

BEGUN = State("run", "Build the thing", datetime(2026, 3, 2, tzinfo=UTC), last=HatOutput("builder", 1, promised=True))


def test_a_promise_before_red_checks_is_no_promise_after_them() -> None:
    state = progress.reddened(order(), BEGUN, "1 failed")
    assert state.last is not None and not state.last.promised
    assert completion.claimed(order(), BEGUN, Board())
    assert not completion.claimed(order(), state, Board())
