"""What of an agent's work may not be sent: told by rules and paths, and nothing secret gets any further."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from ralph_mission.mission.coder import results
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.lifecycle.table import interpret_facts
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult
from ralph_mission.mission.model.cycle import Interpretation, MissionEvent, MissionFacts, PersonVerdict, StepContext
from ralph_mission.mission.model.effects import Comment, Label, PushBranch
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.ledger import EffectRecord
from ralph_mission.mission.model.mission import Action, Status
from ralph_mission.mission.model.proposal import BudgetUsed
from ralph_mission.mission.policy import judge
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from tests.mission.build import BASE, DAY, HEAD, MARA, NOW, issue, labelled, mission, policy_context, pull, push, review

KNOWN = "tidal-harbour-4711"
AROUND = StepContext(5, NOW, ("mara",), "squash", {}, Branch("main", BASE))
FACTS = MissionFacts(issue(author=MARA), None, frozenset({MARA.id}), coder=True)


def change(content: bytes, path: str = "src/table.py") -> Patch:
    return Patch(BASE, (FileChange(path, "", REGULAR, None, content),))


def made(patch: Patch | None, **more: object) -> AgentResult:
    return replace(AgentResult(1, "made", "", patch, "It is there."), **more)


def failure(patch: Patch) -> str:
    started = mission(status=Status.EXECUTING, issue=3, pull=0)
    step = results.step_from_result(started, FACTS, results.redact_result(made(patch), (KNOWN,)), AROUND)
    assert step.proposal and step.proposal.after
    return str(step.proposal.after.progress.failure)


@pytest.mark.parametrize("unasked", [True, False])
def test_what_may_be_sent_is_a_persons_wish_unless_our_issue_says_that_nobody_was_asked(unasked):
    started = mission(status=Status.EXECUTING, issue=3, pull=0)
    step = results.step_from_result(started, replace(FACTS, unasked=unasked), made(change(b"x = 1\n")), AROUND)
    full = policy_context(spent=BudgetUsed(auto_pulls=1))
    assert step.proposal and judge(step.proposal, full).rules == (("auto-pr-cap",) if unasked else ())


def test_a_known_value_in_a_change_is_a_try_that_failed_and_the_rule_is_named():
    said = failure(change(f"KEY = '{KNOWN}'\n".encode()))
    assert said == "its change may not be sent: secret" and KNOWN not in said


def test_every_rule_that_refuses_for_good_is_named():
    said = failure(change(f"KEY = '{KNOWN}'\n".encode(), "../out.py"))
    assert said == "its change may not be sent: scope, secret"


def test_a_change_with_a_secret_is_kept_nowhere():
    secret = change(f"KEY = '{KNOWN}'\n".encode())
    for outcome in ("made", "goes on", "failed"):
        kept = results.redact_result(made(secret, outcome=outcome), (KNOWN,))
        assert kept.patch is None and kept.outcome == ("goes on" if outcome == "goes on" else "failed")
    clean = change(b"TABLE = 1\n")
    assert results.redact_result(made(clean), (KNOWN,)).patch == clean


def test_an_agent_s_words_are_redacted():
    said = made(None, words=f"I used {KNOWN}.", reason=f"stuck at {KNOWN}", learned=(f"the key is {KNOWN}",))
    kept = results.redact_result(said, (KNOWN,))
    assert KNOWN not in repr(kept) and "[redacted: known-value]" in kept.words


def test_what_a_coder_says_comes_through_without_secrets():
    class Loose:
        def work(self, job: AgentJob) -> AgentResult:
            return made(None, words=KNOWN)

        def tidy(self, missions: object) -> None:
            self.tidied = missions

    loose = Loose()
    discreet = results.RedactingCoder(loose, (KNOWN,))
    assert KNOWN not in discreet.work(AgentJob(1, "", BASE, "", 1.0)).words
    discreet.tidy([4])
    assert loose.tidied == [4]


@pytest.mark.attack(33)
def test_a_coder_is_told_no_value_that_we_know_whoever_wrote_it():
    class Curious:
        def work(self, job: AgentJob) -> AgentResult:
            self.told = repr(job)
            return made(None)

        def tidy(self, missions: object) -> None: ...

    curious = Curious()
    asked = AgentJob(1, f"Use {KNOWN}", BASE, f"It is {KNOWN}.", 1.0, guidance=(f"take {KNOWN}",), subject="subject")
    results.RedactingCoder(curious, (KNOWN,)).work(asked)
    assert KNOWN not in curious.told
    assert curious.told.count("[redacted: known-value]") == 3 and "'subject'" in curious.told


@pytest.mark.parametrize("content", [b"\x89PNG\0\0", "Gezeiten für Kähne\n".encode("latin-1")])
def test_a_file_that_is_no_text_is_named_and_not_counted_in_lines(content):
    patch = change(content, "docs/tide.png")
    said = results.explain_refusal(patch, inspect(patch))
    assert "`docs/tide.png` is not UTF-8 text" in said and "lines" not in said


def test_several_of_them_are_counted():
    patch = Patch(BASE, (*change(b"\0", "a.png").changes, *change(b"\0", "b.png").changes))
    assert "`a.png` and 1 more is not UTF-8 text" in results.explain_refusal(patch, ())


def test_a_change_that_is_too_long_says_how_long():
    patch = change(b"x = 1\n" * 2_001)
    assert "2,001 changed lines are more than can be shown whole (2,000)" in results.explain_refusal(patch, ())
    assert "too long to be shown" in results.explain_refusal(change(b"x = '" + b"y" * 300_000 + b"'\n"), ())
    assert results.explain_refusal(change(b"x = 1\n"), ()) == ""


def test_an_escalation_names_the_rules_that_refused_what_was_to_be_sent():
    stuck = mission(status=Status.EXECUTING, issue=3, pull=0, stalled_cycles=3, refused=("secret", "scope"))
    reading = interpret_facts(stuck, FACTS, NOW)
    assert reading.event is MissionEvent.STUCK
    needs = "a text or patch without the secret and a patch inside what was proposed"
    assert reading.words == f"3 cycles without progress: what was to be sent needs {needs}"


def test_an_answer_that_did_not_get_through_leaves_earlier_reviews_answered():
    fixing = mission(status=Status.FIXING, rounds=2, answered_at=NOW, answered_before=NOW - DAY, pending=("k",))
    after = results.retry_answer(fixing).mission
    assert (after.review.answered_at, after.review.rounds, after.pending) == (NOW - DAY, 1, ())


def test_the_review_that_is_being_answered_knows_what_was_answered_before():

    reviewed = mission(status=Status.IN_REVIEW, rounds=1, answered_at=NOW - DAY)
    facts = replace(FACTS, pull=pull())
    (found,) = next_step(
        reviewed, facts, Interpretation(MissionEvent.CHANGES_REQUESTED, PersonVerdict("changes", MARA)), AROUND
    )
    assert found.proposal and found.proposal.after and found.proposal.after.review.answered_before == NOW - DAY


# --- an answer to a review that a person has to approve ---


PUSH = replace(push(change(b"x = 1\n")), onto=HEAD)
FIXING = mission(status=Status.FIXING, rounds=1)
ANSWERING = replace(FACTS, pull=pull(reviews=(review("changes_requested"),)))


def kept(*effects: PushBranch, of: int = 1) -> StepContext:
    records = {e.key: EffectRecord(e.key, "m1", Action.ANSWER, "spelling", "planned", e, 4, NOW, of) for e in effects}
    return replace(AROUND, records=records)


def shown(*changes: PushBranch, labels: tuple[str, ...] = (), at: datetime = NOW) -> MissionFacts:
    thread = issue(author=MARA, labels=labels, events=(labelled("ralph:approved", at=NOW + DAY),))
    return replace(ANSWERING, issue=thread, offered=frozenset(map(ownership.change_digest, changes)), offered_at=at)


def test_an_answer_beyond_the_limits_is_shown_and_an_earlier_approval_is_taken_away():
    facts = replace(ANSWERING, issue=issue(author=MARA, labels=("ralph:approved",)))
    step = results.offer_answer(FIXING, facts, made(change(b"x = 1\n"), answered_at=NOW), PUSH, ("size",), AROUND)
    label, comment, *_ = step.proposal.effects
    assert isinstance(label, Label) and label.remove == ("ralph:approved",)
    assert isinstance(comment, Comment) and f"`{ownership.change_digest(PUSH)}`" in comment.body
    assert step.proposal.planned == (PUSH,) and step.proposal.approver == ""
    after = step.proposal.after
    assert (after.status, after.pending, after.review.rounds) == (Status.IN_REVIEW, (PUSH.key,), 2)
    assert after.review.offered_until == NOW


def test_an_approved_answer_is_pushed_as_it_was_shown():
    offer = mission(pending=(PUSH.key,), offered_until=NOW)
    step = results.push_offer(offer, shown(PUSH), kept(PUSH), "mara")
    assert PUSH in step.proposal.effects and step.proposal.approved and step.proposal.approver == "mara"
    after = step.proposal.after
    assert (after.review.answered_at, after.review.offered_until, after.pending) == (NOW, None, ())


ELSEWHERE = replace(PUSH, branch="main")
STRANGE = {
    "another change was shown": (shown(replace(PUSH, message="Another")), kept(PUSH), HEAD),
    "the branch moved on": (shown(PUSH), kept(PUSH), "d" * 40),
    "nothing is kept": (shown(PUSH), kept(), HEAD),
    "what is kept is another mission's": (shown(PUSH), kept(PUSH, of=2), HEAD),
    "what is kept is for another branch": (shown(ELSEWHERE), kept(ELSEWHERE), HEAD),
}


@pytest.mark.parametrize("case", STRANGE)
def test_an_answer_that_is_not_what_was_shown_has_nobodys_approval(case):
    facts, context, head = STRANGE[case]
    offer = mission(pending=(PUSH.key,), offered_until=NOW, head_sha=head)
    step = results.push_offer(offer, facts, context, "mara")
    assert not step.proposal.approved and step.proposal.approver == ""
    assert "approval-content" in judge(step.proposal, policy_context()).rules
    assert results.resume_offer(offer, facts, context) is None


def test_a_push_that_failed_is_tried_again_as_long_as_the_approval_stands():
    offer = mission(pending=(PUSH.key,), offered_until=NOW)
    approved = shown(PUSH, labels=("ralph:approved",))
    again = results.resume_offer(offer, approved, kept(PUSH))
    assert again is not None and PUSH in again.proposal.effects and again.proposal.approver == "mara"
    later = replace(approved, pull=pull(reviews=(review("changes_requested", at=NOW + DAY),)))
    moved = replace(approved, pull=pull(head_sha="d" * 40))
    outdated = replace(approved, offered_at=NOW + 2 * DAY)
    for facts in (later, moved, outdated, shown(PUSH), replace(approved, pull=None)):
        assert results.resume_offer(offer, facts, kept(PUSH)) is None


def test_an_offer_that_is_void_has_nothing_to_approve():
    after = results.void_offer(mission(pending=("k",), offered_until=NOW))
    assert (after.pending, after.review.offered_until) == ((), None)
    assert results.void_offer(FIXING) == FIXING
