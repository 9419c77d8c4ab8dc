"""What of an agent's work may not be sent: told by rules and paths, and nothing secret gets any further."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.coder import results
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.lifecycle.table import interpret_facts
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult
from ralph_mission.mission.model.cycle import Interpretation, MissionEvent, MissionFacts, PersonVerdict, StepContext
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Status
from ralph_mission.mission.model.proposal import BudgetUsed
from ralph_mission.mission.policy import judge
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from tests.mission.build import BASE, DAY, MARA, NOW, issue, mission, policy_context, pull

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
