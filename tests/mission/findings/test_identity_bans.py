"""Do Not Repeat: what is forbidden, and what is reported instead of being half-obeyed.

What a pull of somebody else says of itself is text: whatever stands there, it is read.
"""

from __future__ import annotations

import pytest

from ralph_mission.mission.findings.identity import closed_issues, is_forbidden, parse_bans
from ralph_mission.mission.issues.tasks import why_not_yet
from ralph_mission.mission.model.mission import Verdict
from ralph_mission.mission.model.proposal import KINDS, Ban, KindBan, PathBan, ReferenceBan
from ralph_mission.mission.policy import judge
from tests.mission.build import MARA, ask, fix, issue, policy_context, pull


def bans(text: str) -> set[object]:
    return set(parse_bans(text, KINDS)[0])


def unclear(text: str) -> tuple[str, ...]:
    return parse_bans(text, KINDS)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- `vendor/**`", {PathBan("vendor/**")}),
        ("- `**/a*/b*/*.md`", {PathBan("**/a*/b*/*.md")}),
        ("- #12", {ReferenceBan(12)}),
        ("- `#12` is known", {ReferenceBan(12)}),
        ("- `spelling`", {KindBan("spelling")}),
        ("- spelling", {KindBan("spelling")}),
        ("* spelling: enough of these", {KindBan("spelling")}),
        ("1. `spelling` in `docs/**`, see #3", {KindBan("spelling"), PathBan("docs/**"), ReferenceBan(3)}),
        ("- [ ] `a.md`", {PathBan("a.md")}),
        ("- known already:\n  `a.md`", {PathBan("a.md")}),
        ("`a.md`\r\n`b.md`\r\n", {PathBan("a.md"), PathBan("b.md")}),
    ],
)
def test_a_line_is_understood(text: str, expected: set[object]) -> None:
    assert bans(text) == expected
    assert not unclear(text)


@pytest.mark.parametrize(
    "line",
    ["please be careful", "any file of the old API", "bug reports are fine", "`!docs/**`", "issue 12", "`\\`", "x#12"],
)
def test_a_line_that_cannot_be_obeyed_is_reported(line: str) -> None:
    assert unclear(f"- {line}") == (line,)
    assert not bans(f"- {line}")


def test_headings_and_comments_only_explain() -> None:
    assert parse_bans("\n### Paths\n<!-- `a/**`\nand #7 -->\n\n", KINDS) == ((), ())


def test_an_unclosed_comment_hides_the_rest() -> None:
    assert bans("- `a`\n<!-- \n- `b`") == {PathBan("a")}


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("vendor/**", "vendor/a/b.py", True),
        ("vendor/**", "src/vendor.py", False),
        ("*.md", "docs/deep/a.md", True),
        ("/README.md", "docs/README.md", False),
        ("docs/", "docs/a.md", True),
    ],
)
def test_globs_are_gitignore_patterns(glob: str, path: str, covered: bool) -> None:
    assert is_forbidden([PathBan(glob)], path=path) is covered


def test_kinds_and_numbers_forbid_exactly_themselves() -> None:
    some: list[Ban] = [KindBan("todo"), ReferenceBan(7)]
    assert is_forbidden(some, kind="todo")
    assert is_forbidden(some, reference=7)
    assert not is_forbidden(some, path="todo", kind="spelling", reference=70)


def test_a_path_ban_forbids_nothing_without_a_path() -> None:
    assert not is_forbidden([PathBan("**")])


@pytest.mark.parametrize("glob", [" a.md", "a.md ", "a" * 513])
def test_a_glob_that_is_not_written_as_one_is_not_understood(glob: str) -> None:
    assert not bans(f"- x `{glob}` y")
    assert len(unclear(f"- x `{glob}` y")) == 1


def test_a_glob_that_would_take_for_ever_is_not_understood() -> None:
    line = f"`{'*a' * 20}b`"
    assert unclear(f"- {line}") == (line,)


ISSUES = "https://github.com/o/r/issues"
ENDLESS = "9" * 4_301
"""One digit more than `int` takes."""


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        pytest.param("Fixes #3 and closes #14", {3, 14}, id="two"),
        pytest.param("Fixes #00003", {3}, id="zeros"),
        pytest.param(f"Fixes #{'9' * 18}", {10**18 - 1}, id="the longest"),
        pytest.param(f"Fixes #{'9' * 19}", set(), id="longer", marks=pytest.mark.attack(17)),
        pytest.param(f"Fixes #{ENDLESS}", set(), id="endless", marks=pytest.mark.attack(17)),
        pytest.param(f"Fixes #{ENDLESS}, fixes #3", {3}, id="endless and another", marks=pytest.mark.attack(17)),
        pytest.param(f"Fixes {ISSUES}/{ENDLESS}", set(), id="endless address", marks=pytest.mark.attack(17)),
        pytest.param(f"Resolves GH-{ENDLESS}", set(), id="endless GH", marks=pytest.mark.attack(17)),
    ],
)
def test_a_pull_closes_what_can_be_a_number(said, numbers):
    assert closed_issues(pull(body=said)) == numbers
    assert closed_issues(pull(title=said, body="")) == numbers


@pytest.mark.parametrize("proposal", [fix(), ask()], ids=["fix", "question"])
@pytest.mark.attack(17)
def test_no_number_in_a_pull_of_anybody_keeps_new_missions_from_beginning(proposal):
    theirs = pull(author=MARA, body=f"Fixes #{ENDLESS}", touches=())
    assert judge(proposal, policy_context(pulls=(theirs,))).verdict is Verdict.ALLOW


@pytest.mark.attack(17)
def test_no_number_in_a_pull_of_anybody_keeps_an_issue_from_being_worked_on():
    endless, covering = pull(number=8, body=f"Fixes #{ENDLESS}"), pull(number=9, body="Fixes #3")
    assert why_not_yet(issue(), None, (), (endless,)) == ""
    assert why_not_yet(issue(), None, (), (endless, covering)) == "pull request #9 is about to close it"
