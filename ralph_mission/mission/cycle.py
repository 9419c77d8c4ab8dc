"""One cycle, as a story: recall, reconcile, gather, observe, rank, verify, code, decide, intend, execute,
conclude, commit.

Everything between the I/O is a pure function over frozen values (`decide`, `policy`, `lifecycle`, `conclude`). What
touches the world goes through `CyclePorts`. Nothing is done before its intent stands on the memory branch, and memory
only ever moves forward from what was read: a cycle is one `Transaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import commit, execute, gather, observe, rank, report, transaction, verify
from ralph_mission.mission.coder import agent_jobs
from ralph_mission.mission.conclude import Conclusion, after, conclude, refused_for_good
from ralph_mission.mission.decide import ask_about, decide, facts_of_missions, without_retried
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision
from ralph_mission.mission.lifecycle.table import interpret_facts
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
from ralph_mission.mission.model.ledger import Claim, Record
from ralph_mission.mission.model.mission import Status
from ralph_mission.mission.operations import inbox
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.mission.transaction import Open, Transaction, TransactionContext
from ralph_mission.values import dataclass
from ralph_mission.words import stamp

STALE_CLAIM = timedelta(hours=24)  # a cycle takes minutes, a workflow job at most an hour

CycleResult = tuple[CycleReport, CycleSummary]


@dataclass(frozen=True, slots=True)
class CycleRequest:
    """What started this cycle. `cycle_id` resumes one that may have run before; "" starts a new one.

    The trigger `person` (a review, a label, a comment) starts a cycle early; it only acts on what people asked for.
    A `steering` one does so even if it is due.
    """

    trigger: Trigger = "cli"
    staged: bool = False
    force: bool = False
    cycle_id: str = ""
    steering: bool = False


def run_cycle(
    ports: CyclePorts, settings: CycleSettings, request: CycleRequest, secrets: tuple[str, ...] = ()
) -> CycleResult:
    """Run one cycle, or leave quietly: not due, paused, or somebody else's.

    Raises UserError, before any effect, when memory or the forge cannot be trusted or reached.
    """
    started = ports.clock.now()
    with nullcontext(True) if request.staged else ports.store.exclusive() as locked:
        past = ports.store.recall() if locked else None
        tx = Transaction(TransactionContext(ports, settings, secrets), past, started)
        try:
            tx = _apply_chat_commands(tx, request, locked)
            reason = _reason_to_leave(tx, request, locked)
            if reason is None:
                return _cycle(tx, request)
        except Lost:
            reason = "lost"
        return report.report_skipped(reason, tx.past, request.trigger, request.staged, started, ports.clock.now())


def _cycle(tx: Transaction, request: CycleRequest) -> CycleResult:
    """The stages in order: what is read goes into the `Situation`, what is written is one step of `tx`."""
    ports = tx.ports
    transaction.check_position(tx)
    ports.progress.phase("check", gather.describe_slots(tx.past, tx.settings))
    tx, settled = (tx, ()) if request.staged else transaction.settle_leftovers(tx)
    tx, situation = _build_situation(tx, request)
    if not request.staged:
        tx, situation = agent_jobs.run_agent_jobs(tx, situation)
    situation = replace(situation, judged_at=ports.clock.now())
    decided = decide(situation, tx.secrets)
    ports.recorder.record("situation", replace(situation, findings=(), fresh=()))
    ports.recorder.record("decisions", decided.decisions)

    ports.progress.phase("act", f"{len(decided.allowed)} of {len(decided.decisions)} proposals pass the rules")
    if request.staged:
        acts = execute.stage_decisions(ports, decided.allowed)
        return _report(tx, request, situation, decided, acts, conclude(situation, decided, acts), settled)

    missions_before = tx.state.missions
    stored = {**situation.records, **gather.read_effects(ports, decided, tx.past)}
    intents = commit.prepare_intents(situation, decided, stored, tx.store.holder(), ports.clock.now())
    tx, known = transaction.commit_intents(tx, intents, stored)
    acts = transaction.act(tx, decided.allowed, known)
    tx, decided, acts, known = _ask_about_refusals(tx, situation, decided, acts, known)

    ports.progress.phase("reflect")
    conclusion = conclude(situation, decided, acts)
    result = _report(tx, request, situation, decided, acts, conclusion, settled)
    batch = commit.write(situation, decided, acts, conclusion, known, *result, tx.state)
    tx = tx.commit_with_dashboard(batch)
    inbox.notify_stuck(ports, missions_before, tx.state.missions, tx.secrets)  # first: the anchor may raise
    tx.anchor(quiet=not any(act.applied for act in acts))
    return _wake(tx, result) if conclusion.at_once else result


def _ask_about_refusals(
    tx: Transaction,
    situation: Situation,
    decided: CycleDecisions,
    acts: tuple[ExecutedDecision, ...],
    known: Mapping[str, Record],
) -> tuple[Transaction, CycleDecisions, tuple[ExecutedDecision, ...], Mapping[str, Record]]:
    """Ask people at once about what only they can lift: in the same claim, with intents of its own."""
    refused = refused_for_good(acts)
    if not refused or execute.is_stopped(tx.ports):
        return tx, decided, acts, known
    settled = {record.key: record for record in commit.settled_records(refused, known)}
    stuck = {act.decision.proposal.key: after(act) if act.decision.proposal.before else None for act in refused}
    questions = ask_about(replace(situation, records={**situation.records, **settled}), stuck, tx.secrets)
    known = {**known, **gather.read_effects(tx.ports, questions, tx.past)}  # an earlier cycle may have asked in part
    batch = commit.intend_more(tx.state, situation, questions, refused, known)
    if batch is None:
        return tx, decided, acts, known
    tx, known = transaction.commit_intents(tx, batch, known)
    new = {decision.proposal.key for decision in questions.decisions}
    decisions = (decision for decision in decided.decisions if decision.proposal.key not in new)
    decided = CycleDecisions((*decided.steps, *questions.steps), (*decisions, *questions.decisions))
    return tx, decided, (*acts, *transaction.act(tx, questions.allowed, known)), known


def _build_situation(tx: Transaction, request: CycleRequest) -> tuple[Transaction, Situation]:
    """Gather everything decisions rest on, except what agents produce."""
    ports = tx.ports
    with ports.scratch() as scratch:
        situation = gather.read_situation(ports, tx.settings, tx.past, request.cycle_id, tx.now)
        if _is_steering(tx, request) and not situation.world.requested("run"):
            return tx, replace(situation, steering=True)
        again = request.force or bool(situation.world.requested("run"))
        if again and not request.staged:
            ports.hands.forget_failures()
        planned = observe.plan_observations(ports, situation, scratch)
        if not request.staged and (usd := sum(context.usd for _, context in planned)):
            tx, situation = agent_jobs.reserve_money(tx, situation, usd)
        situation = observe.observe(ports, situation, planned, tx.past, tx.secrets)
        # A fleet's runner keeps nothing: what is not in memory when it dies, nobody counts.
        if situation.settings.in_fleet and not request.staged and (usd := rank.may_cost(ports, situation)):
            tx, situation = agent_jobs.reserve_money(tx, situation, usd)
        situation = rank.rank_findings(ports, situation, tx.secrets)
        situation = rank.write_wordings(ports, situation, tx.past)
        situation = gather.read_fix_records(ports, situation, tx.past)
        situation = without_retried(situation, again)
        return tx, verify.verify(ports, situation, scratch, tx.secrets)


def _report(
    tx: Transaction,
    request: CycleRequest,
    situation: Situation,
    decided: CycleDecisions,
    acts: Sequence[ExecutedDecision],
    conclusion: Conclusion,
    settled: Sequence[AppliedEffect],
) -> CycleResult:
    """The report for machines and the summary for people."""
    found = [effect for effect in settled if not effect.receipt.not_attempted]
    now, how = tx.ports.clock.now(), tx.ports.forge.how
    return report.report_cycle(situation, decided, acts, conclusion, found, request.trigger, request.staged, now, how)


def _wake(tx: Transaction, result: CycleResult) -> CycleResult:
    """Ask for the next cycle now. Memory already says that it is due, so a lost wake does no harm."""
    header = tx.memory.header
    receipt = tx.ports.waker.wake(header.next_due_at or tx.now, header.generation)
    return report.report_wake(result, receipt) if receipt else result


# --- before it starts -----------------------------------------------------------------


def _apply_chat_commands(tx: Transaction, request: CycleRequest, locked: bool) -> Transaction:
    """Apply owners' chat commands to memory. A paused cycle reads them too; one that is not due does not ask."""
    if tx.past is None or tx.ports.inbox is None or request.staged or tx.ports.switch():
        return tx
    header = replace(tx.memory.header, paused=False)
    resumed = replace(tx, past=replace(tx.past, memory=replace(tx.memory, header=header)))
    if _reason_to_leave(resumed, request, locked) is not None:
        return tx
    return replace(tx, past=inbox.apply_chat_commands(tx.ports, tx.past, tx.settings.limits, tx.secrets))


def _reason_to_leave(tx: Transaction, request: CycleRequest, locked: bool) -> Outcome | None:
    """Why this cycle does not start, or None. A staged cycle never has to wait for another."""
    claim = None if request.staged or not locked else transaction.find_live_claim(tx.store, tx.past)
    if claim or not locked:
        _refuse_stale_claim(claim, tx.now)
        return "lost"
    if tx.ports.switch() or (tx.past and tx.memory.header.paused):
        return "paused"
    if request.cycle_id and request.cycle_id in tx.state.done:
        return "not_due"
    return None if request.force or request.trigger == "person" or _is_due(tx) else "not_due"


def _is_due(tx: Transaction) -> bool:
    return tx.past is None or schedule.is_due(tx.memory.header.next_due_at, tx.now, tx.settings.rhythm.longest)


def _is_steering(tx: Transaction, request: CycleRequest) -> bool:
    """Whether only a person's action started this cycle: then nothing is observed."""
    return request.trigger == "person" and not request.force and (request.steering or not _is_due(tx))


PATIENCE, AGAIN = 600.0, 10.0
"""Seconds that a person's request waits for another runner to let go of memory, and between two tries."""


def run_patiently(run: Callable[[], CycleResult], sleep: Callable[[float], None]) -> CycleResult:
    """The result of `run`, a cycle that a person's words started: no later event would tell of them again.

    Raises UserError after `PATIENCE`, so that the run fails and a later wake makes up for it.
    """
    waited, result = 0.0, run()
    while result[0].outcome == "lost":
        if waited >= PATIENCE:
            raise UserError(
                "another runner has held memory for ten minutes", "nothing is lost: the next wake tries again"
            )
        sleep(AGAIN)
        waited, result = waited + AGAIN, run()
    return result


MOST_FOLLOW_UPS = 4
"""Cycles that may follow one another on what people ask for: a review is taken up, answered, pushed."""


def follow_up_pulls(opened: Open) -> Iterator[CycleResult]:
    """Cycles that act on people's words alone, as long as a review, a yes or a no to a pull request waits for one.

    Raises UserError as a cycle does.
    """
    for _ in range(MOST_FOLLOW_UPS):
        context = opened()
        if execute.is_stopped(context.ports) or not _is_pull_waiting(context):
            return
        yield run_cycle(context.ports, context.settings, CycleRequest("person", steering=True), context.secrets)


def is_word_waiting(context: TransactionContext) -> bool:
    """Whether a cycle that acts on people's words alone would do something now; reads only. Raises UserError."""
    past = context.ports.store.recall()
    if past is None or execute.is_stopped(context.ports):
        return False
    situation = gather.read_situation(context.ports, context.settings, past, "", context.ports.clock.now())
    world = situation.world
    decided = decide(replace(situation, steering=True), context.secrets)
    return bool(world.orders or world.adopted or decided.allowed)


def _is_pull_waiting(context: TransactionContext) -> bool:
    past = context.ports.store.recall()
    if past is None or not (past.state.missions or past.memory.issues):
        return False
    situation = gather.read_situation(context.ports, context.settings, past, "", context.ports.clock.now())
    facts = facts_of_missions(situation)
    pulls = [mission for mission in situation.missions if mission.pull and mission.id in facts]
    return any(
        interpret_facts(mission, facts[mission.id], situation.now).event
        or agent_jobs.is_ready(situation, mission)
        or (mission.status is Status.FIXING and mission.pending and not mission.review.offered_until)  # cut off
        for mission in pulls
    )


def _refuse_stale_claim(claim: Claim | None, now: datetime) -> None:
    """Raise UserError for a claim older than any cycle takes. Age alone proves nothing, so a person has to look."""
    if claim and now - claim.at >= STALE_CLAIM:
        what = f"{claim.holder} holds the cycle since {stamp(claim.at)} and it is unknown whether it is alive"
        raise UserError(what, "if it is certainly dead: ralph memory recover --take-over")
