"""What a day allows, by clocks that differ: no clock takes back a day that memory has reached."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Limits
from tests.helpers import NOON

CLOCKS = [NOON + timedelta(hours=hours) for hours in (48, 0, -48, 48, 3, 48, 0)]


def test_money_of_a_day_is_spent_once_by_runners_whose_clocks_differ():
    header, spent = Header(), 0.0
    for now in CLOCKS * 3:
        usd = schedule.allowance(header, now, Limits(), per_issue=4.0)
        header, spent = schedule.book_spending(header, now, usd), spent + usd
    assert spent == Limits().usd_per_day


def test_wakes_of_a_day_are_granted_once_to_runners_whose_clocks_differ():
    header, sent = Header(today="2026-05-04", dispatches=1), 1
    for now in CLOCKS * 9:
        today = schedule.day_of(header, now)
        count, granted = schedule.count_granted_wakes(header, today, 8)
        header, sent = Header(today=today, dispatches=count, wake=granted), sent + granted
    assert sent <= 2 * 8, "of the day it was, and of the one that the fastest clock has reached"


@pytest.mark.parametrize(
    ("days", "kept"), [(-400, "2026-05-04"), (-1, "2026-05-04"), (0, "2026-05-04"), (2, "2026-05-06")]
)
def test_a_day_that_no_clock_can_have_reached_holds_up_nothing(days, kept):
    reached = (NOON + timedelta(days=days)).date().isoformat()
    assert schedule.day_of(Header(today=reached), NOON) == kept
    assert schedule.day_of(Header(today="2031-01-01"), NOON) == "2026-05-04"
