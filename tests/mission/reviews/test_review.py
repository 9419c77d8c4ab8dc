"""What a review decides and says, as values."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission import policy
from ralph_mission.mission.model.effects import MARKER, EditReview, LineComment, PostReview, Receipt, marker
from ralph_mission.mission.model.forge import Actor, Pull, Review, ThreadComment
from ralph_mission.mission.model.ledger import EffectRecord
from ralph_mission.mission.model.mission import Action, Limits, Verdict
from ralph_mission.mission.model.proposal import BudgetUsed, PolicyContext, Proposal
from ralph_mission.mission.reviews import review
from ralph_mission.mission.reviews.review import PostedReview, ReviewPoint, place_points, redact_points
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
    (clean,) = redact_points((point,), (SECRET,))
    assert SECRET not in f"{clean.what}{clean.suggestion}"


def test_a_point_stays_as_grave_as_it_is_whatever_is_secret():
    point = ReviewPoint("critical", "it is critical", "a.py", 1)
    (clean,) = redact_points((point,), ("critical",))
    assert clean.gravity == "critical" and "critical" not in clean.what


# --- a pull of somebody else ----------------------------------------------------------

DIFF = """ a.py | 3 ++-
 1 file changed, 2 insertions(+), 1 deletion(-)

diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,3 +10,4 @@ def f():
     total = 0
-    old = 1
+    new = 2
+++ b/odd
     total = 0
diff --git a/gone.py b/gone.py
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


def quoting(quote: str, file: str = "src/a.py", line: int = 0) -> ReviewPoint:
    return ReviewPoint("minor", "odd", file, line, quote=quote)


@pytest.mark.parametrize(
    ("point", "line"),
    [
        (quoting("new = 2"), 11),
        (quoting("    new = 2\n"), 11),
        (quoting("new = 2", "./src/a.py", 99), 11),
        (quoting("total = 0", line=12), 13),
        (quoting("total = 0", line=9), 10),
        (quoting("total = 0\nnew = 2"), 11),
        (quoting("++ b/odd"), 12),
        (quoting("old = 1"), None),
        (quoting("new"), None),
        (quoting(""), None),
        (quoting("  \n"), None),
        (quoting("new = 2", "src/b.py"), None),
        (quoting("x", "gone.py"), None),
        (quoting("new = 2\ntotal = 0"), None),
    ],
)
def test_a_point_stands_at_the_line_that_it_quotes_or_is_dropped(point: ReviewPoint, line: int | None) -> None:
    found = review.quoted_points([point], DIFF)
    assert [(one.file, one.line) for one in found] == ([("src/a.py", line)] if line else [])


@pytest.mark.parametrize(("said", "line"), [("}", None), ("x = {", 2), ("a_long_name", 4)])
def test_a_short_quote_needs_one_place_alone(said: str, line: int | None) -> None:
    diff = "+++ b/src/a.py\n@@ -0,0 +1,6 @@\n+}\n+x = {\n+}\n+a_long_name\n+b\n+a_long_name\n"
    found = review.quoted_points([replace(quoting(said), line=3)], diff)
    assert [one.line for one in found] == ([line] if line else [])


def test_a_path_that_git_shows_in_quotes_is_read_as_it_is() -> None:
    diff = '+++ "b/na\\303\\257ve \\"\\t.py"\n@@ -0,0 +1 @@\n+a = 2222\n'
    assert review.parse_diff(diff) == {'naïve "\t.py': {1: "a = 2222"}}


def remark(text: str, by: Actor = MARA, edited: bool = False) -> ThreadComment:
    return ThreadComment(5, by, text, NOON, NOON + timedelta(hours=edited))


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        (remark("/ralph review"), True),
        (remark("\n  /Ralph  review look at the locks"), True),
        (remark("/ralph reviewer"), False),
        (remark("Please /ralph review"), False),
        (remark("    /ralph review"), False),
        (remark("/ralph review", edited=True), False),
        (remark("/ralph review", by=Actor(8, "joe")), False),
    ],
)
def test_a_review_is_asked_for_by_an_unedited_command_of_somebody_who_may_decide(
    said: ThreadComment, asks: bool
) -> None:
    found = review.find_asking(replace(PULL, remarks=(said,)), lambda actor: actor.id == MARA.id)
    assert (found is not None) == asks


def test_an_asked_review_has_a_key_for_each_head_and_only_remarks_that_quote() -> None:
    points = review.quoted_points([quoting("new = 2"), quoting("nowhere")], DIFF)
    (effect,) = review.asked_proposal(PULL, points, "mara", 1).effects
    assert isinstance(effect, PostReview) and effect.key == review.review_key(7, HEAD) != KEY
    assert [(one.path, one.line) for one in effect.lines] == [("src/a.py", 11)]
    assert "`new = 2`" in effect.lines[0].body and "1 more quoted no line of the diff and was dropped" in effect.body
    other = review.asked_proposal(replace(PULL, head_sha="b" * 40), points, "mara", 1)
    assert other.key != effect.key


def test_rules_judge_what_stands_on_lines_too() -> None:
    bench = PolicyContext(Limits(), BudgetUsed(), "main", "ralph-memory", US.id, NOON, secrets=(SECRET,))
    for words, rules in (("@mara", ("mention",)), ("Fixes #1", ("closing-keyword",)), ("Fine.", ())):
        (effect,) = review.asked_proposal(PULL, (quoting("x"),), "mara", 0).effects
        assert isinstance(effect, PostReview)
        shown = replace(effect, lines=(LineComment("a.py", 1, words),))
        assert policy.judge(Proposal("k", Action.ANSWER, "review", "t", (shown,)), bench).rules == rules
