"""The forge observer: how the project fares, told on unusual days only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ralph_mission.adapters.observers.forge import turns
from ralph_mission.adapters.observers.forge.turns import ForgeCursor
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.forge import Actor, Pull, Pulse
from ralph_mission.mission.model.mission import Severity, Signal, Tier
from ralph_mission.mission.model.proposal import Route, lookup
from tests.adapters.observers.forge_world import World
from tests.helpers import NOON


def merged(number: int, author: Actor) -> Pull:
    return Pull(number, f"Add thing {number}", "", "merged", author, "t", "a" * 40, "main", NOON, NOON, "")


JOE, BOT = Actor(8, "joe"), Actor(9, "robot", is_bot=True)


def fares(world: World, **now: Any) -> tuple[Signal, ...]:
    """What is told after a day in which this came to pass, the project having had 240 stars and 200 open issues."""
    world.forge.told = Pulse(stars=240)
    first = world.look()
    world.later(1)
    world.forge.told = Pulse(**{"stars": 240, **now})
    return tuple(signal for signal in world.look(first.cursor).signals if signal.kind == "community")


@pytest.mark.parametrize(
    ("now", "titles"),
    [
        ({"stars": 249}, []),
        ({"stars": 250}, ["The project has 250 stars"]),
        ({"stars": 100}, []),
        ({"stars": None}, []),
        ({"stars": 1_100}, ["The project has 1,000 stars", "860 new stars since 2026-05-04, 1,100 in all"]),
        ({"opened": 9}, []),
        ({"opened": 12, "closed": 4}, []),
        ({"opened": 14, "closed": 2}, ["Issues pile up: 14 opened and 2 closed since 2026-05-04"]),
        ({"merged": (merged(1, JOE), merged(2, JOE))}, []),
        ({"merged": (merged(1, JOE), merged(2, JOE), merged(3, BOT))}, []),
        (
            {"merged": tuple(merged(n, JOE) for n in (1, 2, 3))},
            ["3 pulls merged since 2026-05-04: #1 Add thing 1; #2 Add thing 2; #3 Add thing 3"],
        ),
    ],
)
def test_only_an_unusual_day_is_told(world: World, now: dict[str, Any], titles: list[str]) -> None:
    assert [signal.title for signal in fares(world, **now)] == titles


@pytest.mark.parametrize(
    ("now", "facts"),
    [
        ({"stars": 250}, {"watch": "stars", "stars": 250}),
        ({"stars": 290, "opened": 0}, {"watch": "new-stars", "stars": 290, "new": 50, "since": "2026-05-04T12:00"}),
        ({"merged": tuple(merged(n, JOE) for n in (1, 2, 3))}, {"watch": "merged", "pulls": 3}),
    ],
)
def test_its_numbers_are_typed_facts(world: World, now: dict[str, Any], facts: dict[str, Any]) -> None:
    told = dict(fares(world, **now)[-1].facts)
    assert told.items() >= facts.items()


def test_a_big_project_has_more_ordinary_days(world: World) -> None:
    gaze = world.place.gaze()
    before = ForgeCursor(gaze.now, gaze.now)
    seen = turns.look(lambda _: Pulse(opened=20), before, gaze, 300, lambda _: True)
    assert [signal.severity for signal in seen.signals] == [Severity.MEDIUM]
    assert turns.look(lambda _: Pulse(opened=20), before, gaze, 500, lambda _: True).signals == ()


def test_it_is_watched_and_never_fixed(world: World) -> None:
    row = lookup(fares(world, stars=300)[0].kind)
    assert (row.route, row.tier) == (Route.MONITOR, Tier.LOW)


def test_within_a_window_the_same_is_told_as_the_same(world: World) -> None:
    world.forge.told = Pulse(stars=240)
    seen = world.look()
    world.forge.told = Pulse(stars=290, opened=30)
    found = []
    for _ in range(3):
        world.later(0.25)
        seen = world.look(seen.cursor)
        found.append([(f.fingerprint, f.signal.occurrence) for f in identify(seen.signals)])
    assert len(found[0]) == 3 and found[0] == found[1] == found[2]


def test_a_milestone_that_is_passed_again_is_the_same_thing(world: World) -> None:
    (first,), (again,) = (identify(fares(world, stars=250)) for _ in range(2))
    assert (first.fingerprint, first.signal.occurrence) == (again.fingerprint, again.signal.occurrence)


def test_windows_follow_one_another_without_a_gap(world: World) -> None:
    first = world.look()
    assert world.forge.since == world.now - timedelta(days=1)
    start = world.now
    for _ in range(3):
        world.later(0.4)
        first = world.look(first.cursor)
        assert world.forge.since == start
    world.later(0.1)
    world.look(first.cursor)
    assert world.forge.since == start + timedelta(days=1.2)


def test_after_a_long_sleep_a_week_is_looked_at(world: World) -> None:
    first = world.look()
    world.later(90)
    world.look(first.cursor)
    assert world.forge.since == world.now - timedelta(days=7)


def test_the_detail_says_how_it_fares(world: World) -> None:
    world.mara.create_issue("Crash on start")
    assert world.look().detail == (
        "1 open issues and 0 open pulls of people, 0 wait for someone; "
        "since 2026-05-03 12:00: 0 pulls merged, issues 1 opened, 0 closed"
    )
