"""The forge observer: how the project is doing, told on unusual days only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.observers import forge
from ralph_mission.adapters.observers.forge import turns
from ralph_mission.adapters.observers.forge.turns import ForgeCursor, ItemKey
from ralph_mission.mission.findings.identity import identify, merge_findings
from ralph_mission.mission.model.effects import Label
from ralph_mission.mission.model.forge import Actor, Issue, Pull, Pulse
from ralph_mission.mission.model.mission import Finding, Observation, Severity, Signal, Tier
from ralph_mission.mission.model.proposal import Route, lookup
from tests.adapters.observers.forge_world import World
from tests.helpers import NOON


def merged(number: int, author: Actor) -> Pull:
    return Pull(number, f"Add thing {number}", "", "merged", author, "t", "a" * 40, "main", NOON, NOON, "")


JOE, BOT = Actor(8, "joe"), Actor(9, "robot", is_bot=True)


def changes(world: World, **now: Any) -> tuple[Signal, ...]:
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
            ["3 pull requests merged since 2026-05-04: #1 Add thing 1; #2 Add thing 2; #3 Add thing 3"],
        ),
    ],
)
def test_only_an_unusual_day_is_told(world: World, now: dict[str, Any], titles: list[str]) -> None:
    assert [signal.title for signal in changes(world, **now)] == titles


@pytest.mark.parametrize(
    ("now", "facts"),
    [
        ({"stars": 250}, {"watch": "stars", "stars": 250}),
        ({"stars": 290, "opened": 0}, {"watch": "new-stars", "stars": 290, "new": 50, "since": "2026-05-04T12:00"}),
        ({"merged": tuple(merged(n, JOE) for n in (1, 2, 3))}, {"watch": "merged", "pulls": 3}),
    ],
)
def test_its_numbers_are_typed_facts(world: World, now: dict[str, Any], facts: dict[str, Any]) -> None:
    told = dict(changes(world, **now)[-1].facts)
    assert told.items() >= facts.items()


def test_a_big_project_has_more_ordinary_days(world: World) -> None:
    context = world.place.context()
    before = ForgeCursor(context.now, context.now)
    seen = turns.look(lambda *_: Pulse(opened=20), before, context, 300, lambda _: True)
    assert [signal.severity for signal in seen.signals] == [Severity.MEDIUM]
    assert turns.look(lambda *_: Pulse(opened=20), before, context, 500, lambda _: True).signals == ()


def test_it_is_watched_and_never_fixed(world: World) -> None:
    row = lookup(changes(world, stars=300)[0].kind)
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
    (first,), (again,) = (identify(changes(world, stars=250)) for _ in range(2))
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
    assert world.look().detail == ("1 open issue; since 2026-05-03 12:00 UTC 1 issue opened")


# --- The forge observer: how much it reads in full, whose turn it is, and what its cursor remembers. ---

# --- bounds ---------------------------------------------------------------------------


def issue(number: int, author: int, days: int = 0) -> Issue:
    at = datetime(2026, 1, 1, tzinfo=NOON.tzinfo) + timedelta(days=days)
    return Issue(number, "t", "b", "open", Actor(author, f"a{author}"), at, at, "")


def test_one_who_files_hundreds_hides_nobody() -> None:
    flood = [issue(number, author=7, days=9) for number in range(1, 400)]
    assert 1_000 in [one.number for one in turns.fair([*flood, issue(1_000, author=8)], 50)]


@pytest.mark.attack(16)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 99)), max_size=40), st.integers(0, 30))
def test_turns_are_fair(authors: list[tuple[int, int]], most: int) -> None:
    items = [issue(number, author, days) for number, (author, days) in enumerate(authors)]
    chosen = turns.fair(items, most)
    taken = {author: sum(one.author.id == author for one in chosen) for author, _ in authors}
    left = {author: sum(a == author for a, _ in authors) - taken[author] for author, _ in authors}
    assert len(chosen) == min(most, len(items))
    assert all(taken[a] <= taken[b] + 1 for a in taken for b in taken if left[b])


def test_a_flood_is_told_as_not_everything(world: World) -> None:
    for number in range(forge.ISSUES + 1):
        world.mara.create_issue(f"Issue {number}")
    world.later(3)
    assert not world.look().complete


# --- turns ----------------------------------------------------------------------------


def questions(observations: Sequence[Observation]) -> list[int]:
    return [signal.reference for seen in observations for signal in seen.signals if signal.kind == "question"]


def test_a_look_reads_few_in_full_and_over_several_looks_all(world: World) -> None:
    for number in range(20):
        world.mara.create_issue(f"Issue {number}", "Does it work?")
    world.later(3)
    observations = world.lookups(4)
    assert sorted(questions(observations)) == list(range(1, 21))
    assert len(world.forge.read) == 20
    assert not any(seen.complete for seen in observations)
    assert [seen.gone for seen in observations] == [()] * 4


def test_the_next_round_begins_when_all_had_their_turn(world: World) -> None:
    for number in range(8):
        world.mara.create_issue(f"Issue {number}")
    world.later(3)
    world.lookups(4)
    assert sorted(world.forge.read) == sorted([*range(1, 9)] * 2)


def test_what_asks_by_title_or_label_has_its_turn_first(world: World) -> None:
    world.joe.create_issue("How does it work?")
    world.joe.create_issue("Help", labels=("Question",))
    for number in range(20):
        world.mara.create_issue(f"Issue {number}")
    world.later(3)
    world.look()
    assert set(world.forge.read[:2]) == {1, 2}


def test_new_activity_gives_another_turn_in_the_same_round(world: World) -> None:
    for number in range(20):
        world.mara.create_issue(f"Issue {number}", "Does it work?")
    world.later(3)
    first = world.look()
    number = world.forge.read[0]
    world.later(1)
    world.joe.comment(number, "And on the other one?")
    second = world.look(first.cursor)
    assert second.gone == (("question", str(number)),)
    world.later(3)
    third = world.look(second.cursor)
    assert number in questions([third])


@pytest.mark.parametrize("end", ["answered", "closed"])
def test_a_question_that_ended_is_gone_though_it_is_not_looked_at(world: World, end: str) -> None:
    for number in range(20):
        world.mara.create_issue(f"Issue {number}", "Does it work?")
    world.later(3)
    first = world.look()
    number = questions([first])[0]
    world.later(1)
    world.joe.comment(number, "Yes.") if end == "answered" else world.joe.close_issue(number)
    world.forge.read.clear()
    second = world.look(first.cursor)
    assert number not in world.forge.read
    assert second.gone == (("question", str(number)),)
    assert world.look(second.cursor).gone == ()


def test_a_stale_issue_that_somebody_took_is_gone(world: World) -> None:
    number = world.mara.create_issue("Crash on start")
    world.later(15)
    first = world.look()
    world.forge.perform(Label("cd" * 8, number, assign=("joe",)))
    world.later(1)
    second = world.look(first.cursor)
    assert second.gone == (("stale-issue", str(number)),)


def test_what_waits_is_not_forgotten_by_a_look_that_did_not_see_it(world: World) -> None:
    for number in range(20):
        world.mara.create_issue(f"Issue {number}", "Does it work?")
    world.later(3)
    backlog: tuple[Finding, ...] = ()
    for seen in world.lookups(5):
        backlog = merge_findings([seen], backlog)
    assert len({finding.fingerprint for finding in backlog}) == 20
    for number in range(1, 21):
        world.joe.comment(number, "Yes.")
    world.later(1)
    assert merge_findings([world.look(seen.cursor)], backlog) == ()


def test_a_few_are_all_read_every_time(world: World) -> None:
    world.mara.create_issue("Help", "Does it work?")
    world.pull()
    world.later(4)
    for seen in world.lookups(3):
        assert {signal.kind for signal in seen.signals} == {"question", "pull-waiting"}
    assert world.forge.read == [1, 2] * 3


def test_one_that_was_deleted_meanwhile_is_passed_over(world: World) -> None:
    world.forge.deleted = frozenset({world.mara.create_issue("Help", "Does it work?")})
    world.later(3)
    assert world.look().signals == ()
    assert world.forge.read == [1]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "[]",
        "{}",
        "7",
        '{"at":"2026-01-01","since":null,"read":"","told":{}}',
        '{"at":null,"since":null,"read":"1-","told":{}}',
        '{"at":null,"since":null,"read":"","told":[]}',
        "[" * 50_000,
    ],
)
def test_a_cursor_that_cannot_be_read_is_a_first_look(cursor: str) -> None:
    assert ForgeCursor.parse(cursor) == ForgeCursor()


TOLD = st.tuples(st.sampled_from(["question", "stale-issue"]), st.integers(1, 400))


@given(
    st.frozensets(st.integers(0, 10**6), max_size=60),
    st.integers(0, 10**6) | st.none(),
    st.frozensets(TOLD, max_size=60),
)
def test_a_cursor_is_read_as_it_was_written(read: frozenset[int], stars: int | None, told: frozenset[ItemKey]) -> None:
    cursor = ForgeCursor(NOON, NOON - timedelta(days=1), stars, read, told)
    assert ForgeCursor.parse(cursor.dump()) == cursor
    assert "\n" not in cursor.dump()


def test_a_cursor_cannot_be_made_to_take_all_memory() -> None:
    text = ForgeCursor(NOON, NOON).dump().replace('"read":""', '"read":"1-999999999"')
    assert len(ForgeCursor.parse(text).read) <= turns.ROUND
