"""How many issues may be left: set, or learned from what people take and refuse.

What a verdict says; what cannot be understood is never waved through.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph_mission.loop.model.state import VERDICT, LoopEvent, ReviewIssue
from ralph_mission.loop.rules import routing
from ralph_mission.loop.rules.verdicts import AcceptanceVerdict, parse_issues, read_verdicts, threshold


def verdicts(kind: str, *said: tuple[int, bool]) -> tuple[AcceptanceVerdict, ...]:
    return tuple(AcceptanceVerdict(kind, left, accepted) for left, accepted in said)


def test_a_refactoring_may_leave_one_suggestion_and_nothing_else_may() -> None:
    assert threshold("refactor", {}, ()) == 1
    assert threshold("plan-build-review", {}, ()) == 0


def test_what_is_set_goes_before_what_is_learned() -> None:
    seen = verdicts("debug", *[(5, True)] * 9)
    assert threshold("debug", {"debug": 2}, seen) == 2
    assert threshold("debug", {"debug": 0}, seen) == 0
    assert threshold("debug", {"debug": "learn"}, seen) == threshold("debug", "learn", seen) == 5


def test_two_verdicts_teach_nothing_and_three_do() -> None:
    assert threshold("debug", {}, verdicts("debug", (2, True), (2, True))) == 0
    assert threshold("debug", {}, verdicts("debug", (2, True), (2, True), (2, True))) == 2


@pytest.mark.parametrize(("accepted", "refused", "learned"), [(3, 0, 2), (2, 1, 2), (3, 2, 0), (5, 3, 2), (4, 3, 0)])
def test_the_mean_of_the_posterior_has_to_be_at_least_six_tenths(accepted: int, refused: int, learned: int) -> None:
    seen = verdicts("debug", *[(2, True)] * accepted, *[(2, False)] * refused)
    assert threshold("debug", {}, seen) == learned  # (1 + a) / (2 + a + r): 3/5 is enough, 4/7 and 5/9 are not


def test_who_takes_more_takes_fewer_and_who_refuses_fewer_refuses_more() -> None:
    assert threshold("debug", {}, verdicts("debug", (1, True), (2, True), (3, True))) == 1
    seen = verdicts("debug", *[(4, True)] * 3, *[(1, False)] * 5)
    assert threshold("debug", {}, seen) == 0


def test_a_default_that_people_refuse_is_dropped() -> None:
    assert threshold("refactor", {}, verdicts("refactor", *[(1, False)] * 3)) == 0


def test_accepting_clean_work_says_nothing_against_the_default() -> None:
    assert threshold("refactor", {}, verdicts("refactor", *[(0, True)] * 5)) == 1


def test_one_kinds_verdicts_do_not_teach_another() -> None:
    assert threshold("debug", {}, verdicts("refactor", *[(3, True)] * 5)) == 0


def test_records_that_are_none_are_left_out() -> None:
    good = {"kind": "debug", "left": 2, "accepted": True}
    bad = [{}, None, "x", {**good, "left": True}, {**good, "left": -1}, {**good, "accepted": 1}, {**good, "kind": 3}]
    assert read_verdicts([good, *bad]) == (AcceptanceVerdict("debug", 2, True),)


def parse_verdict(payload: object) -> tuple[ReviewIssue, ...]:
    return parse_issues(LoopEvent(VERDICT, payload if isinstance(payload, str) else json.dumps(payload)))


def test_only_verdicts_have_issues() -> None:
    assert parse_issues(LoopEvent("build.complete", "issues: 3")) == ()


# --- JSON ---------------------------------------------------------------------------

FULL = {"file": "src/a.py", "line": 12, "kind": "race", "severity": "minor", "message": "two writers"}
ISSUE = ReviewIssue("two writers", "src/a.py", 12, "race", "minor")


@pytest.mark.parametrize("key", ["issues", "issues_found", "findings", "problems"])
def test_an_issue_carries_file_line_kind_severity_and_message(key: str) -> None:
    assert parse_verdict({key: [FULL]}) == (ISSUE,)


@pytest.mark.parametrize(
    "item",
    [
        {"path": "src/a.py", "line": "12", "category": "race", "severity": "LOW", "description": "two writers"},
        {"file": "src/a.py:12", "type": "race", "severity": "nit", "text": "two writers"},
        {
            "filename": "src/a.py",
            "lineno": "12-14",
            "violation_type": "race",
            "severity": "info",
            "title": "two writers",
        },
        "[minor] src/a.py:12 [race] two writers",
    ],
)
def test_other_spellings_say_the_same(item: object) -> None:
    assert parse_verdict([item]) == (ISSUE,)


def test_a_list_alone_and_a_list_in_a_code_block_are_read() -> None:
    assert parse_verdict([FULL]) == (ISSUE,)
    assert parse_verdict(f"Here it is:\n```json\n{json.dumps({'issues': [FULL]})}\n```\n") == (ISSUE,)


@pytest.mark.parametrize("payload", [{"issues": []}, [], {"issues_found": 0}, {"issues": [], "summary": "fine"}])
def test_an_empty_list_is_a_clean_verdict(payload: object) -> None:
    assert parse_verdict(payload) == ()


@pytest.mark.parametrize("severity", ["", "banana", None, "BLOCKER", "critical", "high"])
def test_an_unknown_severity_is_critical(severity: object) -> None:
    assert parse_verdict([{**FULL, "severity": severity}])[0].severity == "critical"


def test_without_a_severity_an_issue_is_critical() -> None:
    assert parse_verdict([{"message": "x"}]) == (ReviewIssue("x"),)


def test_a_count_without_details_is_as_many_critical_issues() -> None:
    found = parse_verdict({"issues_found": 3})
    assert len(found) == 3 and all(issue.severity == "critical" for issue in found)
    assert len(parse_verdict({"issues": [FULL], "issues_found": 3})) == 3
    assert len(parse_verdict({"issues": [FULL, FULL], "issues_found": 2})) == 2


# --- text ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["0 issues", "no issues", "No issues found.", "**0 issues**", "zero issues", "issues: 0", "- no issues\n"]
)
def test_a_clean_verdict_in_words(text: str) -> None:
    assert parse_verdict(text) == ()


def test_lines_with_place_kind_and_message() -> None:
    text = (
        "Found this:\n- src/a.py:12 [race] two writers\n* [minor] `docs/b.md` a typo\n1. major: no tests\n- it is wrong"
    )
    assert parse_verdict(text) == (
        ReviewIssue("two writers", "src/a.py", 12, "race"),
        ReviewIssue("a typo", "docs/b.md", 0, "", "minor"),
        ReviewIssue("no tests", severity="major"),
        ReviewIssue("it is wrong"),
    )


@pytest.mark.parametrize("text", ["issues: 3", "3 issues", "I found 3 issues.", "issues_found=3", "3 critical issues"])
def test_a_count_in_words_is_as_many_critical_issues(text: str) -> None:
    assert [issue.severity for issue in parse_verdict(text)] == ["critical"] * 3


def test_a_count_above_the_listed_ones_is_believed() -> None:
    assert len(parse_verdict("4 issues:\n- [minor] a.py:1 x\n- [minor] a.py:2 y")) == 4


# --- unknown is never waved through -------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "   ",
        "LGTM",
        "approved",
        "no critical issues",
        "0 issues in the parser. The lock is still racy.",
        "there were issues",
        '{"issues": [}',
        '{"verdict": "ok"}',
        '{"issues": null}',
        '{"issues": {"a": 1}}',
        '{"issues": -1}',
        '{"issues": true}',
        '{"issues": "some"}',
        '{"issues": [null]}',
        '{"issues": [""]}',
        '{"issues": [], "verdict": "REJECT"}',
        '{"issues": [{"message": "bad"}], "issues": []}',
        "[" * 100_000,
        "[[]]",
    ],
)
def test_what_cannot_be_understood_is_one_critical_issue(payload: str) -> None:
    assert [issue.severity for issue in parse_verdict(payload)] == ["critical"]
    assert not routing.is_converged(LoopEvent(VERDICT, payload, parse_verdict(payload)), threshold=5)


def test_a_verdict_that_cannot_be_understood_is_shown_to_whoever_mends_it() -> None:
    assert "LGTM" in parse_verdict("LGTM")[0].message


@pytest.mark.parametrize("payload", ["issues: 999999999", '{"issues": 999999999}', json.dumps(["x"] * 100_000)])
def test_no_verdict_fills_the_memory(payload: str) -> None:
    assert len(parse_verdict(payload)) == 500


@given(st.text())
def test_any_text_is_answered(text: str) -> None:
    assert all(issue.message for issue in parse_verdict(text))


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["issues", "line", "file"]), inner),
    )
)
def test_any_json_is_answered(value: object) -> None:
    assert all(issue.message and issue.line >= 0 for issue in parse_verdict(value))
