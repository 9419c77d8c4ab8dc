"""What no rule may stop: a rule that stops too much is as wrong as one that stops too little."""

from __future__ import annotations

from dataclasses import replace
from datetime import time

import pytest

from ralph_mission.mission.model.effects import EditComment, OpenIssue, OpenPull
from ralph_mission.mission.model.ledger import FindingRecord
from ralph_mission.mission.model.mission import Action, Limits, Severity, Status
from ralph_mission.mission.model.proposal import BudgetUsed
from ralph_mission.mission.policy import judge
from tests.mission.build import MARA, NOW, ask, comment, finding, fix, issue, mission, policy_context, writing


def test_a_step_of_a_mission_that_goes_on_needs_no_free_slot():
    step = writing(comment("done"), before=mission(), action=Action.FINISH)
    assert judge(step, policy_context(spent=BudgetUsed(active=3, new_missions=1))).rules == ()


def test_a_question_needs_no_slot_whatever_is_under_way():
    assert judge(ask(), policy_context(spent=BudgetUsed(active=3))).rules == ()


def test_a_yes_begins_work_only_while_a_slot_is_free():
    asked = mission(status=Status.DISCOVERED)
    yes = writing(comment("approved"), before=asked, after=replace(asked, status=Status.PLANNED))
    assert judge(yes, policy_context(spent=BudgetUsed(active=2))).rules == ()
    assert judge(yes, policy_context(spent=BudgetUsed(active=3))).rules == ("mission-cap",)


@pytest.mark.parametrize("spent", [BudgetUsed(threads_week=4), BudgetUsed(unanswered=5), BudgetUsed(unanswered=9)])
def test_what_is_grave_has_the_last_thread_of_a_week_and_waits_for_no_answer(spent):
    opened = (OpenIssue("k", "t", "b"),)
    alarm = ask(effects=opened, members=(finding(kind="bug", severity=Severity.HIGH),))
    assert judge(alarm, policy_context(spent=spent)).rules == ()
    assert judge(ask(effects=opened), policy_context(spent=spent)).rules == ("thread-cap",)


def test_what_people_wrote_down_counts_for_no_week():
    week = policy_context(spent=BudgetUsed(threads_week=9, unanswered=9))
    brief = ask(effects=(OpenIssue("k", "t", "b"),), members=(finding(observer="briefs"),))
    assert brief.threads == 0 and "thread-cap" not in judge(brief, week).rules
    mixed = replace(brief, members=(*brief.members, finding()))
    assert mixed.threads == 1 and "thread-cap" in judge(mixed, week).rules


def test_a_ready_fix_has_the_thread_before_the_last_and_a_question_has_not():
    opened = (OpenPull("k", "t", "b", "ralph/spelling-1", "main", 0),)
    for most, used in ((5, 3), (3, 1)):
        week = policy_context(spent=BudgetUsed(threads_week=used), limits=Limits(threads_per_week=most))
        assert "thread-cap" not in judge(writing(*opened, action=Action.OPEN_FIX), week).rules
        assert "thread-cap" in judge(ask(effects=(OpenIssue("k", "t", "b"),)), week).rules


@pytest.mark.parametrize("spent", [BudgetUsed(threads_week=5), BudgetUsed(unanswered=10)])
def test_a_storm_of_what_is_grave_ends_too(spent):
    alarm = ask(effects=(OpenIssue("k", "t", "b"),), members=(finding(kind="bug", severity=Severity.HIGH),))
    assert judge(alarm, policy_context(spent=spent)).rules == ("thread-cap",)


def test_what_goes_on_opens_no_thread_that_nobody_asked_for():
    opened = OpenPull("k", "t", "b", "ralph/spelling-1", "main", 3)
    step = writing(opened, before=mission(), action=Action.OPEN_FIX, approved=True)
    assert "thread-cap" not in judge(step, policy_context(spent=BudgetUsed(threads_week=5, unanswered=9))).rules


@pytest.mark.parametrize("most", [0, 1])
def test_work_that_a_label_asked_for_opens_its_pull_however_few_threads_a_week_has(most: int) -> None:
    opened = OpenPull("k", "t", "b", "ralph/issue-1", "main", 0)
    week = policy_context(spent=BudgetUsed(threads_week=5, unanswered=9), limits=Limits(threads_per_week=most))
    assert "thread-cap" not in judge(writing(opened, action=Action.WORK), week).rules


def test_a_list_that_stands_is_brought_up_to_date_however_many_threads_there_are():
    edit = writing(EditComment("k", 3, 0, "a list"), action=Action.MONITOR)
    assert judge(edit, policy_context(spent=BudgetUsed(threads_week=5, unanswered=9))).rules == ()


def test_an_answer_about_something_that_was_rejected_may_be_sent():
    about = finding()
    record = FindingRecord(about.fingerprint, about.kind, about.title, ("",), 1, verdict="rejected")
    answer = writing(comment("as you said"), members=(about,))
    assert judge(answer, policy_context(records={about.fingerprint: record})).rules == ()


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
    decision = judge(writing(action=Action.PUBLISH), policy_context(quiet_hours=quiet, now=at))
    assert ("quiet-hours" in decision.rules) is held


def test_an_issue_about_misspellings_somewhere_covers_no_fix_of_nowhere():
    nowhere = fix(members=(finding(path=""),))
    told = issue(author=MARA, title="There are typos", body="")
    assert "human-duplicate" not in judge(nowhere, policy_context(issues=(told,))).rules
