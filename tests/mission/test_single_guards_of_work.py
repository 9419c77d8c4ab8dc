"""What one guard of the work on issues, of reviews or of money alone holds back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from ralph_mission.mission import approval, lifecycle, observing, review, spending, work, work_choice
from ralph_mission.mission.memory import Header
from ralph_mission.mission.model import Action, Actor, Edit, Limits, Signal, Status
from ralph_mission.mission.ports import Sighting
from ralph_mission.mission.review import Point
from ralph_mission.mission.work_terms import READY, WORKING, Played
from tests.mission import build
from tests.mission.build import labelled, remark
from tests.mission.test_acting import Silent
from tests.mission.test_work import BO, MARA, RECORD, US, event, issue
from tests.safety.making import change, patch

OUTSIDER = Actor(44, "passer-by")
SECRET = "hunter2-is-the-value"
MAY = frozenset({MARA.id, BO.id})
ASKED = issue("Add a table", frozenset({READY}), event(MARA, 1))
LATER = build.NOW + timedelta(days=9)


def why_not(made, authorised=MAY, edits=()):
    return work_choice.why_not(made, US.id, authorised, (), edits)


@pytest.mark.attack(1, 17)
def test_an_issue_is_taken_for_people_with_a_say_alone():
    assert why_not(ASKED) == ""
    assert why_not(replace(ASKED, state="closed"))
    assert why_not(issue("x", frozenset({READY}), event(OUTSIDER, 1)))
    assert "its author has no say" in why_not(replace(ASKED, author=OUTSIDER))


@pytest.mark.attack(11)
def test_a_text_that_a_stranger_changed_is_no_order():
    assert "has no say here" in why_not(ASKED, edits=(Edit(OUTSIDER, ASKED.created_at + timedelta(days=1)),))


@pytest.mark.attack(1, 11)
def test_an_agent_is_told_what_people_with_a_say_wrote_and_nobody_changed():
    at = ASKED.created_at + timedelta(hours=1)
    told = (
        remark("mine", MARA, at),
        remark("theirs", OUTSIDER, at),
        replace(remark("changed", BO, at), updated_at=LATER),
    )
    task = work_choice.task_of(replace(ASKED, remarks=told), US.id, MAY, some=True)
    assert ([one.body for one in task.remarks], task.altered) == (["mine"], (BO,))


@pytest.mark.attack(14)
def test_nobody_asks_whether_a_bot_may_have_work_done():
    bot = Actor(33, "helper[bot]", is_bot=True)
    assert work_choice.voices(replace(ASKED, author=bot), US.id) == {MARA}


def test_a_second_try_that_came_to_nothing_was_the_last():
    assert not work.released(RECORD, "it failed", 1).final
    assert work.released(replace(RECORD, tries=2), "it failed", 1).final


def test_nothing_that_was_made_is_no_success():
    empty = patch()
    assert work.ended(RECORD, Played(0, "", patch(change("a.txt", b"", b"x\n")))).state == "ending"
    assert work.ended(RECORD, Played(0, "", empty)).state == "releasing"


def test_an_issue_is_taken_back_by_people():
    ending = replace(RECORD, state="ending")

    def off(who):
        events = (labelled(WORKING, US), labelled(WORKING, who, LATER, added=False))
        return replace(ASKED, events=(*ASKED.events, *events))

    assert work.withdrawn(ending, replace(off(US), state="closed"), US.id)
    assert work.withdrawn(ending, off(MARA), US.id)
    assert not work.withdrawn(ending, off(US), US.id)


def test_a_branch_of_somebody_else_is_not_taken():
    first = work.free_branch(ASKED, None, lambda name: False)
    assert work.free_branch(ASKED, None, lambda name: name == first) == f"{first}-2"


# --- reviews --------------------------------------------------------------------------


@pytest.mark.attack(33)
def test_no_secret_stands_in_a_point():
    point = Point("major", f"it is {SECRET}", "a.py", 1, "bug", f"say {SECRET}")
    (clean,) = review.redacted((point,), (SECRET,))
    assert SECRET not in f"{clean.what}{clean.suggestion}"


# --- money ----------------------------------------------------------------------------


def test_a_try_has_no_more_money_than_the_day_and_the_issue_have():
    now = build.NOW
    header, limits = Header("lineage", 1), Limits()
    spent = replace(header, today=now.date().isoformat(), spend_usd=limits.usd_per_day - 1)
    assert spending.allowance(spent, now, limits, 5.0) == 1
    assert spending.allowance(header, now, limits, 0.5) == 0.5
    assert not spending.enough(0.01, 5.0)
    assert spending.booked(header, now, 2.0).spend_usd == 2


# --- what was seen --------------------------------------------------------------------


@pytest.mark.attack(33, 34)
def test_no_secret_comes_in_with_what_was_seen():
    seen = Signal("web", "bug", f"say {SECRET}", ("essence",), path="a.py")
    sighting = Sighting("web", "ok", (seen, replace(seen, path=f"{SECRET}/a.py")), detail=f"it said {SECRET}")
    heard = observing._heard(SimpleNamespace(voice=Silent()), sighting, (SECRET,))
    assert [signal.path for signal in heard.signals] == ["a.py"]
    assert SECRET not in repr(heard)


def test_a_yes_that_no_network_took_does_not_bring_a_text_back():
    waits = build.mission(action=Action.PUBLISH, status=Status.ESCALATED, pull=0, changed_at=build.NOW)
    yes = {"events": (labelled(approval.APPROVED, at=LATER),), "labels": frozenset({approval.APPROVED})}
    there = build.issue(**yes)
    facts = lifecycle.Facts(there, None, frozenset({build.MARA.id}))
    waits = approval.about(waits, there.title, there.body)
    assert lifecycle.read(waits, facts, build.NOW).event is None
    assert (
        lifecycle.read(replace(waits, action=Action.OPEN_PROPOSAL), facts, build.NOW).event is lifecycle.Event.REVIVED
    )
