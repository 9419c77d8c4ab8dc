"""What is said afterwards: every fact once, who is waited for, and the very words to type next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ralph_mission.mission.conclude import Conclusion
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision
from ralph_mission.mission.model.cycle import (
    CycleDecisions,
    CycleReport,
    CycleSettings,
    CycleSummary,
    ForgeSnapshot,
    Situation,
)
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.ledger import FindingRecord, HeldFix, MemorySnapshot, OpenState
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.model.mission import Action, Observation, Status, Urgency, Verdict
from ralph_mission.mission.model.proposal import Decision, Plan, RankedFinding
from ralph_mission.mission.report import LATE, report_cycle, report_skipped
from tests.mission.build import BASE, BOT, NOW, ask, comment, finding, fix, mission, writing

LATER = NOW + timedelta(minutes=1)
SITUATION = Situation(
    7,
    "c7",
    NOW,
    CycleSettings(),
    Memory(Header()),
    OpenState(),
    ForgeSnapshot(BOT.id, Branch("main", BASE), ("main",), (), (), ()),
)


def how(effect: str, number: int) -> str:
    return f"{effect} {number}"


def make_report(
    acts: tuple[ExecutedDecision, ...] = (),
    decisions: tuple[Decision, ...] = (),
    header: Header | None = None,
    missions: Any = (),
    ended: Any = (),
    findings: Any = (),
    settled: tuple[AppliedEffect, ...] = (),
    **situation: Any,
) -> tuple[CycleReport, CycleSummary]:
    conclusion = Conclusion(missions, ended, (), (), {}, (), (), header or Header())
    decided = CycleDecisions((), decisions)
    return report_cycle(
        replace(SITUATION, findings=findings, **situation), decided, acts, conclusion, settled, "cli", False, LATER, how
    )


def act(status: Any, proposal: Any = None, **changes: Any) -> ExecutedDecision:
    sent = comment("hello")
    proposal = proposal or writing(sent)
    effect = AppliedEffect(sent, Receipt(sent.key, status, detail="the forge said why"))
    return replace(ExecutedDecision(Decision(proposal, Verdict.ALLOW), (effect,)), **changes)


# --- for machines ---


def test_a_report_says_how_each_observer_fared():
    report, _ = make_report(observations=(Observation("code", "ok", (finding().signal,), 0.12345, "fine"),))
    (line,) = report.observers
    assert (line.name, line.status, line.signals, line.seconds, line.detail) == ("code", "ok", 1, 0.123, "fine")


def test_a_finding_has_its_thoughts_score_and_whether_it_is_known():
    ranked, other, old = (finding(essence=(name,)) for name in ("a", "b", "c"))
    record = FindingRecord(old.fingerprint, old.kind, old.title, (old.signal.occurrence,), 1)
    plan = Plan((RankedFinding((ranked.fingerprint,), ranked.kind, 1.5, "why"),))
    report, _ = make_report(findings=(ranked, other, old), plan=plan, records={old.fingerprint: record})
    assert [(line.score, line.known) for line in report.findings] == [(1.5, False), (0.0, False), (0.0, True)]


def test_missions_that_go_on_and_that_ended_are_listed_without_numbers_that_do_not_exist():
    report, _ = make_report(missions=(mission(issue=0, pull=0),), ended=(mission(id=2, status=Status.COMPLETED),))
    assert [(m.id, m.issue, m.pull_request) for m in report.missions] == [(1, None, None), (2, 3, 4)]


def test_effects_are_those_of_this_cycle_after_those_a_dead_runner_left():
    left_over = AppliedEffect(comment("old", key="k0"), Receipt("k0", "adopted", url="issues/3"))
    report, _ = make_report(acts=(act("done"),), settled=(left_over,))
    shown = [(e.key, e.action, e.kind, e.status) for e in report.effects]
    assert shown == [("k0", "reconcile", "comment", "adopted"), ("k1", Action.ANSWER, "comment", "done")]


@pytest.mark.parametrize(("cut", "outcome"), [(False, "done"), (True, "paused")])
def test_a_cycle_that_the_switch_stopped_half_way_is_paused(cut: bool, outcome: str):
    report, cycle_summary = make_report(acts=(act("done", cut=cut),))
    assert report.outcome == outcome
    assert any("kill switch" in line for line in cycle_summary.remarks) is cut


# --- for people ---


def test_a_new_mission_is_told_with_its_reason_and_a_step_with_where_it_stands():
    step = writing(comment("x"), after=mission(status=Status.IN_REVIEW, last_action="opened #4"))
    _, cycle_summary = make_report(acts=(act("done", fix(why="number 1 of 9")), act("done", step)))
    assert cycle_summary.why == ("Correct 1 misspelling: number 1 of 9", "a title is in review: opened #4")


@pytest.mark.parametrize(
    ("changes", "why"),
    [({}, "could not comment: the forge said why"), ({"applied": (), "cut": True}, "stopped by the kill switch")],
)
def test_a_step_that_did_not_come_about_is_not_told_as_done(changes: dict[str, Any], why: str):
    merged = mission(status=Status.COMPLETED, last_action="approved by mara and merged")
    _, cycle_summary = make_report(acts=(act("failed", writing(comment("x"), after=merged), **changes),))
    assert cycle_summary.why == (f"a title is not completed yet: {why}",)


def test_what_is_held_says_what_it_waits_for_and_what_is_refused_says_what_it_needs():
    held = Decision(ask(), Verdict.HOLD, ("mission-cap", "mission-cap", "protected-path"))
    _, cycle_summary = make_report(
        decisions=(held, Decision(ask(), Verdict.DENY, ("mention",)), Decision(ask(), Verdict.ALLOW))
    )
    assert cycle_summary.held == (
        "bug p2: waits for a mission to end and a person's approval (mission-cap, mission-cap, protected-path)",
        "bug p2: refused, needs a text that notifies no one (mention)",
    )


@pytest.mark.parametrize(("seconds", "said"), [(LATE - 1, False), (LATE, True)])
def test_drift_is_worth_a_line_from_a_quarter_of_an_hour(seconds: int, said: bool):
    _, cycle_summary = make_report(header=Header(drift_seconds=seconds))
    assert ("this cycle started 15 minutes after it was due" in cycle_summary.remarks) is said


def test_what_went_wrong_is_never_left_out():
    memory, plan = Memory(Header(), do_not_repeat="- be nice\n"), Plan((), remark="no model")
    state = OpenState(held=(HeldFix("k", "Fix it", "`make test`: exit code 1"),))
    _, cycle_summary = make_report(acts=(act("failed"), act("unknown")), state=state, memory=memory, plan=plan)
    said = "\n".join((*cycle_summary.remarks, *cycle_summary.held))
    for part in (
        "could not comment: the forge said why",
        "in doubt whether it did comment: the forge said why",
        "`make test`: exit code 1",
        "not understood, so ignored: be nice",
        "ralph journal resolve k1 --sent|--not-sent",
        "no model",
    ):
        assert part in said


def test_an_effect_nobody_knows_the_fate_of_is_asked_about_once():
    _, cycle_summary = make_report(acts=(act("unknown"),), state=OpenState(unknown=("k1", "k0")))
    assert [line.split()[4] for line in cycle_summary.remarks if line.startswith("it is unknown whether")] == [
        "k1",
        "k0",
    ]


# --- a cycle that did not start ---


def test_a_cycle_that_is_not_due_says_when_it_is():
    header = Header(cycle=6, next_due_at=LATER, urgency=Urgency.MEDIUM)
    past = MemorySnapshot(Memory(header), OpenState(missions=(mission(),)), "a" * 40)
    report, cycle_summary = report_skipped("not_due", past, "cron", False, NOW, LATER)
    assert (report.outcome, report.cycle, report.urgency) == ("not_due", 6, Urgency.MEDIUM)
    assert (report.next_due_at, len(report.missions), report.effects) == (LATER, 1, ())
    assert cycle_summary.remarks == (
        "not due before 2026-05-04 12:01 UTC: nothing was done. To run it anyway: ralph cycle --force",
    )
    _, staged = report_skipped("not_due", past, "cli", True, NOW, LATER)
    assert staged.remarks[0].endswith(": ralph cycle --staged --force")


@pytest.mark.parametrize(
    ("outcome", "word"),
    [("not_due", "this cycle has run already"), ("paused", "ralph resume"), ("lost", "--take-over")],
)
def test_a_cycle_that_was_left_without_any_memory_says_why(outcome: Any, word: str):
    report, cycle_summary = report_skipped(outcome, None, "cli", True, NOW, LATER)
    assert (report.cycle, report.next_due_at, report.staged) == (0, None, True)
    assert word in cycle_summary.remarks[0]


def test_only_actions_that_were_done_count_as_taken():
    acts = tuple(act(status, fix()) for status in ("done", "adopted", "failed", "unknown", "staged"))
    assert make_report(acts=acts)[1].taken == 2
