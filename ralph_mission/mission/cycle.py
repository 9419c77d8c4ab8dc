"""One cycle, as a story: recall, check, observe, think, judge, act, reflect.

Everything between the I/O is a pure function over frozen values (`deciding`, `policy`,
`steps`, `concluding`). What touches the world goes through `Ports`. Nothing is done before
its intent stands on the memory branch, and memory only ever moves forward from what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import commit, execute, gather, observe, rank, report, verify
from ralph_mission.mission.chat import inbox
from ralph_mission.mission.coder import service
from ralph_mission.mission.coder.results import RedactingCoder
from ralph_mission.mission.conclude import Conclusion, conclude
from ralph_mission.mission.decide import decide
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision
from ralph_mission.mission.lifecycle.facts import facts_about
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.cycle import (
    CycleDecisions,
    CycleReport,
    CycleSettings,
    CycleSummary,
    Outcome,
    Situation,
    Trigger,
)
from ralph_mission.mission.model.effects import Effect, Publish, Receipt
from ralph_mission.mission.model.ledger import Claim, MemorySnapshot, Record
from ralph_mission.mission.model.mission import Verdict
from ralph_mission.mission.model.proposal import Decision
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.values import dataclass

FORGOTTEN = timedelta(hours=24)  # a cycle takes minutes, and a job of the workflow an hour at most

CycleResult = tuple[CycleReport, CycleSummary]


@dataclass(frozen=True, slots=True)
class CycleRequest:
    """How this cycle came about. `cycle_id` names one that may have run before; "" starts a new one."""

    trigger: Trigger = "cli"
    staged: bool = False
    force: bool = False
    cycle_id: str = ""


@dataclass(frozen=True, slots=True)
class CycleRun:
    """One run of the story: what it may touch, what the owners decided, what was asked, what must not leave."""

    ports: CyclePorts
    charter: CycleSettings
    request: CycleRequest
    secrets: tuple[str, ...]
    started: datetime


def run_cycle(
    ports: CyclePorts, charter: CycleSettings, request: CycleRequest, secrets: tuple[str, ...] = ()
) -> CycleResult:
    """Run one cycle, or leave quietly: not due, paused, or somebody else's.

    Raises UserError, before any effect, when memory or the forge cannot be trusted or reached.
    """
    run = CycleRun(ports, charter, request, secrets, ports.clock.now())
    with nullcontext(True) if request.staged else ports.store.exclusive() as ours:
        past = ports.store.recall() if ours else None
        try:
            past = _apply_chat_commands(run, past, ours)
            reason = _reason_to_leave(run, past, ours)
            if reason is None:
                return _cycle(run, past)
        except Lost:
            reason = "lost"
        return report.report_skipped(reason, past, request.trigger, request.staged, run.started, ports.clock.now())


def _apply_chat_commands(run: CycleRun, past: MemorySnapshot | None, ours: bool) -> MemorySnapshot | None:
    """Memory once the orders of owners are obeyed: a paused cycle hears them too, one that is not due asks nobody."""
    if past is None or run.ports.inbox is None or run.request.staged or run.ports.switch():
        return past
    if _reason_to_leave(run, _with_paused(past, False), ours) is not None:
        return past
    return inbox.apply_chat_commands(run.ports, past, run.charter.limits, run.secrets)


def _with_paused(past: MemorySnapshot, paused: bool) -> MemorySnapshot:
    """The same as if a person had said so."""
    return replace(past, memory=replace(past.memory, header=replace(past.memory.header, paused=paused)))


def _reason_to_leave(run: CycleRun, past: MemorySnapshot | None, ours: bool) -> Outcome | None:
    """Why this cycle does not start."""
    ports, request = run.ports, run.request
    claim = past.state.claim if past and not request.staged else None  # a staged cycle is in nobody's way
    if not ours or (claim and not ports.store.proven_dead(claim.holder)):
        _refuse_if_forgotten(claim, run.started)
        return "lost"
    if ports.switch() or (past and past.memory.header.paused):
        return "paused"
    if past is None:
        return None
    if request.cycle_id and request.cycle_id in past.state.done:
        return "not_due"
    longest = run.charter.rhythm.longest
    due = schedule.is_due(past.memory.header.next_due_at, run.started, longest)
    return None if request.force or due else "not_due"


def _refuse_if_forgotten(claim: Claim | None, now: datetime) -> None:
    """Raises UserError for a claim that no cycle holds that long: waiting proves nothing, but somebody has to look."""
    if claim and now - claim.at >= FORGOTTEN:
        what = (
            f"{claim.holder} holds the cycle since {claim.at:%Y-%m-%d %H:%M} UTC and nobody can tell whether it lives"
        )
        raise UserError(what, "if it is certainly dead: ralph memory recover --take-over")


def _cycle(run: CycleRun, past: MemorySnapshot | None) -> CycleResult:
    ports = run.ports
    _check_position(run, past)
    ports.voice.phase("check", gather.slots(past, run.charter))
    past, settled = _settle(run, past)
    situation = _gather(run, past)
    past, situation = _work(run, past, situation)
    situation = replace(situation, judged_at=ports.clock.now())
    decided = decide(situation, run.secrets)
    ports.recorder.record("situation", replace(situation, findings=(), fresh=()))
    ports.recorder.record("decisions", decided.decisions)

    ports.voice.phase("act", f"{len(_allowed_decisions(decided))} of {len(decided.decisions)} proposals allowed")
    if run.request.staged:
        return _report(run, situation, decided, _stage_all(ports, decided), settled)[0]
    claimed, known = _intend(run, situation, decided, past)
    look = partial(facts_about, ports, run.charter, state=situation.state)
    acts = execute.execute_decisions(ports, _allowed_decisions(decided), known, look)

    ports.voice.phase("reflect")
    account, conclusion = _report(run, situation, decided, acts, settled)
    base = claimed.state if claimed else situation.state
    batch = commit.write(situation, decided, acts, conclusion, known, *account, base, ports.dashboard)
    landed = ports.store.commit(batch, claimed)
    inbox.notify_stuck(ports, past, landed, run.secrets)
    ports.forge.set_anchor(gather.anchor_of(landed))
    return _wake(run, landed, account) if conclusion.at_once else account


def _check_position(run: CycleRun, past: MemorySnapshot | None) -> None:
    """Raises UserError when forge and memory disagree; Lost when only because somebody worked since we recalled."""
    try:
        gather.check_anchor(run.ports.forge, past)
    except UserError:
        now = run.ports.store.recall()
        if (now.oid if now else "") != (past.oid if past else ""):
            raise Lost from None
        raise


def _wake(run: CycleRun, landed: MemorySnapshot, account: CycleResult) -> CycleResult:
    """Ask for the next cycle now. Memory says already that it is due, so a wake that gets lost is made up for."""
    header = landed.memory.header
    receipt = run.ports.waker.wake(header.next_due_at or run.started, header.generation)
    return report.report_wake(account, receipt) if receipt else account


def _settle(run: CycleRun, past: MemorySnapshot | None) -> tuple[MemorySnapshot | None, tuple[AppliedEffect, ...]]:
    """What an earlier run left open: looked for and adopted, unknown, or left to what is decided now."""
    if past is None or not (past.state.effects or past.state.unknown) or run.request.staged:
        return past, ()
    records = gather.read_open(run.ports, past)
    deeds = execute.reconcile(run.ports, past.state, records, run.secrets)
    if not deeds and not past.state.effects:
        return past, ()
    told = tuple(deed for deed in deeds if not deed.receipt.not_attempted)
    return run.ports.store.commit(commit.settle_open(past, deeds, records), past), told


def _gather(run: CycleRun, past: MemorySnapshot | None) -> Situation:
    """Everything that decisions will rest on."""
    with run.ports.scratch() as scratch:
        situation = gather.situate(run.ports, run.charter, past, run.request.cycle_id, run.started)
        situation = observe.observe(run.ports, situation, past, scratch, run.secrets)
        situation = rank.rank_findings(run.ports, situation, run.secrets)
        situation = rank.word_posts(run.ports, situation, past)
        return verify.verify(run.ports, situation, scratch, run.secrets)


def _work(run: CycleRun, past: MemorySnapshot | None, situation: Situation) -> tuple[MemorySnapshot | None, Situation]:
    """Missions that wait for an agent are gone on with, within this cycle's money and time."""
    if past is None or run.request.staged or run.ports.coder is None:
        return past, situation
    return service.run_coding_tasks(run.ports, RedactingCoder(run.ports.coder, run.secrets), situation, past)


def _intend(
    run: CycleRun, situation: Situation, decided: CycleDecisions, past: MemorySnapshot | None
) -> tuple[MemorySnapshot | None, Mapping[str, Record]]:
    """Claim and intents in one batch, durable before anything happens; nothing to do claims nothing."""
    store = run.ports.store
    known = {**situation.records, **gather.read_effects(run.ports, decided, past)}
    batch = commit.intend(situation, decided, known, store.holder(), run.ports.clock.now())
    if batch is None:
        return past, known
    return store.commit(batch, past), {**known, **{record.key: record for record in batch.records}}


def _report(
    run: CycleRun,
    situation: Situation,
    decided: CycleDecisions,
    acts: tuple[ExecutedDecision, ...],
    settled: tuple[AppliedEffect, ...],
) -> tuple[CycleResult, Conclusion]:
    """What the cycle came to, told to machines and to people."""
    conclusion = conclude(situation, decided, acts)
    how, now, request = run.ports.forge.how, run.ports.clock.now(), run.request
    account = report.report_cycle(
        situation, decided, acts, conclusion, settled, request.trigger, request.staged, now, how
    )
    return account, conclusion


def _stage_all(ports: CyclePorts, decided: CycleDecisions) -> tuple[ExecutedDecision, ...]:
    """What would be done, with receipts that say that nothing was; posts are put where a person can read them."""
    return tuple(
        ExecutedDecision(
            decision, tuple(AppliedEffect(effect, _stage_effect(ports, effect)) for effect in decision.proposal.effects)
        )
        for decision in _allowed_decisions(decided)
    )


def _stage_effect(ports: CyclePorts, effect: Effect) -> Receipt:
    return ports.press.stage(effect) if isinstance(effect, Publish) else Receipt(effect.key, "staged")


def _allowed_decisions(decided: CycleDecisions) -> list[Decision]:
    return [decision for decision in decided.decisions if decision.verdict is Verdict.ALLOW]
