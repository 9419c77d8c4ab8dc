"""What a person can do now, in the very words to type."""

from __future__ import annotations

from typing import Any

import pytest

from ralph_mission.mission.lifecycle.waiting import (
    ANSWER_QUESTION,
    CLOSED_BY_PEOPLE,
    HELD_CHECKS,
    find_waiting,
    list_waiting,
)
from ralph_mission.mission.model.mission import FailureReason, Status
from tests.mission.build import mission


def show(verb: str, number: int) -> str:
    return f"{verb} {number}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": Status.IN_REVIEW}, ("show_pull 4", "approve_pull 4")),
        ({"status": Status.DISCOVERED, "proposal_hash": "abc"}, ("show_issue 3", "approve_issue 3")),
        ({"status": Status.DISCOVERED, "proposal_hash": ""}, ()),
        (
            {"status": Status.DISCOVERED, "proposal_hash": "abc", "next_step": CLOSED_BY_PEOPLE},
            ("close this as completed", "show_issue 3", "complete_issue 3"),
        ),
        ({"status": Status.ESCALATED}, ("show_issue 3",)),
        (
            {"status": Status.ESCALATED, "next_step": "Comment `/ralph retry`."},
            ("Comment `/ralph retry`.", "show_issue 3", "retry 3"),
        ),
        ({"status": Status.PLANNED}, ("close this as completed", "show_issue 3", "complete_issue 3")),
        ({"status": Status.PLANNED, "next_step": "Correct main."}, ("Correct main.", "show_issue 3")),
        ({"status": Status.PLANNED, "issue": 0, "pull": 0}, ()),
        ({"status": Status.EXECUTING, "next_step": ANSWER_QUESTION}, (ANSWER_QUESTION, "show_issue 3")),
        ({"status": Status.EXECUTING, "next_step": "An agent continues it when it is allowed to: no."}, ()),
        ({"status": Status.ESCALATED, "issue": 0}, ("show_pull 4",)),
        ({"status": Status.COMPLETED}, ()),
    ],
)
def test_a_person_is_told_what_to_type(changes: dict[str, Any], words: tuple[str, ...]):
    lines = list_waiting([mission(**changes)], show)
    assert len(lines) == len(words)
    assert all(line.endswith(word) for line, word in zip(lines, words, strict=True))


@pytest.mark.parametrize(
    ("reason", "then"),
    [
        (None, "the next cycle tries again"),
        (FailureReason.BEHIND, "the next cycle merges the base into it"),
        (FailureReason.NEEDS_PERSON, "only a person can change that"),
    ],
)
def test_a_review_whose_merge_was_refused_says_what_stands_in_the_way(reason: FailureReason | None, then: str):
    stopped = mission(status=Status.IN_REVIEW, failure="blocked: a check is missing", failure_reason=reason)
    assert list_waiting([stopped], show) == (
        f"failed:    blocked: a check is missing; {then}",
        "look:      show_pull 4",
        "approve:   approve_pull 4 (if it is not approved yet)",
    )


def test_a_merge_that_a_rule_refused_says_what_it_needs_and_no_rule_id():
    (failed, *_) = list_waiting([mission(status=Status.IN_REVIEW, failure="approval-author")], show)
    assert failed == "failed:    the merge needs someone with write access; the next cycle tries again"


def test_held_checks_come_first():
    held = mission(status=Status.IN_REVIEW, pull=9, checks=f"{HELD_CHECKS}: https://example.org/runs/1")
    first, *_ = find_waiting([mission(status=Status.IN_REVIEW, pull=4), held], show)
    assert first.number == 9 and HELD_CHECKS in first.note
