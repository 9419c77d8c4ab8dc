"""The table, and the reading of facts as its events."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.lifecycle import approval, steps, table
from ralph_mission.mission.lifecycle.approval import content_hash
from ralph_mission.mission.lifecycle.table import TRANSITIONS, advance, allows, interpret_facts
from ralph_mission.mission.model.cycle import Interpretation, MissionEvent, MissionFacts, StepContext
from ralph_mission.mission.model.effects import CloseIssue, Comment
from ralph_mission.mission.model.forge import Actor, Branch, FailedJob
from ralph_mission.mission.model.ledger import ChatYes
from ralph_mission.mission.model.mission import Action, FailureReason, Status, update_mission
from tests.mission import build
from tests.mission.build import BOT, DAY, HEAD, MARA, NOW, OUTSIDER, issue, labelled, mission, pull, remark, review

MARAS = frozenset({MARA.id})
AROUND = StepContext(5, NOW, ("mara",), "squash", {}, Branch("main", HEAD))


def facts(**changes):
    return MissionFacts(changes.pop("issue", issue()), changes.pop("pull", pull()), changes.pop("authorised", MARAS))


@given(st.lists(st.sampled_from(MissionEvent), max_size=30))
def test_lifecycle_never_leaves_its_table(events):
    current = mission(status=Status.DISCOVERED)
    for event in events:
        if allows(current, event):
            before = current.status
            current = advance(current, event, NOW)
            assert current.status is TRANSITIONS[before, event]
        else:
            with pytest.raises(ValueError, match="cannot be"):
                advance(current, event, NOW)


@pytest.mark.parametrize("status", [Status.DISCOVERED, Status.PLANNED, Status.ESCALATED, Status.PARKED])
def test_what_is_no_longer_found_ends_a_mission_without_a_change_and_teaches_nothing(status):
    known = replace(facts(pull=None), solved=True)
    waits = mission(status=status, pull=0, action=Action.OPEN_PROPOSAL)
    reading = interpret_facts(waits, known, NOW)
    assert reading.event is MissionEvent.SOLVED
    ((step),) = steps.next_step(waits, known, reading, AROUND)
    done = step.proposal.after
    by_a_person = status in (Status.PLANNED, Status.ESCALATED)
    assert (done.status, done.outcome) == (
        Status.COMPLETED, "done by a person" if by_a_person else "gone by itself"
    )  # fmt: skip  # one value
    assert [type(effect) for effect in step.proposal.effects] == [Comment, CloseIssue]
    assert step.lesson is None


ON_GITHUB = {"usual_reason": "completed"}


@pytest.mark.parametrize(
    ("reason", "status", "seen", "event", "lesson"),
    [
        ("not_planned", Status.DISCOVERED, {"solved": True}, MissionEvent.REFUSED, "rejected"),
        ("completed", Status.DISCOVERED, {"solved": True}, MissionEvent.DONE, "accepted"),
        ("", Status.DISCOVERED, {"solved": True}, MissionEvent.DONE, "accepted"),
        ("", Status.DISCOVERED, {"present": True}, MissionEvent.REFUSED, "rejected"),
        ("completed", Status.DISCOVERED, {"present": True, "certain": True}, MissionEvent.DONE, "accepted"),  # picked
        (
            "completed",
            Status.DISCOVERED,
            {"present": True, "usual_reason": "completed"},
            MissionEvent.REFUSED,
            "rejected",
        ),
        ("completed", Status.DISCOVERED, {"certain": True} | ON_GITHUB, MissionEvent.DONE, None),
        ("completed", Status.DISCOVERED, {}, MissionEvent.DONE, "accepted"),  # a brief, an alert, a build
        ("completed", Status.PLANNED, {"present": True}, MissionEvent.DONE, "accepted"),  # after a yes
        ("", Status.PLANNED, {"present": True}, MissionEvent.REFUSED, "rejected"),
    ],
)
def test_what_closing_an_issue_means_depends_on_what_is_found_then(reason, status, seen, event, lesson):
    closed = replace(facts(issue=issue(state="closed", state_reason=reason, closed_by=MARA), pull=None), **seen)
    asked = mission(status=status, pull=0, action=Action.OPEN_PROPOSAL)
    reading = interpret_facts(asked, closed, NOW)
    assert reading.event is event
    ((step),) = steps.next_step(asked, closed, reading, AROUND)
    assert (step.lesson.verdict if step.lesson else None) == lesson


def test_a_change_that_waits_for_its_review_is_peoples_to_close():
    assert interpret_facts(mission(), replace(facts(), solved=True), NOW).event is None


def test_what_only_a_person_can_do_is_never_stuck_and_is_parked_after_two_weeks():
    planned = mission(status=Status.PLANNED, pull=0, action=Action.OPEN_PROPOSAL)
    alone = facts(pull=None)
    for _ in range(5):
        (step,) = steps.next_step(planned, alone, interpret_facts(planned, alone, NOW), AROUND)
        planned = step.mission
    assert (planned.status, planned.progress.stalled_cycles) == (Status.PLANNED, 0)
    assert interpret_facts(planned, alone, NOW + 14 * DAY).event is MissionEvent.UNANSWERED
    assert interpret_facts(planned, replace(alone, coder=True), NOW + 14 * DAY).event is None


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.REJECTED])
@pytest.mark.parametrize("event", MissionEvent)
def test_an_ended_mission_never_moves_again(status, event):
    assert not allows(mission(status=status), event)


@pytest.mark.parametrize("status", [status for status in Status if status.active])
def test_a_no_ends_a_mission_from_every_active_state(status):
    assert advance(mission(status=status), MissionEvent.REFUSED, NOW).status is Status.REJECTED


def test_an_approval_at_the_head_makes_it_mergeable():
    assert interpret_facts(mission(), facts(pull=pull(reviews=(review(),))), NOW).event is MissionEvent.MERGEABLE


def test_an_approval_of_an_older_head_is_refused_with_its_rule():
    reading = interpret_facts(mission(), facts(pull=pull(reviews=(review(sha="a" * 40),))), NOW)
    assert (reading.event, reading.verdict.rules) == (None, ("approval-head",))


@pytest.mark.attack(12)
def test_an_approval_by_an_outsider_is_refused_with_its_rule():
    reading = interpret_facts(mission(), facts(pull=pull(reviews=(review(by=OUTSIDER),))), NOW)
    assert reading.verdict.rules == ("approval-author",)


@pytest.mark.attack(53)
def test_a_dismissed_approval_counts_no_more():
    reviews = (review(), review("dismissed", at=NOW + DAY))
    assert interpret_facts(mission(), facts(pull=pull(reviews=reviews)), NOW).event is None


def test_a_request_for_changes_beats_an_approval_by_someone_else():
    ben = Actor(8, "ben")
    reviews = (review("changes_requested", by=ben, body="not like this"), review(at=NOW + DAY))
    reading = interpret_facts(mission(), facts(pull=pull(reviews=reviews), authorised=MARAS | {8}), NOW)
    assert (reading.event, reading.words) == (MissionEvent.CHANGES_REQUESTED, "not like this")


def test_a_pull_that_a_person_closed_is_a_no():
    closed = pull(state="closed", closed_by=MARA, remarks=(remark("we do not want this"),))
    reading = interpret_facts(mission(), facts(pull=closed), NOW)
    assert (reading.event, reading.words) == (MissionEvent.REFUSED, "we do not want this")


def test_a_pull_that_a_bot_closed_teaches_nothing():
    stale = Actor(40, "stale[bot]", is_bot=True)
    reading = interpret_facts(mission(), facts(pull=pull(state="closed", closed_by=stale)), NOW)
    assert reading.event is MissionEvent.UNANSWERED


def test_an_issue_closed_as_completed_before_any_approval_was_done_by_a_person():
    done = issue(state="closed", state_reason="completed", closed_by=MARA)
    proposal = mission(status=Status.DISCOVERED, pull=0)
    assert interpret_facts(proposal, facts(issue=done, pull=None), NOW).event is MissionEvent.DONE


def test_an_escalated_mission_with_the_same_review_is_quiet_until_its_patience_ends():
    asked = pull(reviews=(review("changes_requested"),))
    escalated = mission(status=Status.ESCALATED)
    assert interpret_facts(escalated, facts(pull=asked), NOW + 6 * DAY).event is None
    assert interpret_facts(escalated, facts(pull=asked), NOW + 7 * DAY).event is MissionEvent.UNANSWERED


@pytest.mark.parametrize("status", [Status.DISCOVERED, Status.IN_REVIEW])
def test_what_nobody_answers_for_14_days_is_unanswered(status):
    waiting = mission(status=status, waiting_since=NOW)
    quiet = facts(pull=pull() if status is Status.IN_REVIEW else None)
    assert interpret_facts(waiting, quiet, NOW + 14 * DAY - timedelta(seconds=1)).event is None
    assert interpret_facts(waiting, quiet, NOW + 14 * DAY).event is MissionEvent.UNANSWERED


def test_three_cycles_without_progress_are_stuck():
    planned = mission(status=Status.PLANNED, pull=0, stalled_cycles=3)
    assert interpret_facts(planned, facts(pull=None), NOW).event is MissionEvent.STUCK


def test_a_parked_mission_comes_back_when_a_person_sets_the_label_again():
    parked = mission(status=Status.PARKED, pull=0, changed_at=NOW)
    again = issue(events=(labelled("ralph:mission", at=NOW + DAY),), labels=frozenset({"ralph:mission"}))
    assert interpret_facts(parked, facts(issue=again, pull=None), NOW + DAY).event is MissionEvent.REVIVED


@pytest.mark.attack(17)
def test_a_parked_mission_does_not_come_back_by_an_outsiders_label():
    parked = mission(status=Status.PARKED, pull=0, changed_at=NOW)
    again = issue(events=(labelled("ralph:mission", by=OUTSIDER, at=NOW + DAY),))
    assert interpret_facts(parked, facts(issue=again, pull=None), NOW + DAY).event is None


class TestProposals:
    text = issue()
    asked = mission(
        status=Status.DISCOVERED, pull=0, proposal_at=NOW, proposal_hash=content_hash(text.title, text.body)
    )

    def reading(self, **changes):
        return interpret_facts(self.asked, facts(issue=issue(**changes), pull=None), NOW + DAY)

    def test_a_label_by_an_authorised_person_approves(self):
        label = labelled("ralph:approved", at=NOW + DAY)
        reading = self.reading(events=(label,), labels=frozenset({"ralph:approved"}))
        assert (reading.event, reading.verdict.actor) == (MissionEvent.APPROVED, MARA)

    @pytest.mark.attack(12)
    def test_an_outsider_approves_nothing(self):
        reading = self.reading(remarks=(remark("/ralph approve", by=OUTSIDER, at=NOW + DAY),))
        assert (reading.event, reading.verdict.rules) == (None, ("approval-author",))

    @pytest.mark.parametrize("status", [Status.ESCALATED, Status.PARKED])
    def test_a_yes_that_was_obeyed_before_the_mission_was_set_aside_does_not_bring_it_back(self, status):
        aside = replace(self.asked, status=status, changed_at=NOW + 2 * DAY)
        yes = labelled("ralph:approved", at=NOW + DAY)
        put = labelled("ralph:escalated", BOT, at=NOW + 2 * DAY + timedelta(minutes=1))
        old = issue(labels=frozenset({"ralph:approved"}), events=(yes, put))
        assert interpret_facts(aside, facts(issue=old, pull=None), NOW + 2 * DAY).event is None
        new = replace(old, remarks=(remark("/ralph approve", at=NOW + 3 * DAY),))
        assert interpret_facts(aside, facts(issue=new, pull=None), NOW + 3 * DAY).event is MissionEvent.REVIVED

    def test_a_yes_that_comes_while_the_mission_is_set_aside_is_not_lost(self):
        aside = update_mission(self.asked, status=Status.ESCALATED, changed_at=NOW + DAY, seen_at=NOW)
        put = labelled("ralph:escalated", BOT, at=NOW + DAY + timedelta(minutes=2))
        yes = remark("/ralph approve", at=NOW + DAY + timedelta(minutes=1))
        now = issue(events=(put,), remarks=(yes,))
        assert interpret_facts(aside, facts(issue=now, pull=None), NOW + 2 * DAY).event is MissionEvent.REVIVED

    @pytest.mark.parametrize("skew", [-2 * DAY, 2 * DAY], ids=["behind", "ahead"])
    @pytest.mark.parametrize("got_there", [True, False], ids=["labelled", "label lost"])
    def test_a_wrong_clock_neither_obeys_a_yes_again_nor_loses_one(self, skew, got_there):
        day_later, ours = NOW + DAY, NOW + DAY + skew
        yes = labelled("ralph:approved", at=NOW + timedelta(hours=1))
        tried = replace(self.asked, status=Status.EXECUTING)
        given_ = replace(facts(issue=issue(events=(yes,)), pull=None), seen_at=yes.at)
        stuck, around = Interpretation(MissionEvent.STUCK, words="no progress"), replace(AROUND, now=ours)
        aside = steps.escalate_stuck(tried, given_, stuck, around).proposal.after
        put = (labelled("ralph:escalated", BOT, at=day_later + timedelta(minutes=2)),) if got_there else ()
        old = issue(labels=frozenset({"ralph:approved"}), events=(yes, *put))
        assert interpret_facts(aside, facts(issue=old, pull=None), ours).event is None
        again = replace(old, remarks=(remark("/ralph approve", at=day_later + timedelta(minutes=1)),))
        assert interpret_facts(aside, facts(issue=again, pull=None), ours).event is MissionEvent.REVIVED
        wish = labelled("ralph:mission", at=day_later + timedelta(hours=1))
        wanted = replace(old, events=(*old.events, wish))
        assert interpret_facts(aside, facts(issue=wanted, pull=None), ours).event is MissionEvent.REVIVED

    @pytest.mark.parametrize("ahead", [-DAY / 4, DAY], ids=["behind", "ahead"])
    def test_a_chat_whose_clock_is_another_one_neither_hides_a_yes_nor_has_one_obeyed_again(self, ahead):
        said = ChatYes(self.asked.issue, self.asked.question.proposal_hash, 7, NOW + DAY / 2 + ahead)
        known = replace(facts(issue=issue(), pull=None), yes=(said,), seen_at=NOW + DAY / 3, heard_at=said.at)
        tried, around = replace(self.asked, status=Status.EXECUTING), replace(AROUND, now=NOW + DAY / 2)
        aside = steps.escalate_stuck(
            tried, known, Interpretation(MissionEvent.STUCK, words="no progress"), around
        ).proposal.after
        assert interpret_facts(aside, known, NOW + DAY).event is None
        label = labelled("ralph:approved", at=NOW + DAY / 2 + timedelta(hours=1))
        on_forge = issue(labels=frozenset({"ralph:approved"}), events=(label,))
        assert interpret_facts(aside, replace(known, issue=on_forge), NOW + DAY).event is MissionEvent.REVIVED
        again = replace(said, at=said.at + timedelta(minutes=1))
        assert interpret_facts(aside, replace(known, yes=(said, again)), NOW + DAY).event is MissionEvent.REVIVED

    def aside(self, facts, **changes):
        """Parked after two weeks, in which a comment on the issue was the last that anybody did."""
        unanswered = Interpretation(MissionEvent.UNANSWERED, words="no answer for 14 days")
        around = replace(AROUND, now=NOW + 14 * DAY)
        return steps.park(update_mission(self.asked, **changes), facts, unanswered, around).proposal.after

    @pytest.mark.parametrize("at", [NOW + DAY, NOW + 15 * DAY], ids=["before the comment", "after it"])
    def test_a_yes_in_a_chat_that_came_while_the_mission_was_parked_is_not_lost(self, at):
        known = replace(facts(issue=issue(), pull=None), seen_at=NOW + 2 * DAY)
        said = ChatYes(self.asked.issue, self.asked.question.proposal_hash, 7, at)
        reading = interpret_facts(self.aside(known), replace(known, yes=(said,), heard_at=at), NOW + 15 * DAY)
        assert (reading.event, reading.verdict.state) == (MissionEvent.REVIVED, "approved")

    @pytest.mark.attack(11)
    @pytest.mark.parametrize(
        "changes", [{"at": NOW}, {"at": NOW - DAY}, {"hash": "0" * 8}], ids=["with our line", "before it", "other text"]
    )
    def test_a_yes_in_a_chat_that_does_not_count_brings_no_mission_back(self, changes):
        obeyed = labelled("ralph:approved", at=NOW + DAY)
        old = issue(labels=frozenset({"ralph:approved"}), events=(obeyed,))
        known = replace(facts(issue=old, pull=None), seen_at=NOW + 2 * DAY)
        said = ChatYes(self.asked.issue, self.asked.question.proposal_hash, 7, NOW + DAY)
        void = replace(said, **changes)
        assert interpret_facts(self.aside(known), replace(known, yes=(void,)), NOW + 15 * DAY).event is None
        assert (
            interpret_facts(self.aside(known), replace(known, yes=(void, said)), NOW + 15 * DAY).event
            is MissionEvent.REVIVED
        )

    @pytest.mark.attack(11)
    def test_a_yes_in_a_chat_that_was_obeyed_is_no_news_however_often_the_mission_is_set_aside(self):
        said = ChatYes(self.asked.issue, self.asked.question.proposal_hash, 7, NOW + DAY)
        quiet = replace(facts(issue=issue(), pull=None), seen_at=NOW + 2 * DAY)
        proven = replace(quiet, yes=(said,), heard_at=said.at)
        unproven = replace(quiet, heard_at=said.at)
        for now_known in (proven, unproven):
            aside = self.aside(now_known)
            assert interpret_facts(aside, proven, NOW + 15 * DAY).event is None
            again = self.aside(quiet, status=Status.ESCALATED, heard_at=aside.question.heard_at)
            assert interpret_facts(again, proven, NOW + 15 * DAY).event is None


def test_what_only_a_person_can_lift_is_stuck_at_once():
    refused = mission(
        status=Status.EXECUTING,
        pull=0,
        failure="Settings, Actions",
        failure_reason=FailureReason.NEEDS_PERSON,
        failures=1,
    )
    reading = interpret_facts(refused, facts(pull=None), NOW)
    assert (reading.event, reading.words) == (MissionEvent.STUCK, "Settings, Actions")
    tried = update_mission(refused, failure="the server was busy", failure_reason=None)
    assert interpret_facts(tried, facts(pull=None), NOW).event is None


def test_an_approved_pull_behind_its_base_is_brought_up_to_date_first():
    approved = facts(pull=pull(reviews=(review(),)))
    behind = mission(failure="main moved on", failure_reason=FailureReason.BEHIND, failures=1)
    assert interpret_facts(behind, approved, NOW).event is MissionEvent.BEHIND
    behind = mission(failure="main moved on", failure_reason=FailureReason.BEHIND, failures=3)
    assert interpret_facts(behind, approved, NOW).event is MissionEvent.STUCK


class TestAnAnswerOnOffer:
    """Shown at `NOW`, in answer to the review of an hour before."""

    asked = review("changes_requested", at=NOW - timedelta(hours=1))
    yes = remark("/ralph approve", at=NOW + timedelta(hours=1))

    def read(self, *reviews, said=(yes,), authorised=MARAS, head=HEAD, **changes):
        waiting = mission(offered_until=self.asked.at, **changes)
        told = MissionFacts(issue(remarks=said), pull(reviews=(self.asked, *reviews), head_sha=head), authorised,
                     offered=frozenset({"0" * 16}), offered_at=NOW)  # fmt: skip  # one value
        return interpret_facts(waiting, told, NOW + timedelta(hours=2))

    def test_waits_without_a_yes(self):
        assert self.read(said=()).event is None

    def test_is_released_by_a_yes(self):
        assert self.read().event is MissionEvent.APPROVED

    def test_is_not_released_by_an_outsider(self):
        found = self.read(authorised=frozenset(), said=(remark("/ralph approve", by=OUTSIDER, at=self.yes.created_at),))
        assert (found.event, found.verdict.rules) == (None, ("approval-author",))

    def test_is_not_released_by_an_older_yes(self):
        assert self.read(said=(remark("/ralph approve", at=NOW - timedelta(minutes=1)),)).event is None

    def test_is_void_once_somebody_asked_for_more(self):
        later = review("changes_requested", at=NOW + timedelta(minutes=1))
        assert self.read(later).event is MissionEvent.CHANGES_REQUESTED

    def test_is_void_once_somebody_pushed(self):
        assert self.read(head="e" * 40).event is MissionEvent.STUCK

    def test_that_nobody_answered_in_time_comes_back_with_a_yes(self):
        assert self.read(status=Status.PARKED).event is MissionEvent.PULL_OPENED


@pytest.mark.attack(12)
def test_a_label_that_says_published_counts_from_us_alone():
    waits = mission(action=Action.PUBLISH, status=Status.DISCOVERED, pull=0)

    def event(who):
        there = issue(events=(labelled(table.PUBLISHED, who),), labels=frozenset({table.PUBLISHED}))
        return table.interpret_facts(waits, MissionFacts(there, None, frozenset({MARA.id}), us=BOT.id), NOW).event

    assert event(BOT) is MissionEvent.PUBLISHED
    assert event(MARA) is None


LATER = build.NOW + timedelta(days=9)


def test_a_yes_that_no_network_took_does_not_bring_a_text_back():
    waits = build.mission(action=Action.PUBLISH, status=Status.ESCALATED, pull=0, changed_at=build.NOW)
    yes = {"events": (labelled(approval.APPROVED, at=LATER),), "labels": frozenset({approval.APPROVED})}
    there = build.issue(**yes)
    facts = MissionFacts(there, None, frozenset({build.MARA.id}))
    waits = approval.about(waits, there.title, there.body)
    assert table.interpret_facts(waits, facts, build.NOW).event is None
    assert (
        table.interpret_facts(replace(waits, action=Action.OPEN_PROPOSAL), facts, build.NOW).event
        is MissionEvent.REVIVED
    )


def test_failed_checks_are_heard_of_once_and_after_people():
    red = (FailedJob("test", "Run pytest", ""),)
    assert interpret_facts(mission(), facts(pull=pull(failed=red)), NOW).event is MissionEvent.CHECKS_FAILED
    changes = (review("changes_requested"),)
    found = interpret_facts(mission(), facts(pull=pull(failed=red, reviews=changes)), NOW)
    assert found.event is MissionEvent.CHANGES_REQUESTED
    approved = facts(pull=pull(failed=red, reviews=(review(),)))
    assert interpret_facts(mission(), approved, NOW).event is MissionEvent.MERGEABLE  # perhaps no check is required
    assert interpret_facts(mission(failure="not green"), approved, NOW).event is MissionEvent.CHECKS_FAILED
