"""The forge observer: how much it reads in full, whose turn it is, and what its cursor remembers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.observers.forge import observer, turns
from ralph_mission.adapters.observers.forge.turns import ForgeCursor, Told
from ralph_mission.mission.findings.identity import merge_findings
from ralph_mission.mission.model.effects import Label
from ralph_mission.mission.model.forge import Actor, Issue
from ralph_mission.mission.model.mission import Finding, Observation
from tests.adapters.observers.forge_world import World
from tests.helpers import NOON

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
    for number in range(observer.ISSUES + 1):
        world.mara.create_issue(f"Issue {number}")
    world.later(3)
    assert not world.look().complete


# --- turns ----------------------------------------------------------------------------


def questions(sightings: Sequence[Observation]) -> list[int]:
    return [signal.reference for seen in sightings for signal in seen.signals if signal.kind == "question"]


def test_a_look_reads_few_in_full_and_over_several_looks_all(world: World) -> None:
    for number in range(20):
        world.mara.create_issue(f"Issue {number}", "Does it work?")
    world.later(3)
    sightings = world.looks(4)
    assert sorted(questions(sightings)) == list(range(1, 21))
    assert len(world.forge.read) == 20
    assert not any(seen.complete for seen in sightings)
    assert [seen.gone for seen in sightings] == [()] * 4


def test_the_next_round_begins_when_all_had_their_turn(world: World) -> None:
    for number in range(8):
        world.mara.create_issue(f"Issue {number}")
    world.later(3)
    world.looks(4)
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
    for seen in world.looks(5):
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
    for seen in world.looks(3):
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
def test_a_cursor_is_read_as_it_was_written(read: frozenset[int], stars: int | None, told: frozenset[Told]) -> None:
    cursor = ForgeCursor(NOON, NOON - timedelta(days=1), stars, read, told)
    assert ForgeCursor.parse(cursor.dump()) == cursor
    assert "\n" not in cursor.dump()


def test_a_cursor_cannot_be_made_to_take_all_memory() -> None:
    text = ForgeCursor(NOON, NOON).dump().replace('"read":""', '"read":"1-999999999"')
    assert len(ForgeCursor.parse(text).read) <= turns.ROUND
