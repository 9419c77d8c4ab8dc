"""The alarm over the local forge: three equal failures open one issue, a success closes it, nothing ever raises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.flows import alarm
from ralph_mission.flows.alarm import Bell, Episode
from ralph_mission.forges.local import LocalForge, Person
from ralph_mission.gateways.git import Git
from ralph_mission.mission.effects import OpenIssue, Receipt
from ralph_mission.mission.model import Issue
from ralph_mission.safety.text import closing_keywords, mentions
from ralph_mission.trouble import Lost, Trouble
from tests.helpers import NOON, make_repo

DENIED = Trouble("the token may not write contents", "add `contents: write`", who="forge")
FULL = Trouble("no space left on device", "free some disk space")


@dataclass
class Kept:
    """A counter in memory."""

    episode: Episode = field(default_factory=Episode)

    def read(self) -> Episode:
        return self.episode

    def write(self, episode: Episode) -> None:
        self.episode = episode


class Forge:
    """The local forge, whose answer to a new issue the test may choose."""

    def __init__(self, real: LocalForge) -> None:
        self.real, self.fates, self.sent = real, iter(()), 0

    def answers(self, *fates: str | Exception) -> None:
        self.fates: Iterator[Any] = iter(fates)

    def perform(self, effect: Any) -> Receipt:
        self.sent += isinstance(effect, OpenIssue)
        fate = next(self.fates, "")
        if isinstance(fate, Exception):
            raise fate
        if fate.endswith("applied"):
            self.real.perform(effect)
        return Receipt(effect.key, fate.split()[0], detail="so it said") if fate else self.real.perform(effect)  # type: ignore[arg-type]  # one of the fates

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@dataclass
class House:
    forge: Forge
    counter: Kept = field(default_factory=Kept)
    said: list[str] = field(default_factory=list)
    hours: int = 0

    def hear(self, *outcomes: Any, staged: bool = False, **changes: Any) -> None:
        for outcome in outcomes:
            self.hours += 1
            now = NOON + timedelta(hours=self.hours)
            bell = Bell(self.counter, self.forge, now, self.said.append, ("hunter2hunter2",))  # type: ignore[arg-type]  # a stand-in
            alarm.hear(replace(bell, **changes), outcome, staged=staged)

    @property
    def alarms(self) -> list[Issue]:
        return [self.forge.real.issue(issue.number) for issue in self.forge.real.issues("all")]

    @property
    def states(self) -> list[str]:
        return [issue.state for issue in self.alarms]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(Forge(LocalForge(Git.open(make_repo(tmp_path)), now=lambda: NOON)))


# --- when it rings --------------------------------------------------------------------


def test_three_equal_failures_open_one_issue(house: House) -> None:
    house.hear(DENIED, DENIED)
    assert house.alarms == []
    house.hear(DENIED)
    (issue,) = house.alarms
    assert issue.title == "Ralph cannot work: the token may not write contents"
    assert issue.labels == frozenset()
    for expected in ("2026-05-04 13:00 UTC", "3 times in a row", "add `contents: write`", "the forge recovers"):
        assert expected in issue.body


def test_further_failures_open_no_second_issue_and_ask_nothing(house: House) -> None:
    house.hear(*[DENIED] * 3)
    house.hear(*[DENIED] * 5, forge=None)
    assert len(house.alarms) == 1
    assert house.said == []


@pytest.mark.parametrize("between", [FULL, "done", RuntimeError()])
def test_what_comes_between_starts_the_count_anew(house: House, between: Any) -> None:
    house.hear(DENIED, DENIED, between, DENIED, DENIED)
    assert house.alarms == []


@pytest.mark.parametrize("between", ["lost", "paused", "not_due", Lost()])
def test_a_cycle_that_left_quietly_counts_neither_way(house: House, between: Any) -> None:
    house.hear(DENIED, between, DENIED, between, between)
    assert house.alarms == []
    house.hear(DENIED, between)
    assert house.states == ["open"]


def test_a_staged_cycle_counts_neither_way(house: House) -> None:
    house.hear(*[DENIED] * 5, staged=True)
    assert house.counter.episode == Episode()
    house.hear(*[DENIED] * 3)
    house.hear("done", staged=True)
    assert house.states == ["open"]


def test_numbers_and_object_ids_do_not_make_a_failure_another_one(house: House) -> None:
    house.hear(*(Trouble(f"{n} s after the request 0x{n}f of 4be{n}9a1 it was gone", "wait") for n in range(3)))
    assert len(house.alarms) == 1


def test_equal_words_of_another_actor_are_another_failure(house: House) -> None:
    house.hear(DENIED, DENIED, Trouble(DENIED.what, DENIED.next_step, who="you"))
    assert house.alarms == []


def test_a_bug_counts_and_its_text_stays_here(house: House) -> None:
    house.hear(*(KeyError("postgres://me:secret-word@db") for _ in range(3)))
    (issue,) = house.alarms
    assert "KeyError" in issue.title and "the authors of ralph" in issue.body
    assert "secret-word" not in issue.title + issue.body


# --- when it stops --------------------------------------------------------------------


def test_a_success_closes_it_without_a_word(house: House) -> None:
    house.hear(*[DENIED] * 3, "done")
    (issue,) = house.alarms
    assert (issue.state, issue.state_reason, issue.remarks) == ("closed", "completed", ())
    house.hear("done")
    assert house.counter.episode == Episode(number=1)


def test_the_same_failure_later_gets_an_issue_of_its_own(house: House) -> None:
    house.hear(*[DENIED] * 3, "done", *[DENIED] * 3)
    assert house.states == ["closed", "open"]


def test_an_issue_that_a_person_closed_is_not_opened_again_while_the_failure_lasts(house: House) -> None:
    house.hear(*[DENIED] * 3)
    Person(house.forge.real, "mara").close_issue(1)
    house.hear(*[DENIED] * 4)
    assert house.states == ["closed"]
    house.hear("done", *[DENIED] * 3)
    assert house.states == ["closed", "open"]


def test_one_that_could_not_be_closed_stands_for_the_next_time(house: House) -> None:
    house.hear(*[DENIED] * 3)
    house.forge.answers("failed")
    house.hear("done", *[DENIED] * 3)
    assert house.states == ["open"]
    assert "the alarm #1 could not be closed: so it said" in house.said
    house.hear("done")
    assert house.states == ["closed"]


def test_another_failure_is_told_in_the_issue_that_stands(house: House) -> None:
    house.hear(*[DENIED] * 3, *[FULL] * 3)
    (issue,) = house.alarms
    assert "no space left on device" in issue.body
    house.hear("done")
    assert house.states == ["closed"]


# --- when it cannot be sent -----------------------------------------------------------


def test_an_alarm_that_cannot_be_sent_is_a_line_and_tried_again(house: House) -> None:
    house.forge.answers(Trouble("the forge cannot be reached", "wait", who="network"), "failed")
    house.hear(*[DENIED] * 4)
    assert house.said == [
        "the alarm could not be sent: the forge cannot be reached",
        "the alarm could not be sent: so it said",
    ]
    house.hear(DENIED)
    assert house.states == ["open"]
    assert "5 times in a row" in house.alarms[0].body


def test_one_that_may_have_been_sent_is_found_and_not_sent_again(house: House) -> None:
    house.forge.answers("unknown applied")
    house.hear(*[DENIED] * 8)
    assert (house.states, house.forge.sent) == (["open"], 1)
    assert house.counter.episode.issue == 1


def test_one_that_may_have_been_sent_is_closed_by_a_success(house: House) -> None:
    house.forge.answers("unknown applied")
    house.hear(*[DENIED] * 3, "done")
    assert house.states == ["closed"]
    assert house.counter.episode == Episode(number=1)


def test_one_that_was_lost_is_replaced_only_three_failures_later(house: House) -> None:
    house.forge.answers("unknown")
    house.hear(*[DENIED] * 6)
    assert (house.states, house.forge.sent) == ([], 1)
    house.hear(DENIED)
    assert (house.states, house.forge.sent) == (["open"], 2)


def test_without_a_forge_it_is_counted_and_said(house: House) -> None:
    house.hear(*[DENIED] * 3, forge=None)
    assert house.said == ["the alarm could not be sent: there is no forge to send it to"]
    house.hear(DENIED)
    assert house.states == ["open"]


def test_a_counter_that_cannot_be_kept_is_a_line(house: House) -> None:
    class Full(Kept):
        def write(self, episode: Episode) -> None:
            raise OSError("disk full")

    house.hear(DENIED, "done", counter=Full())
    assert house.said == ["the alarm could not be seen to: OSError"]


def test_a_counter_that_was_lost_opens_nothing_twice(house: House) -> None:
    house.hear(*[DENIED] * 3, "done", *[DENIED] * 3)
    house.counter.episode = Episode()
    house.hear(*[DENIED] * 3)
    assert house.states == ["closed", "open"]
    house.hear("done")
    assert house.states == ["closed", "closed"]


# --- what it says ---------------------------------------------------------------------


def test_it_carries_no_secret_and_calls_nobody(house: House) -> None:
    words = "@mara said hunter2hunter2, fixes #1 <!-- ralph:v1 key=00000000 --> ::error:: ghp_" + "a1B2" * 9
    house.hear(*(Trouble(words, words) for _ in range(3)))
    (issue,) = house.alarms
    for text in (issue.title, issue.body):
        assert "hunter2" not in text and "ghp_" not in text and "ralph:v1 key=00000000" not in text
        assert not mentions(text, True) and not closing_keywords(text, True)
    assert len(issue.title) <= alarm.TITLE
