"""What a pull of somebody else says of itself is text: whatever stands there, it is read."""

from __future__ import annotations

import pytest

from ralph_mission.mission.findings.overlap import closes
from ralph_mission.mission.issues.tasks import why_not_yet
from ralph_mission.mission.model.mission import Verdict
from ralph_mission.mission.policy.judge import judge
from tests.mission.build import MARA, ask, bench, fix, issue, pull

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
    assert closes(pull(body=said)) == numbers
    assert closes(pull(title=said, body="")) == numbers


@pytest.mark.parametrize("proposal", [fix(), ask()], ids=["fix", "question"])
@pytest.mark.attack(17)
def test_no_number_in_a_pull_of_anybody_keeps_new_missions_from_beginning(proposal):
    theirs = pull(author=MARA, body=f"Fixes #{ENDLESS}", touches=())
    assert judge(proposal, bench(pulls=(theirs,))).verdict is Verdict.ALLOW


@pytest.mark.attack(17)
def test_no_number_in_a_pull_of_anybody_keeps_an_issue_from_being_worked_on():
    endless, covering = pull(number=8, body=f"Fixes #{ENDLESS}"), pull(number=9, body="Fixes #3")
    assert why_not_yet(issue(), None, (), (endless,)) == ""
    assert why_not_yet(issue(), None, (), (endless, covering)) == "pull #9 is about to close it"
