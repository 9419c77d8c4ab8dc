"""What no rule may stop: a rule that stops too much is as wrong as one that stops too little."""

from __future__ import annotations

from datetime import time

import pytest

from ralph_mission.mission.model.ledger import FindingRecord
from ralph_mission.mission.model.mission import Action
from ralph_mission.mission.model.proposal import BudgetUsed
from ralph_mission.mission.policy import judge
from tests.mission.build import MARA, NOW, bench, comment, finding, fix, issue, mission, writing


def test_a_step_of_a_mission_that_goes_on_needs_no_free_slot():
    step = writing(comment("done"), before=mission(), action=Action.FINISH)
    assert judge(step, bench(spent=BudgetUsed(active=3, new_missions=1))).rules == ()


def test_an_answer_about_something_that_was_rejected_may_be_sent():
    about = finding()
    record = FindingRecord(about.fingerprint, about.kind, about.title, ("",), 1, verdict="rejected")
    answer = writing(comment("as you said"), members=(about,))
    assert judge(answer, bench(records={about.fingerprint: record})).rules == ()


@pytest.mark.parametrize(
    ("quiet", "clock", "held"),
    [
        ((time(9), time(17)), (8, 59), False),
        ((time(9), time(17)), (9, 0), True),
        ((time(9), time(17)), (16, 59), True),
        ((time(9), time(17)), (17, 0), False),
        ((time(22), time(7)), (22, 0), True),
        ((time(22), time(7)), (6, 59), True),
        ((time(22), time(7)), (7, 0), False),
        ((time(22), time(7)), (21, 59), False),
    ],
)
def test_quiet_hours_begin_and_end_on_the_minute(quiet, clock, held):
    at = NOW.replace(hour=clock[0], minute=clock[1])
    decision = judge(writing(action=Action.PUBLISH), bench(quiet_hours=quiet, now=at))
    assert ("quiet-hours" in decision.rules) is held


def test_an_issue_about_misspellings_somewhere_covers_no_fix_of_nowhere():
    nowhere = fix(members=(finding(path=""),))
    told = issue(author=MARA, title="There are typos", body="")
    assert "human-duplicate" not in judge(nowhere, bench(issues=(told,))).rules
