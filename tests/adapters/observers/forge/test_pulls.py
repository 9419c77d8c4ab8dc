"""What a pull request waits for: the most telling thing, and nothing that is not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.adapters.observers.forge.pulls import PullFacts, waiting_pull
from ralph_mission.mission.model.forge import Actor, Pull, Review, ThreadComment
from ralph_mission.mission.model.mission import Severity
from tests.helpers import NOON

MARA, JOE, US, BOT = Actor(1, "mara"), Actor(2, "joe"), Actor(3, "ralph"), Actor(4, "ci[bot]", is_bot=True)
LATER = NOON + timedelta(days=10)
PULL = Pull(7, "Add a thing", "", "open", MARA, "topic", "a" * 40, "main", NOON, NOON, "pulls/7")
YES = Review(JOE, "approved", "", PULL.head_sha, NOON, 1)
FACTS = PullFacts(US.id, lambda who: who == JOE, lambda number: True, lambda pull: ())


def read_title(pull: Pull, facts: PullFacts = FACTS) -> str:
    signal = waiting_pull(pull, facts, LATER, timedelta(days=3), timedelta(days=2))
    return signal.title.removeprefix("#7 ").partition(":")[0] if signal else ""


def test_approved_and_green_is_the_most_telling() -> None:
    assert (
        read_title(replace(PULL, reviews=(YES,), newcomer=True)) == "was approved 10 days ago, is green and not merged"
    )


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, may_approve=lambda who: False),
        replace(FACTS, is_ready=lambda number: False),
    ],
    ids=["approved by nobody who counts", "not green"],
)
def test_what_cannot_be_merged_is_not_said_to_wait_for_it(facts: PullFacts) -> None:
    assert read_title(replace(PULL, reviews=(YES,)), facts) == ""


def test_nobody_is_asked_about_checks_of_what_is_not_approved() -> None:
    def refuse(number: int) -> bool:
        raise AssertionError

    assert read_title(PULL, replace(FACTS, is_ready=refuse)) == "has waited 10 days for a review"


def test_a_later_no_takes_an_approval_back() -> None:
    no = replace(YES, state="changes_requested", at=NOON + timedelta(days=1))
    assert read_title(replace(PULL, reviews=(YES, no))) == ""


def test_conflicts_are_told_when_its_author_has_been_away() -> None:
    facts = replace(FACTS, conflicts=lambda pull: ("a.py", "b.py"))
    assert read_title(replace(PULL, reviews=(YES,)), facts) == "has conflicts with main"
    assert read_title(replace(PULL, reviews=(YES,), updated_at=LATER), facts) == ""


def test_a_first_contribution_without_an_answer_is_urgent() -> None:
    pull = replace(PULL, newcomer=True)
    assert read_title(pull) == "is its author's first contribution, and has no answer after 10 days"
    signal = waiting_pull(pull, FACTS, LATER, timedelta(days=3), timedelta(days=2))
    assert signal and signal.severity is Severity.HIGH


@pytest.mark.parametrize(("who", "answered"), [(JOE, True), (MARA, False), (US, False), (BOT, False)])
def test_an_answer_is_what_another_person_says(who: Actor, answered: bool) -> None:
    remark = ThreadComment(1, who, "Thanks!", NOON, NOON)
    assert ("first contribution" in read_title(replace(PULL, newcomer=True, remarks=(remark,)))) is not answered


def test_a_draft_waits_for_nobody() -> None:
    assert read_title(replace(PULL, draft=True, reviews=(YES,), newcomer=True)) == ""
