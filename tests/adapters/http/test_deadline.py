"""A call in its own thread, which is given up after its time."""

from __future__ import annotations

import threading

import pytest

from ralph_mission.adapters.http.deadline import call_within


def test_a_call_that_takes_longer_than_it_may_is_given_up() -> None:
    over = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            call_within(0.01, lambda: over.wait(20))
    finally:
        over.set()


def test_what_a_call_gives_or_raises_is_passed_on() -> None:
    assert call_within(300, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_within(300, lambda: 1 // 0)
