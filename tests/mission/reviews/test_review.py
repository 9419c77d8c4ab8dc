"""What a review decides and says, as values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission import policy
from ralph_mission.mission.model.effects import MARKER, EditReview, PostReview, Receipt, marker
from ralph_mission.mission.model.forge import Actor, Pull, Review
from ralph_mission.mission.model.ledger import EffectRecord
from ralph_mission.mission.model.mission import Action, Limits, Verdict
from ralph_mission.mission.model.proposal import BudgetUsed, PolicyContext
from ralph_mission.mission.reviews import review
from ralph_mission.mission.reviews.review import PostedReview, ReviewPoint, place_points
from tests.helpers import NOON

US, MARA = Actor(1, "ralph[bot]", True), Actor(7, "mara")
HEAD = "a" * 40
PULL = Pull(7, "Add a table", f"For #3.\n\n{marker('ab' * 8)}", "open", US, "ralph/issue-3-table", HEAD, "main", NOON,
            NOON, "u")  # fmt: skip  # one pull
KEY = review.review_key(7)
SHOWN = {"src/a.py": ((1, 4), (10, 12)), "gone.py": ()}


def written(by: Actor = US, state: str = "commented", key: str = KEY, **facts: str) -> Review:
    return Review(by, state, f"Words.\n\n{marker(key, **facts)}", HEAD, NOON, 40)


def record(state: str, number: int = 0) -> EffectRecord:
    return EffectRecord(KEY, "x", Action.ANSWER, "review", state, None, 1, NOON, 0, Receipt(KEY, "done", number))


def test_a_pull_is_ours_by_account_branch_and_marker() -> None:
    assert review.why_not_ours(PULL, US.id) == ""
    assert "account" in review.why_not_ours(replace(PULL, author=MARA), US.id)
    for head in ("topic", "fork:ralph/issue-3-table", "ralphy/x"):
        assert "branch" in review.why_not_ours(replace(PULL, head=head), US.id)
    assert "marker" in review.why_not_ours(replace(PULL, body="For #3."), US.id)


@pytest.mark.parametrize(("head", "number"), [("ralph/issue-3-table", 3), ("ralph/issue-12", 12), ("ralph/fix", 0),
                                              ("ralph/issue-3x", 0)])  # fmt: skip  # one table
def test_the_task_is_told_by_the_branch(head: str, number: int) -> None:
    assert review.find_task(replace(PULL, head=head), ()) == number


def test_our_review_is_found_by_account_state_and_last_marker() -> None:
    ours = written(head=HEAD, round="3")
    quoting = replace(written(key="cd" * 8), body=f"{marker(KEY)}\n\n{marker('cd' * 8)}")
    pull = replace(PULL, reviews=(ours, written(MARA), written(state="approved"), quoting))
    assert review.find_posted_review(pull, None, US.id) == PostedReview(40, ours.body, HEAD, 3)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (None, PostedReview()),
        (record("failed"), PostedReview()),
        (record("done", 40), PostedReview(40, round=1)),
        (record("unknown"), PostedReview(round=1, doubt=True)),
        (record("adopted"), PostedReview(round=1, doubt=True)),
    ],
)
def test_what_a_list_does_not_show_memory_tells(known: EffectRecord | None, expected: PostedReview) -> None:
    assert review.find_posted_review(PULL, known, US.id) == expected


def test_the_first_review_is_posted_and_every_later_one_edits_it_under_a_key_of_its_own() -> None:
    (first,) = review.review_proposal(PULL, "Words.", PostedReview()).effects
    assert isinstance(first, PostReview) and (first.key, first.head_sha) == (KEY, HEAD)
    keys = set()
    for round_ in (1, 2, 3):
        (edit,) = review.review_proposal(PULL, "Words.", PostedReview(40, "x", HEAD, round_)).effects
        assert isinstance(edit, EditReview) and edit.review == 40 and MARKER.findall(edit.body) == [KEY]
        keys.add(edit.key)
    assert len(keys) == 3 and KEY not in keys


def test_the_same_text_is_recognised_whatever_its_marker_says() -> None:
    body = review.sign_text(PULL, "Words.\n\nMore.", PostedReview())
    assert review.says_the_same(PostedReview(40, body), "Words.\n\nMore.")
    assert review.says_the_same(PostedReview(40, body.replace("\n", "\r\n")), "Words.\n\nMore.")
    assert not review.says_the_same(PostedReview(40, body), "Others.") and not review.says_the_same(
        PostedReview(0, ""), ""
    )


@pytest.mark.parametrize(
    ("file", "line", "place"),
    [
        ("src/a.py", 4, ("src/a.py", 4)),
        ("./src/a.py", 11, ("src/a.py", 11)),
        ("src/a.py", 5, ("src/a.py", 0)),
        ("src/a.py", 0, ("src/a.py", 0)),
        ("gone.py", 1, ("gone.py", 0)),
        ("src/b.py", 1, ("", 0)),
        ("../src/a.py", 1, ("", 0)),
        ("/etc/passwd", 1, ("", 0)),
    ],
)
def test_a_point_stands_where_the_diff_shows_it_or_nowhere(file: str, line: int, place: tuple[str, int]) -> None:
    (point,) = place_points([ReviewPoint("minor", "odd", file, line)], SHOWN)
    assert (point.file, point.line) == place


def test_the_gravest_come_first_and_decide_the_verdict() -> None:
    points = place_points(
        [
            ReviewPoint("minor", "a"),
            ReviewPoint("critical", "b"),
            ReviewPoint("major", "c"),
            ReviewPoint("critical", "d"),
        ],
        {},
    )
    assert [point.what for point in points] == ["b", "d", "c", "a"]
    assert "something has to be fixed" in review.review_body(PULL, points)
    assert "2 critical, 1 major, 1 minor" in review.review_body(PULL, points)
    assert "no points" in review.review_body(PULL, ()) and "nothing was found" in review.review_body(PULL, ())


def test_a_secret_that_stands_there_after_all_is_held_back_by_the_rules() -> None:
    bench = PolicyContext(
        Limits(), BudgetUsed(), "main", "ralph-memory", US.id, NOON, secrets=("correct-horse-battery",)
    )
    plain = review.review_proposal(PULL, review.review_body(PULL, ()), PostedReview())
    assert policy.judge(plain, bench).verdict is Verdict.ALLOW
    for text, rule in (
        ("It is correct-horse-battery.", "secret"),
        ("Fixes #1", "closing-keyword"),
        ("@mara", "mention"),
    ):
        for before in (PostedReview(), PostedReview(40, "x", HEAD, 1)):
            assert policy.judge(review.review_proposal(PULL, text, before), bench).rules == (rule,)


SECRET = "hunter2-is-the-value"


@pytest.mark.attack(33)
def test_no_secret_stands_in_a_point():
    point = ReviewPoint("major", f"it is {SECRET}", "a.py", 1, "bug", f"say {SECRET}")
    (clean,) = review.redact_points((point,), (SECRET,))
    assert SECRET not in f"{clean.what}{clean.suggestion}"
