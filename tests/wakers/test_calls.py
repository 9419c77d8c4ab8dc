"""A timer's memory of its wakes: one for each due time, again after ten minutes, and never past the cap."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.memory import Header
from ralph_mission.wakers.calls import Calls, dump, load, objection, record_wake
from tests.helpers import NOON

HEADER = Header(generation=5, today="2026-05-04")
ONCE = record_wake(Calls(), HEADER, NOON)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def test_the_first_wake_is_sent():
    assert objection(Calls(), HEADER, NOON, 48) == ""


@pytest.mark.parametrize(("later", "sent"), [(1, False), (9.9, False), (10, True), (300, True)])
def test_one_for_the_same_due_time_is_repeated_only_after_ten_minutes(later, sent):
    assert (objection(ONCE, HEADER, NOON + minutes(later), 48) == "") is sent


def test_another_due_time_is_another_wake():
    assert objection(ONCE, replace(HEADER, generation=6), NOON + minutes(1), 48) == ""


@pytest.mark.parametrize("hours", [-48, 48])
def test_a_clock_that_was_wrong_holds_nothing_up(hours):
    assert objection(ONCE, HEADER, NOON + timedelta(hours=hours), 48) == ""


def test_a_clock_that_was_a_few_minutes_ahead_wakes_nobody_twice():
    assert objection(ONCE, HEADER, NOON - minutes(5), 48) == "woken for generation 5 less than 10 minutes ago"


def test_a_due_time_that_memory_grants_no_wake_has_none():
    header = replace(HEADER, generation=6, dispatches=36, wake=False)
    assert objection(ONCE, replace(header, wake=True), NOON, 48) == ""
    assert objection(ONCE, header, NOON, 48) == "today's wakes are used up, the cap is 48"


def test_a_cycle_that_asked_for_the_next_one_itself_is_given_ten_minutes():
    header = replace(HEADER, generation=6, next_due_at=NOON, last_cycle_at=NOON)
    assert "asked for the next one" in objection(ONCE, header, NOON + minutes(9), 48)
    assert objection(ONCE, header, NOON + minutes(10), 48) == ""


def test_a_cap_of_none_sends_none():
    assert objection(Calls(), HEADER, NOON, 0) != ""


def test_a_new_day_starts_at_nothing():
    full = replace(ONCE, days=(("2026-05-04", 12),))
    assert objection(full, HEADER, NOON + minutes(11), 48) != ""
    assert objection(full, HEADER, NOON + timedelta(days=1), 48) == ""


def test_a_clock_that_jumps_by_days_and_back_does_not_start_the_count_anew():
    full = replace(ONCE, days=(("2026-05-04", 12),))
    elsewhere = record_wake(full, HEADER, NOON + timedelta(days=2))
    assert "used up" in objection(elsewhere, HEADER, NOON + minutes(11), 48)


def test_the_notes_do_not_grow_for_ever():
    calls = Calls()
    for day in range(40):
        calls = record_wake(calls, HEADER, NOON + timedelta(days=day))
    assert [day for day, _ in calls.days] == [f"2026-06-{day:02}" for day in range(12, 4, -1)]


def test_what_is_written_is_read():
    assert load(dump(ONCE)) == ONCE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        pytest.param(b"[" * 200_000, id="nested"),
        b"\xff",
        b'{"generation": "5"}',
        b'{"at": "soon"}',
        b'{"strange": 1}',
        b'{"at": 5}',
        b'{"at": "", "days": []}',
        b'{"generation": 1, "at": "2026-05-04", "days": {"2026-05-04": "9"}}',
    ],
)
def test_nonsense_counts_as_never_called(content):
    assert load(content) == Calls()
