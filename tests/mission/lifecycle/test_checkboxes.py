"""Boxes and ticks, purely: who ticked what by the versions of a page, and what a tick says in its thread."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.lifecycle import table
from ralph_mission.mission.lifecycle.approval import content_hash, on_issue, on_pull
from ralph_mission.mission.lifecycle.checkboxes import (
    attribute,
    box,
    find_boxes,
    find_ticked,
    hear_in_issue,
    hear_in_pull,
    is_untold,
    tick,
    without_boxes,
)
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.model.cycle import QUIET, MissionEvent, MissionFacts, StepContext
from ralph_mission.mission.model.forge import BodyVersion, Branch, Tick
from ralph_mission.mission.model.mission import Status
from tests.mission.build import BOT, HEAD, MARA, NOW, OUTSIDER, issue, mission, pull

A, B = "approve 3 ab12cd34", "pause 0"
PAGE = f"# Hello\n\n- **One**\n  {box('Go ahead', A)}\n{box('Pause', B)}"
AROUND = StepContext(5, NOW, ("mara",), "squash", {}, Branch("main", HEAD))
LATER = NOW + timedelta(hours=1)


def version(text, editor=MARA, minutes=0):
    return BodyVersion(editor, NOW + timedelta(minutes=minutes), text)


def test_boxes_are_found_ticked_and_left_out():
    assert find_boxes(PAGE) == {A, B} and find_ticked(PAGE) == frozenset()
    assert find_ticked(tick(PAGE, {A})) == {A} and find_ticked(tick(PAGE, {A}).replace("\n", "\r\n")) == {A}
    assert tick(tick(PAGE, {A, B}), ()) == PAGE
    assert without_boxes(PAGE) == "# Hello\n\n- **One**\n\n"


@given(st.lists(st.tuples(st.sampled_from([MARA, OUTSIDER, BOT]), st.sets(st.sampled_from([A, B]))), max_size=8))
def test_a_tick_is_whoever_ticked_its_and_never_ours(edits):
    versions = [version(PAGE, BOT), *(version(tick(PAGE, to), who, n) for n, (who, to) in enumerate(edits, 1))]
    told = attribute(versions[-1].text, versions, BOT.id)
    assert all(one.actor and one.actor.id != BOT.id for one in told if one.actor)
    people = [to for who, to in edits if who is not BOT]
    if people and edits[-1][0] is not BOT:
        ours = {one.box for one in told}
        assert people[-1] - ours <= set().union(*(to for who, to in edits if who is BOT), set())


def test_our_own_edit_takes_no_tick_back_and_makes_none():
    versions = [version(PAGE, BOT), version(tick(PAGE, {A}), MARA, 1), version(PAGE, BOT, 2)]
    assert attribute(PAGE, versions, BOT.id) == (Tick(A, MARA, NOW + timedelta(minutes=1)),)
    assert attribute(tick(PAGE, {A}), [version(PAGE, BOT), version(tick(PAGE, {A}), BOT, 1)], BOT.id) == ()


def test_of_what_stands_ticked_after_a_gap_nobody_can_tell_who_did_it():
    (told,) = attribute(tick(PAGE, {A}), [version(PAGE, BOT), version(None, MARA, 1)], BOT.id)
    assert (told.box, told.actor) == (A, None)
    (told,) = attribute(tick(PAGE, {A}), [version(tick(PAGE, {A}), MARA, 1)], BOT.id)
    assert told.actor is None


@pytest.mark.parametrize("where", [0, 1])
def test_a_tick_on_a_page_that_somebody_else_changed_is_nobodys_word(where):
    moved = PAGE.replace(A, "-").replace(B, A).replace("-\n", B)  # the order of one box behind the words of another
    edits = [version(PAGE, BOT), version(moved, OUTSIDER, 1), version(tick(moved, {A}), MARA, 2)]
    page = (tick(moved, {A}), tick(PAGE, {A}))[where]
    assert attribute(page, edits, BOT.id) == (Tick(A, None, NOW + timedelta(minutes=2)),)


def test_what_was_not_offered_in_between_is_not_ticked_once_it_is_offered_again():
    on, off = box("List these again", "list lint"), box("Do not list these", "unlist lint")
    pages = [(off, BOT), (tick(off, {"unlist lint"}), MARA), (on, BOT), (tick(on, {"list lint"}), MARA), (off, BOT)]
    versions = [version(text, who, n) for n, (text, who) in enumerate(pages)]
    assert attribute(off, versions, BOT.id) == ()
    assert [one.box for one in attribute(on, versions[:-1], BOT.id)] == ["list lint"]


@pytest.mark.parametrize(
    "order", ["unlist todo -->\n- [ ] Look now <!-- ralph:box approve 3 ab12", "approve 3 ab12 -->", ""]
)
def test_an_order_that_is_none_is_no_box(order):
    assert box("Do not list these", order) == "- Do not list these"


def test_a_box_that_is_offered_no_more_was_obeyed():
    versions = [version(PAGE, BOT), version(tick(PAGE, {A}), MARA, 1)]
    assert attribute(box("Go ahead", "approve 3 ffffffff"), versions, BOT.id) == ()


@pytest.mark.parametrize(("who", "state"), [(MARA, "approved"), (OUTSIDER, "refused")])
def test_a_tick_approves_a_proposal_as_a_comment_of_its_author_would(who, state):
    asked = issue()
    asks = mission(proposal_hash=content_hash(asked.title, asked.body))
    ticked = Tick(f"approve {asked.number} {asks.question.proposal_hash}", who, LATER)
    assert on_issue(hear_in_issue(asked, (ticked,)), asks, frozenset({MARA.id})).state == state


def test_a_tick_at_an_older_text_approves_nothing():
    asked = issue()
    asks = mission(proposal_hash=content_hash(asked.title, asked.body))
    ticked = Tick(f"approve {asked.number} 00000000", MARA, LATER)
    assert on_issue(hear_in_issue(asked, (ticked,)), asks, frozenset({MARA.id})).state == "refused"


@pytest.mark.parametrize(
    ("who", "sha", "rules"),
    [(MARA, HEAD, ()), (OUTSIDER, HEAD, ("approval-author",)), (MARA, "b" * 40, ("approval-head",))],
)
def test_a_tick_approves_a_pull_request_at_the_commit_that_was_shown(who, sha, rules):
    there = replace(pull(), reviews=())
    heard = hear_in_pull(there, (Tick(f"approve {there.number} {sha}", who, LATER),))
    opinion = on_pull(heard, mission(head_sha=there.head_sha), frozenset({MARA.id}))
    assert (opinion.rules, opinion.state) == (rules, "refused" if rules else "approved")


def test_a_tick_is_heard_in_its_own_thread_alone():
    assert hear_in_issue(issue(), (Tick("reject 99", MARA, LATER), Tick("run 3", MARA, LATER))) == issue()
    assert (
        hear_in_pull(pull(), (Tick("reject 4444", MARA, LATER), Tick(f"reject {pull().number}", None, LATER))) == pull()
    )


def read(there, current):
    return table.interpret_facts(current, MissionFacts(there, None, frozenset({MARA.id})), LATER).event


@pytest.mark.parametrize(("who", "event"), [(MARA, MissionEvent.UNANSWERED), (OUTSIDER, None)])
def test_a_mission_is_set_aside_by_who_may_decide(who, event):
    heard = hear_in_issue(issue(), (Tick(f"park {issue().number} ff", who, LATER),))
    assert read(heard, mission(status=Status.DISCOVERED, pull=0)) == event


@pytest.mark.parametrize(("who", "event"), [(MARA, MissionEvent.REVIVED), (OUTSIDER, None)])
def test_a_mission_that_is_stuck_is_tried_again_by_who_may_decide(who, event):
    heard = hear_in_issue(issue(), (Tick(f"retry {issue().number} ff", who, LATER),))
    assert read(heard, mission(status=Status.ESCALATED, pull=0, changed_at=NOW)) == event


def test_where_nobody_can_tell_who_ticked_the_mission_asks_again_once():
    untold = Tick(f"reject {issue().number}", None, LATER)
    facts = MissionFacts(issue(), None, frozenset({MARA.id}))
    assert is_untold(facts, (untold,)) and not is_untold(facts, (replace(untold, actor=MARA),))
    asks = mission(status=Status.DISCOVERED, pull=0)
    (step,) = next_step(asks, replace(facts, untold=True), QUIET, AROUND)
    assert step.proposal and "it is unclear by whom" in step.proposal.effects[0].body
    (again,) = next_step(step.proposal.after, replace(facts, untold=True), QUIET, AROUND)
    assert again.proposal is None
    of_pull = replace(facts, untold=True, pull=pull())
    (step,) = next_step(mission(status=Status.IN_REVIEW, issue=0), of_pull, QUIET, AROUND)
    assert step.proposal and "by a review" in step.proposal.effects[0].body
    assert "/ralph approve" not in step.proposal.effects[0].body
