from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.issues import tasks
from ralph_mission.mission.issues.tasks import READY
from ralph_mission.mission.model.forge import Actor, BodyEdit
from ralph_mission.mission.model.mission import Status
from tests.mission import build
from tests.mission.build import remark
from tests.mission.issues.test_record import BO, MARA, US, event, issue

OUTSIDER = Actor(44, "passer-by")


MAY = frozenset({MARA.id, BO.id})


ASKED = issue("Add a table", frozenset({READY}), event(MARA, 1))


def why_not(made, authorised=MAY, edits=()):
    return tasks.why_not(made, US.id, authorised, (), edits)


LATER = build.NOW + timedelta(days=9)


def test_a_parked_mission_gives_its_issue_away_unless_it_has_a_pull_request():
    def not_yet(**of_mission):
        parked = build.mission(issue=ASKED.number, status=Status.PARKED, **of_mission)
        return tasks.why_not_yet(ASKED, None, (parked,), ())

    assert not_yet(pull=0) == ""
    assert not_yet(pull=9) == "its pull request is #9: say there what is missing"


@pytest.mark.attack(1, 17)
def test_an_issue_is_taken_for_people_with_a_say_alone():
    assert why_not(ASKED) == ""
    assert why_not(replace(ASKED, state="closed"))
    assert why_not(issue("x", frozenset({READY}), event(OUTSIDER, 1)))
    assert "its author may not decide" in why_not(replace(ASKED, author=OUTSIDER))


@pytest.mark.attack(11)
def test_a_text_that_a_stranger_changed_is_no_order():
    assert "has no say here" in why_not(ASKED, edits=(BodyEdit(OUTSIDER, ASKED.created_at + timedelta(days=1)),))


@pytest.mark.attack(1, 11)
def test_an_agent_is_told_what_people_with_a_say_wrote_and_nobody_changed():
    at = ASKED.created_at + timedelta(hours=1)
    told = (
        remark("mine", MARA, at),
        remark("theirs", OUTSIDER, at),
        replace(remark("changed", BO, at), updated_at=LATER),
    )
    task = tasks.read_task(replace(ASKED, remarks=told), US.id, MAY, some=True)
    assert ([one.body for one in task.remarks], task.altered) == (["mine"], (BO,))


@pytest.mark.attack(14)
def test_nobody_asks_whether_a_bot_may_have_work_done():
    bot = Actor(33, "helper[bot]", is_bot=True)
    assert tasks.find_participants(replace(ASKED, author=bot), US.id) == {MARA}


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("Needs #4", (4,)),
        ("First.\n\n- depends on: #4, #5 and #6.\nBlocked by #4", (4, 5, 6)),
        ("It needs #4 to be useful", ()),
        ("needs work, see #4", ()),
        (f"Needs #{ASKED.number}", ()),
        ("> Needs #4", ()),
        ("Add retries.\r\n\r\nNeeds #4\r\n\r\nThanks", (4,)),
        ("Needs #4 (the API).\n- [ ] Blocked by #5; #6\n**Depends on:** #18, and #19", (4, 5, 6, 18, 19)),
        ("```\nNeeds #4\n```", ()),
    ],
)
def test_what_an_issue_needs_stands_on_a_line_of_its_own(body, needs):
    assert tasks.find_needs(replace(ASKED, body=body)) == needs
