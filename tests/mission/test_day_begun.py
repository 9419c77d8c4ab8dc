"""Money that is booked over midnight begins the day as a cycle would: with one count of wakes for all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.memory import Header
from tests.helpers import NOON

TODAY, TOMORROW = "2026-05-04", "2026-05-05"
MIDNIGHT = NOON + timedelta(hours=12)
HEADERS = [
    Header(today=TODAY, spend_usd=3.0, dispatches=count, wake=wake) for count in (0, 1, 5, 36) for wake in (False, True)
]


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 48])
@pytest.mark.parametrize("before", [Header(), *HEADERS])
def test_booking_money_after_midnight_changes_nothing_of_who_may_wake(before, limit):
    """A header that the limit allows: without wakes in a day, none was ever granted."""
    if limit == 0:
        before = replace(before, dispatches=0, wake=False)
    elif before.today:
        before = replace(before, dispatches=max(1, min(before.dispatches, limit)))
    booked = schedule.book_spending(before, MIDNIGHT, 1.5)
    assert (booked.today, booked.spend_usd) == (TOMORROW, 1.5)
    assert schedule.may_wake(booked, TOMORROW) == schedule.may_wake(before, TOMORROW)
    assert schedule.count_granted_wakes(booked, TOMORROW, limit) == schedule.count_granted_wakes(
        before, TOMORROW, limit
    )


def test_a_loop_that_used_up_its_day_is_woken_in_the_next_one_though_work_was_booked_first():
    spent = Header(today=TODAY, dispatches=36, wake=False)
    assert not schedule.may_wake(spent, TODAY)
    assert schedule.may_wake(schedule.book_spending(spent, MIDNIGHT, 5.0), TOMORROW)


@pytest.mark.parametrize("before", HEADERS)
def test_booking_within_the_day_leaves_its_wakes_alone(before):
    booked = schedule.book_spending(before, NOON, 1.0)
    assert booked == replace(before, spend_usd=4.0)
    assert schedule.book_spending(booked, NOON, -9.0).spend_usd == 0.0


def test_what_is_given_back_on_the_next_day_is_not_taken_from_it():
    assert schedule.book_spending(HEADERS[0], MIDNIGHT, -2.0).spend_usd == 0.0
