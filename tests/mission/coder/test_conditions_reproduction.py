"""Of a bug that an issue reports, a change is sent once its test shows the bug; else its author is asked, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.coder import conditions, results, tasks
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.lifecycle.waiting import ANSWER_QUESTION
from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.cycle import QUIET, MissionFacts, MissionStep, StepContext
from ralph_mission.mission.model.effects import Comment
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import HUMAN, Limits, Status
from ralph_mission.mission.policy import judge
from ralph_mission.mission.proof.claim import Refusal, claim_of_patch, judge_text
from ralph_mission.mission.proof.judge import CaseResult, ProofVerdict
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from tests.mission.build import BASE, BOT, DAY, MARA, NOW, OUTSIDER, issue, mission, policy_context, remark

AROUND = StepContext(5, NOW, ("mara",), "squash", {}, Branch("main", BASE))
MEND = FileChange("app.py", REGULAR, REGULAR, b"def half(n):\n    return n // 2\n", b"def half(n):\n    return n / 2\n")
TEST = FileChange(
    "tests/test_b.py", "", REGULAR, None, b"from app import half\n\n\ndef test_b():\n    assert half(3)\n"
)
PATCH = Patch(BASE, (MEND, TEST))
MADE = AgentResult(1, "made", "", PATCH, "It is there.", sessions=1)
BUG = mission(kind=HUMAN, status=Status.EXECUTING, issue=3, pull=0)
CASE = CaseResult("tests/test_b.py::test_b", "tests/test_b.py", "failed", "AssertionError", "assert 1 == 1.5")
UNSEEN = replace(MADE, outcome="failed", reason="its test does not prove the bug: it passes", unseen=True)


def facts(*remarks, labels=("bug",), **changes) -> MissionFacts:
    named = issue(number=3, author=MARA, labels=frozenset({"ralph:mission", *labels}), remarks=tuple(remarks))
    return replace(MissionFacts(named, None, frozenset({MARA.id}), coder=True, us=BOT.id), **changes)


def find_questions(found: MissionStep) -> list[Comment]:
    key = conditions.question_key(BUG)
    assert found.proposal
    return [one for one in found.proposal.effects if isinstance(one, Comment) and one.key == key]


def question(at=NOW):
    return remark(conditions.question(BUG, issue(number=3), UNSEEN).body, BOT, at, 21)


@pytest.mark.parametrize(
    ("label", "is_bug"),
    [("bug", True), ("Bug", True), ("type: bug", True), ("kind/bug", True), ("bug-report", True), ("debug", False),
     ("not a bug", False), ("no-bug", False), ("enhancement", False),
     *((label, False) for label in ("non-bug", "not_a_bug", "wontfix-bug", "bug bounty", "cannot reproduce bug")),
     *((label, True) for label in ("type: defect", "regression", "crash", "Bug 🐛", "needs-bug-report"))],
)  # fmt: skip  # one table
def test_a_label_says_what_a_bug_is(label: str, is_bug: bool):
    assert conditions.is_bug(BUG, facts(labels=(label,)).issue) is is_bug


def test_what_ralph_found_itself_is_no_report_of_a_person():
    assert not conditions.is_bug(replace(BUG, kind="spelling"), facts().issue)


def test_an_agent_is_told_to_reproduce_a_bug_first_and_of_nothing_else():
    left = tasks.compute_budget(Limits(), 0.0, 0.0, 60.0)
    job = tasks.build_job(BUG, facts(), BASE, "", left)
    assert job.bug and conditions.TASK in job.task
    job = tasks.build_job(BUG, facts(labels=()), BASE, "", left)
    assert not job.bug and "Reproduce" not in job.task


def test_a_change_is_a_claim_about_the_code_that_it_changes_most():
    claim = claim_of_patch("half", PATCH)
    assert claim is not None and claim.guessed
    assert (claim.path, claim.test, claim.change) == ("app.py", (TEST,), (MEND,))
    assert claim_of_patch("x", Patch(BASE, (FileChange("README.md", REGULAR, REGULAR, b"a\n", b"b\n"),))) is None


@pytest.mark.parametrize(
    ("old", "new"), [(None, b"x = 1\n"), (b"x = 1\n", None), (b"", b"x = 1\n"), (b"a=1\n", b"a=2\n")]
)
def test_a_file_that_is_new_deleted_empty_or_short_is_code_as_any_other(old: bytes | None, new: bytes | None):
    change = FileChange("b.py", REGULAR if old is not None else "", REGULAR if new is not None else "", old, new)
    claim = claim_of_patch("x", Patch(BASE, (change, TEST)))
    assert claim is not None and claim.path == "b.py"
    assert judge_text(claim, {"b.py": old}.get) is None


def test_what_a_person_approves_before_it_goes_out_is_run_all_the_same():
    settings = FileChange("pyproject.toml", "", REGULAR, None, b"[project]\n")
    claim = claim_of_patch("half", Patch(BASE, (MEND, TEST, settings)))
    assert claim is not None and judge_text(claim, {"app.py": MEND.old}.get) is None


def test_a_change_of_tests_alone_does_not_pass_as_one_that_nobody_can_check():
    made = replace(MADE, patch=Patch(BASE, (TEST,)))
    assert conditions.settle(made, claim_of_patch("half", Patch(BASE, (TEST,))), "").outcome == "failed"


def test_a_change_that_is_held_for_approval_says_what_its_test_showed():
    settings = FileChange("pyproject.toml", "", REGULAR, None, b"[project]\n")
    made = replace(
        MADE,
        patch=Patch(BASE, (MEND, TEST, settings)),
        proof="Whether its test shows the bug could not be checked here",
    )
    step = results.step_from_result(BUG, facts(), made, AROUND)
    assert step.proposal and "Whether its test shows the bug could not be checked here" in next(
        effect.body for effect in step.proposal.effects if isinstance(effect, Comment)
    )


def settled(judged: ProofVerdict | str) -> AgentResult:
    return conditions.settle(MADE, claim_of_patch("half", PATCH), judged)


def test_what_the_runs_showed_stands_in_the_pull_request():
    kept = settled(ProofVerdict(None, (CASE,)))
    assert kept.outcome == "made" and "fails in 3 of 3 runs" in kept.proof
    step = results.step_from_result(BUG, facts(), kept, AROUND)
    assert "tests/test_b.py::test_b" in next(e.body for e in step.proposal.effects if hasattr(e, "head"))


RULES = [("no-test", True), ("passes-on-base", True), ("still-fails", False), ("wrong-reason", False)]


@pytest.mark.parametrize(("rule", "unseen"), [*RULES, ("weakens-tests", False)])
def test_a_change_whose_test_does_not_show_the_bug_is_not_sent(rule: str, unseen: bool):
    kept = settled(ProofVerdict(Refusal(rule, "it is so")))
    assert (kept.outcome, kept.unseen) == ("failed", unseen)
    assert "it is so" in kept.reason


@pytest.mark.parametrize("judged", ["bwrap is missing", ProofVerdict(Refusal("cannot-run", "bwrap is missing"))])
def test_where_nobody_can_look_the_change_goes_on_and_says_so(judged):
    kept = settled(judged)
    assert kept.outcome == "made" and "could not be checked here" in kept.proof and "bwrap is missing" in kept.proof


def test_without_a_reproduction_its_author_is_asked_and_nothing_is_sent():
    found = results.step_from_result(BUG, facts(), UNSEEN, AROUND)
    (said,) = find_questions(found)
    assert "how can this be reproduced?" in said.body and said.issue == 3
    assert {type(effect).__name__ for effect in found.proposal.effects} == {"Comment"}
    assert (found.proposal.after.status, found.proposal.after.progress.failures) == (Status.EXECUTING, 0)
    assert judge(found.proposal, policy_context()).rules == ()


def test_the_mission_waits_for_the_answer_and_loses_no_time_by_it():
    waiting = facts(question())
    assert not tasks.is_waiting(BUG, waiting)
    (found,) = next_step(BUG, waiting, QUIET, AROUND)
    assert found.proposal is None
    assert (found.mission.progress.stalled_cycles, found.mission.next_step) == (0, ANSWER_QUESTION)


@pytest.mark.parametrize(
    ("said", "by", "goes_on"),
    [("It is half(3).", MARA, True), ("/ralph guidance try 3", MARA, True), ("/ralph status", MARA, False),
     ("It is half(3).", OUTSIDER, False)],
)  # fmt: skip  # one table
def test_an_answer_counts_from_people_who_may_decide(said: str, by, goes_on: bool):
    assert tasks.is_waiting(BUG, facts(question(), remark(said, by, NOW + DAY, 22))) is goes_on


def test_words_from_before_the_question_are_no_answer():
    assert not tasks.is_waiting(BUG, facts(remark("Please.", MARA, NOW - DAY, 20), question()))


def test_taking_the_label_off_takes_the_question_back():
    assert tasks.is_waiting(BUG, facts(question(), labels=()))


def test_nobody_else_can_make_it_wait():
    forged = replace(question(), author=OUTSIDER)
    assert tasks.is_waiting(BUG, facts(forged))


@pytest.mark.parametrize("kept", [True, False])
def test_the_question_is_asked_once_in_a_missions_life(kept: bool):
    """Whether it still stands there or somebody deleted it: another try that shows nothing is a try that failed."""
    told = results.step_from_result(BUG, facts(), UNSEEN, AROUND).proposal.after
    before = replace(told, story=()) if kept else told
    there = facts(question(), remark("It is half(3).", MARA, NOW + DAY, 22)) if kept else facts()
    again = results.step_from_result(before, there, UNSEEN, AROUND)
    assert find_questions(again) == []
    assert again.proposal.after.progress.failures == 1
