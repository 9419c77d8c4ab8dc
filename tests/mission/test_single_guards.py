"""What one guard of the gate, of an approval or of a plan alone holds back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission import acting, approval, belonging, callings, lifecycle, schedule
from ralph_mission.mission.effects import MergePull, Publish, marker
from ralph_mission.mission.ledger import CallRecord, OpenState, key_of, may_redo, monitor_key
from ralph_mission.mission.memory import Header
from ralph_mission.mission.model import Action, Actor, Edit, Status, Verdict
from ralph_mission.mission.policy import judge
from ralph_mission.mission.posts import Post
from ralph_mission.mission.proposal import Spent
from tests.mission.build import (
    BOT,
    HEAD,
    MARA,
    NOW,
    OUTSIDER,
    bench,
    fix,
    issue,
    labelled,
    mission,
    pull,
    remark,
    review,
)
from tests.mission.test_acting import LABEL, LIST, OPEN, ScriptedForge, ScriptedPorts, acts_of, decision, done, known

LATER = NOW + timedelta(minutes=1)
ASKED = approval.about(mission(action=Action.OPEN_PROPOSAL, status=Status.DISCOVERED), "a title", "a body")
OBJECTION = review("changes_requested", Actor(8, "eve"), at=LATER)
MERGE = MergePull("k", 4, HEAD, "squash", "Fix\n", "main", MARA.id)
POST = Post("telegram", ("Hello",), (5,), 4_096)
MOVED, VOID = pytest.mark.attack(52), pytest.mark.attack(53)


class Switched(ScriptedPorts):
    """Whose kill switch is thrown once something was sent."""

    def switch(self) -> bool:
        return bool(self.forge.sent)


# --- the gate -------------------------------------------------------------------------


def test_the_switch_of_the_environment_stops_before_the_next_effect():
    ports = Switched(ScriptedForge({"k1": done("k1", 12), "k3": done("k3")}))
    (act,) = acts_of(ports, [decision(OPEN, LABEL)], known(OPEN, LABEL))
    assert (act.cut, len(ports.forge.sent)) == (True, 1)


def test_what_belongs_to_a_mission_is_not_made_up_for_even_as_a_list():
    forge = ScriptedForge({LIST.key: done(LIST.key, 12)}, lists_at_once=True)
    (deed,) = acting.reconcile(ScriptedPorts(forge), OpenState(effects=(LIST.key,)), known(LIST, mission=1))
    assert (deed.receipt.status, forge.sent) == ("failed", [])


def test_no_list_proves_that_a_post_was_not_said():
    assert not may_redo(Publish("k", POST), list_is_complete=True)


# --- a yes ----------------------------------------------------------------------------


def opinion(*remarks, authorised=frozenset({MARA.id}), **more):
    return approval.on_issue(issue(remarks=remarks), ASKED, authorised, **more)


@pytest.mark.attack(11)
def test_an_edit_by_somebody_without_a_say_makes_every_older_yes_void():
    yes = remark("/ralph approve", at=LATER)
    assert opinion(yes).state == "approved"
    assert opinion(yes, edited_at=LATER + timedelta(minutes=1)).rules == ("approval-content",)


@pytest.mark.attack(11)
def test_a_yes_that_names_another_text_is_none_to_this_one():
    assert opinion(remark(f"/ralph approve {ASKED.proposal_hash}", at=LATER)).state == "approved"
    assert opinion(remark("/ralph approve 00000000", at=LATER)).rules == ("approval-content",)


@pytest.mark.attack(14)
def test_a_command_of_a_bot_is_no_command_whatever_its_id():
    assert opinion(remark("/ralph approve", by=BOT, at=LATER), authorised=frozenset({BOT.id})).state == "none"


@pytest.mark.parametrize(
    ("person", "owners", "writes", "may"),
    [
        (MARA, (), True, True),
        (MARA, ("Mara",), True, True),
        pytest.param(MARA, ("eve",), True, False, marks=pytest.mark.attack(12)),
        pytest.param(MARA, (), False, False, marks=pytest.mark.attack(12)),
        pytest.param(replace(MARA, is_bot=True), (), True, False, marks=pytest.mark.attack(14)),
    ],
)
def test_owners_with_write_access_decide_and_no_bot(person, owners, writes, may):
    assert approval.may_decide(person, owners, lambda _: writes) is may


@pytest.mark.attack(14)
def test_nobody_asks_the_forge_what_a_bot_may_do():
    assert approval.voices(issue(remarks=(remark("/ralph approve", by=BOT),)), pull(reviews=(review(by=BOT),))) == set()


@pytest.mark.attack(53)
def test_a_dismissal_takes_the_verdict_away():
    reviews = (review(), review("dismissed", at=LATER))
    assert approval.on_pull(pull(reviews=reviews), mission(), frozenset({MARA.id})).state == "none"


@pytest.mark.parametrize(
    ("there", "rule"),
    [
        (pull(reviews=(review(),)), ""),
        pytest.param(pull(reviews=(review(),), head_sha="d" * 40), "approval-head", marks=MOVED),
        pytest.param(pull(reviews=(review(),), base="release"), "approval-content", marks=VOID),
        pytest.param(pull(reviews=()), "approval-author", marks=VOID),
        pytest.param(pull(reviews=(review(), OBJECTION)), "approval-author", marks=VOID),
        pytest.param(pull(reviews=(review(sha="d" * 40),)), "approval-head", marks=MOVED),
        pytest.param(pull(reviews=(review(by=OUTSIDER),)), "approval-author", marks=VOID),
    ],
)
def test_a_merge_is_looked_at_once_more(there, rule):
    assert approval.merge_objection(there, MERGE, lambda person: person != OUTSIDER) == rule


@pytest.mark.attack(53)
def test_an_approver_who_may_not_decide_any_more_approves_nothing():
    assert approval.merge_objection(pull(reviews=(review(),)), MERGE, lambda _: False) == "approval-author"


@pytest.mark.attack(17)
def test_a_label_that_only_we_gave_back_is_the_wish_of_whoever_had_set_it():
    by = [labelled("x"), labelled("x", added=False, at=LATER), labelled("x", BOT, LATER + timedelta(minutes=1))]
    assert approval.whose_wish(issue(events=tuple(by), labels=frozenset({"x"})), "x", BOT.id) is None
    assert approval.whose_wish(issue(events=(by[0], by[2]), labels=frozenset({"x"})), "x", BOT.id) == MARA


@pytest.mark.attack(11)
def test_an_edit_by_somebody_without_a_say_is_noticed():
    edits = (Edit(OUTSIDER, LATER),)
    assert approval.altered(edits, {MARA.id}, NOW) == OUTSIDER
    assert approval.altered(edits, {OUTSIDER.id}, NOW) is None
    assert approval.altered(edits, {MARA.id}, LATER + timedelta(minutes=1)) is None


@pytest.mark.attack(11)
def test_a_remark_that_was_changed_since_says_nothing_for_certain():
    changed = replace(remark("yes"), updated_at=LATER)
    assert approval.unaltered(remark("yes"), NOW)
    assert approval.unaltered(changed, None)
    assert not approval.unaltered(changed, LATER)


def test_what_one_rule_holds_and_another_denies_is_denied():
    decision = judge(fix(), bench(spent=Spent(active=3), paused=True))
    assert {"mission-cap", "paused"} <= set(decision.rules)
    assert decision.verdict is Verdict.DENY


# --- what memory names ---------------------------------------------------------------


def foreign(there=None, carried=None, authorised=frozenset()):
    return belonging.why_foreign(mission(), there, carried, BOT.id, authorised)


def signed(**more):
    return marker("0123456789abcdef", **belonging.facts_of(mission()), **more)


def test_what_bears_our_marker_and_our_account_belongs_to_the_mission():
    assert foreign(issue(body=signed()), pull(body=signed())) == ""


@pytest.mark.parametrize(
    "carried",
    [
        pull(body=signed(), author=MARA),
        pull(body=signed(), head="ralph/another"),
        pull(body="no marker"),
        pull(body=marker("0123456789abcdef", mission="2", kind="spelling", finding="f1")),
    ],
    ids=["another account", "another branch", "no marker", "another mission"],
)
def test_a_pull_that_only_memory_says_is_ours_is_foreign(carried):
    assert foreign(issue(body=signed()), carried) == "pull #4 does not belong to this mission"


@pytest.mark.attack(17)
def test_an_issue_that_nobody_with_a_say_labelled_is_foreign():
    wish = {"events": (labelled("ralph:mission", OUTSIDER),), "labels": frozenset({"ralph:mission"})}
    assert foreign(issue(author=MARA)) == "issue #3 does not belong to this mission"
    assert foreign(issue(author=MARA, **wish), authorised=frozenset({MARA.id}))
    assert foreign(issue(author=MARA, **wish), authorised=frozenset({OUTSIDER.id})) == ""


def test_a_list_of_somebody_else_is_no_list_of_ours():
    listed = marker(LIST.key)
    assert belonging.is_list(issue(body=listed), monitor_key("spelling"), BOT.id)
    assert not belonging.is_list(issue(body=listed, author=MARA), monitor_key("spelling"), BOT.id)


def test_a_remark_of_somebody_else_is_not_taken_for_our_standing_one():
    standing = marker(key_of(mission().key, "comment", "standing"))

    def remembered(who):
        return belonging.own_remark(mission(comment=0), {}, issue(remarks=(remark(standing, who),)), BOT.id)

    assert (remembered(BOT), remembered(MARA)) == (11, 0)


@pytest.mark.attack(12)
def test_a_label_that_says_published_counts_from_us_alone():
    waits = mission(action=Action.PUBLISH, status=Status.DISCOVERED, pull=0)

    def event(who):
        there = issue(events=(labelled(lifecycle.PUBLISHED, who),), labels=frozenset({lifecycle.PUBLISHED}))
        return lifecycle.read(waits, lifecycle.Facts(there, None, frozenset({MARA.id}), us=BOT.id), NOW).event

    assert event(BOT) is lifecycle.Event.PUBLISHED
    assert event(MARA) is None


# --- a plan ---------------------------------------------------------------------------


def test_a_new_due_time_makes_older_wakes_void():
    header = Header("lineage", 1)
    assert schedule.plan_next(header, header.urgency, schedule.Rhythm(), NOW).generation == header.generation + 1


def test_a_call_that_was_refused_is_repeated_a_few_times_only():
    ours = pull(head="ralph/x")
    key = callings.call_key(ours)
    record = CallRecord(key, ours.number, ours.head_sha, callings.TRIES, NOW, refused=True)
    assert callings.uncalled([ours], {key: replace(record, tries=1)}) == (ours,)
    assert callings.uncalled([ours], {key: record}) == ()
