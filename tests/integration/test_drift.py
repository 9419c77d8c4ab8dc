"""Twelve hours of wakes that come early, late, twice or never, by clocks that are wrong: the gate holds."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from bench.drift import CAP, PAUSES, SCENARIOS, Arrival, Day, Scenario, day, drifts, silence
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.ledger import Rhythm

SEEDS = (11, 12)
BY_TITLE = {scenario.title: scenario for scenario in SCENARIOS}


@pytest.fixture(  # all of them take ten seconds or more
    scope="module",
    params=[pytest.param(each, marks=pytest.mark.long, id=each.title.replace(" ", "-")) for each in SCENARIOS],
)
def days(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Day]:
    return [day(request.param, seed, tmp_path_factory.mktemp("drift")) for seed in SEEDS]


def done(one: Day) -> list[Arrival]:
    return [arrival for arrival in one.arrivals if arrival.outcome == "done"]


def test_a_wake_starts_a_cycle_when_one_is_due_and_not_before(days):
    for arrival in (arrival for one in days for arrival in one.arrivals):
        due = schedule.is_due(arrival.due_at, arrival.clock, Rhythm().longest)
        assert (arrival.outcome != "turned away") is due, arrival


def test_no_due_time_is_served_twice(days):
    for one in days:
        generations = [arrival.generation for arrival in done(one)]
        assert len(generations) == len(set(generations))
        assert sorted(generations) == list(range(one.header().generation))


def test_of_two_runners_one_wins_and_the_other_leaves_quietly(days):
    for one in days:
        others = [arrival for arrival in one.arrivals if arrival.outcome not in ("done", "turned away")]
        assert {arrival.outcome for arrival in others} <= {"not_due" if one.scenario.rivals == "behind it" else "lost"}
        assert len(others) == (len(done(one)) if one.scenario.rivals else 0)


def test_there_are_cycles_and_no_more_than_the_shortest_pause_allows(days):
    for one in days:
        assert 2 <= len(done(one)) <= len(one.arrivals)
        if one.scenario.sound:
            assert len(done(one)) <= 12 * 3600 / min(PAUSES)
            clocks = sorted(arrival.clock for arrival in done(one))  # right ones, and exact: `at` is rounded
            assert all(later - earlier >= timedelta(seconds=min(PAUSES)) for earlier, later in pairwise(clocks))


def test_wakes_are_capped(days):
    assert max(one.sent for one in days) <= CAP


@pytest.mark.parametrize(
    "title",
    [
        "all ways at once, and forged dispatches",
        pytest.param("timer, a third of the dispatches lost", marks=pytest.mark.long),
    ],
)
def test_a_used_up_cap_stops_our_own_wakes_and_every_due_time_is_served_all_the_same(title, tmp_path):
    """An hour's pause after each cycle: what a day of chance pauses has due differs from seed to seed."""
    one = day(replace(BY_TITLE[title], cap=5, pauses=(3600,)), 11, tmp_path)
    assert 3 <= one.sent <= 5
    assert len(done(one)) >= 10
    assert minutes_late([one]) <= 15 + 10  # as the heartbeat alone promises


def minutes_late(days: list[Day]) -> float:
    return max(seconds / 60 for one in days for seconds in drifts(one))


def promised(scenario: Scenario) -> float:
    """Minutes from due to started, at worst, with these seeds; nothing is promised by wrong clocks or a late cron."""
    if not scenario.sound or scenario.late > 600:
        return math.inf
    if scenario.ways == {"timer"}:
        return 10 * 5 + 3  # five wakes in a row got lost
    if scenario.lost or scenario.ways == {"heartbeat"}:
        return 15 + 10  # the next beat, and how late that comes
    return 3


def test_lateness_stays_within_what_each_way_promises(days):
    assert minutes_late(days) <= promised(days[0].scenario)


def test_nothing_silences_the_loop_for_longer_than_the_longest_pause(days):
    """Not even a clock that was two days ahead: a promise that no pause explains is not waited for."""
    if days[0].scenario.late < 600:
        assert max(silence(one) for one in days) / 3600 < 6 + 1


@pytest.mark.long  # five seconds
def test_the_same_seed_is_the_same_day(tmp_path: Path):
    one, other = (day(SCENARIOS[0], 5, tmp_path / name) for name in ("a", "b"))
    assert one.arrivals == other.arrivals
