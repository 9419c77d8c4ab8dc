"""One unit of work on memory and forge: claim, intend, act, settle, commit.

A cycle is one long transaction. Work on an issue takes hours and claims only that issue meanwhile, so it uses short
ones (`run_transaction`), each as careful as a cycle: leftovers of a dead runner are settled first, no effect is sent
before its intent is on the branch, and every effect passes `execute`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import commit, execute, gather, policy, report
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision
from ralph_mission.mission.lifecycle.checkboxes import without_boxes
from ralph_mission.mission.lifecycle.facts import facts_about
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model import ledger
from ralph_mission.mission.model.cycle import (
    REPORT_SCHEMA,
    CycleReport,
    CycleSettings,
    CycleSummary,
    DecisionLine,
    EffectLine,
)
from ralph_mission.mission.model.effects import Effect, PushBranch, Receipt, kind_of
from ralph_mission.mission.model.ledger import (
    Claim,
    EffectRecord,
    MemoryBatch,
    MemorySnapshot,
    OpenState,
    Record,
    WorkRecord,
    work_key,
)
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Usage, Verdict
from ralph_mission.mission.model.proposal import BudgetUsed, Decision, PolicyContext, Proposal
from ralph_mission.mission.policy import RULES, Rule
from ralph_mission.mission.ports import CyclePorts, Store
from ralph_mission.mission.publishing import posting
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass

T = TypeVar("T")
PAUSE = 2.0  # seconds between checks whether memory is free
BRIEF, LONG = 120.0, 3600.0
"""Seconds to wait for memory: before any work was done, and with a result to store."""


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """What a transaction may touch. Built for each, because the forge's lists change meanwhile."""

    ports: CyclePorts
    settings: CycleSettings
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction:
    """Memory as last read or committed, with the ports to act on."""

    context: TransactionContext
    past: MemorySnapshot | None
    now: datetime

    @property
    def ports(self) -> CyclePorts:
        return self.context.ports

    @property
    def store(self) -> Store:
        return self.context.ports.store

    @property
    def settings(self) -> CycleSettings:
        return self.context.settings

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.context.secrets

    @property
    def memory(self) -> Memory:
        return self.past.memory if self.past else gather.first_memory(self.ports, self.now)

    @property
    def state(self) -> OpenState:
        return self.past.state if self.past else OpenState()

    def records(self, keys: Iterable[str]) -> Mapping[str, Record]:
        """The records of these keys."""
        return self.store.records(keys, self.past)

    def work_record(self, issue: int) -> WorkRecord | None:
        """The record of the work on an issue."""
        found = self.records([work_key(issue)]).get(work_key(issue))
        return found if isinstance(found, WorkRecord) else None

    def commit(self, batch: MemoryBatch) -> Transaction:
        """Commit memory, with more to follow. Raises Lost."""
        return replace(self, past=self.store.commit(batch, self.past))

    def publish(self, batch: MemoryBatch) -> Transaction:
        """Commit memory with its dashboard, and tell the forge. Raises Lost."""
        return self.commit_with_dashboard(batch).anchor()

    def commit_with_dashboard(self, batch: MemoryBatch) -> Transaction:
        """The commit of `publish` without telling the forge yet. Raises Lost."""
        return self.commit(replace(batch, dashboard=without_boxes(self._page(batch.memory, batch.state))))

    def anchor(self, quiet: bool = False) -> Transaction:
        """Show the dashboard and store memory's position on the forge. `quiet`: nothing was done. Raises UserError."""
        if self.past:
            page = self._page(self.memory, self.state)
            self.ports.forge.delete_finished_branches(partial(execute.is_stopped, self.ports))
            self.ports.forge.show_dashboard(page, gather.anchor_of(self.past), quiet)
        return self

    def _page(self, memory: Memory, state: OpenState) -> str:
        return redact(self.ports.dashboard(memory, state), self.secrets)


Open = Callable[[], TransactionContext]
Sleep = Callable[[float], None]


class Busy(UserError):
    """Another runner held memory for longer than we wait. Nothing was begun."""

    def __init__(self, by: str) -> None:
        what = f"{by or 'another process here'} is writing memory"
        super().__init__(what, "run again later; if it is certainly dead: ralph memory recover --take-over")


# --- the parts of every unit of work --------------------------------------------------


def find_live_claim(store: Store, past: MemorySnapshot | None) -> Claim | None:
    """The claim of another runner that may still be alive."""
    claim = past.state.claim if past else None
    return claim if claim and not store.proven_dead(claim.holder) else None


def check_position(tx: Transaction) -> None:
    """Raise UserError if forge and memory disagree; Lost if somebody wrote memory since we read it."""
    try:
        gather.check_anchor(tx.ports.forge, tx.past)
    except UserError:
        now = tx.store.recall()
        if (now.oid if now else "") != (tx.past.oid if tx.past else ""):
            raise Lost from None
        raise


def settle_leftovers(tx: Transaction) -> tuple[Transaction, tuple[AppliedEffect, ...]]:
    """Settle what an earlier run intended: adopted where found, else unknown or left to the next step."""
    if tx.past is None or not (tx.state.effects or tx.state.unknown):
        return tx, ()
    records = gather.read_open(tx.ports, tx.past)
    applied = execute.reconcile(tx.ports, tx.state, records)
    if not applied and not tx.state.effects:
        return tx, ()
    return tx.commit(commit.settle_open(tx.past, applied, records)), applied


def commit_intents(
    tx: Transaction, batch: MemoryBatch | None, known: Mapping[str, Record]
) -> tuple[Transaction, Mapping[str, Record]]:
    """Commit claim and intents, durably, before anything happens; returns all records as of then."""
    if batch is None:
        return tx, known
    return tx.commit(batch), {**known, **{record.key: record for record in batch.records}}


def act(tx: Transaction, decisions: Sequence[Decision], known: Mapping[str, Record]) -> tuple[ExecutedDecision, ...]:
    """Carry out the effects of allowed decisions."""
    recheck = partial(facts_about, tx.ports, tx.settings, state=tx.state)
    return execute.execute_decisions(tx.ports, decisions, known, recheck)


def run_transaction(opened: Open, sleep: Sleep, do: Callable[[Transaction], T], patience: float) -> T:
    """Run `do` while holding memory. Raises Busy after `patience` seconds.

    Leftovers of a dead runner are settled first. If another runner commits before our intents do, `do` runs again on
    what is there by then.
    """
    waited, by = 0.0, ""
    while True:
        try:
            context = opened()
            with context.ports.store.exclusive() as locked:
                past = context.ports.store.recall() if locked else None
                claim = find_live_claim(context.ports.store, past)
                by = claim.holder if claim else ""
                if locked and not claim:
                    tx = Transaction(context, past, context.ports.clock.now())
                    check_position(tx)
                    tx, _ = settle_leftovers(tx)
                    return do(replace(tx, now=context.ports.clock.now()))
        except Lost:
            pass
        if waited >= patience:
            raise Busy(by)
        sleep(PAUSE)
        waited += PAUSE


# --- a plan that belongs to no cycle --------------------------------------------------

Receipts = Mapping[str, Receipt]
Keep = Callable[[MemoryBatch, Receipts | None], MemoryBatch]
"""What else goes into a memory commit, given each effect's receipt (None if it is only intended, or was cut)."""


def keep_nothing(batch: MemoryBatch, _: Receipts | None) -> MemoryBatch:
    """Store nothing beyond the effects' own records."""
    return batch


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """What a plan is carried out for. `name`: of its claim and journal. `subject`: of its memory commits.

    `usd` is what it cost; `booked` is added to today's spending with the intents (a negative amount refunds). `also`:
    keys of earlier effects whose receipts count. `keep`: what else to store.
    """

    name: str
    subject: str
    usd: float = 0.0
    booked: float = 0.0
    rules: Sequence[Rule] = RULES
    also: tuple[str, ...] = ()
    keep: Keep = keep_nothing


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The decision on a plan and each effect's receipt, earlier ones included; no receipts if rules were against it."""

    decision: Decision
    receipts: Receipts
    cut: bool = False

    @property
    def refused(self) -> bool:
        """Whether rules were against it."""
        return self.decision.verdict is not Verdict.ALLOW


def execute_plan(tx: Transaction, request: ExecutionRequest, plan: Proposal) -> ExecutionResult:
    """Carry out a plan, except for what was done before. Raises UserError, or Lost before anything was done."""
    known = tx.records([*(effect.key for effect in plan.effects), *request.also])
    remaining = ledger.remaining(plan.effects, known)
    decision = policy.judge(replace(plan, effects=remaining), _policy_context(tx, remaining), request.rules)
    if decision.verdict is not Verdict.ALLOW:
        return ExecutionResult(decision, {})
    tx, intended = commit_intents(tx, _plan_intents(tx, request, decision), known)
    (done,) = act(tx, [decision], intended)
    before = {
        record.key: record.receipt for record in known.values() if isinstance(record, EffectRecord) and record.receipt
    }
    receipts = before | {receipt.key: receipt for receipt in commit.receipts_of([done])}
    try:
        tx.publish(_plan_settled(tx, request, done, receipts, intended))
    except Lost:
        what = "somebody else wrote memory while effects were sent"
        raise UserError(what, "run again: what was sent is looked for") from None
    return ExecutionResult(decision, receipts, done.cut)


def write_memory(tx: Transaction, request: ExecutionRequest) -> None:
    """Store what the request keeps and its cost; nothing is sent. Raises Lost."""
    batch = MemoryBatch(_book_cost(tx, request.booked), tx.state, (), f"ralph: {request.subject}")
    tx.publish(request.keep(batch, None))


def book_cost(tx: Transaction, subject: str, usd: float) -> None:
    """Only add to today's spending. Raises Lost."""
    if usd:
        write_memory(tx, ExecutionRequest("", subject, booked=usd))


def _policy_context(tx: Transaction, effects: Sequence[Effect]) -> PolicyContext:
    forge, settings = tx.ports.forge, tx.settings
    doubts = tx.records(tx.state.unknown)
    lately = posting.within(settings.post_pause, tx.state.posted, tx.now, doubts)
    spent = BudgetUsed(posts_day=posting.on_day(tx.state.posted, tx.now, doubts), posts_lately=lately)
    pushes = any(isinstance(effect, PushBranch) for effect in effects)
    branches = tuple(pull.head for pull in forge.pulls("all")) if pushes else ()
    return PolicyContext(
        settings.limits, spent, forge.default_branch().name, settings.memory_branch, forge.identity().id, tx.now,
        branches=branches, secrets=tx.secrets, owners=settings.owners,
        quiet_hours=settings.quiet_hours, paused=execute.is_stopped(tx.ports),
        post_pause=settings.post_pause,
    )  # fmt: skip  # one value


def _plan_intents(tx: Transaction, request: ExecutionRequest, decision: Decision) -> MemoryBatch:
    plan, cycle = decision.proposal, tx.memory.header.cycle
    mission = plan.before.id if plan.before else 0
    intents = ledger.build_intents(plan.effects, plan.key, plan.action, plan.kind, mission, cycle, tx.now)
    claim = Claim(tx.store.holder(), cycle, request.name, tx.now) if intents else None
    state = replace(tx.state, claim=claim, effects=(*tx.state.effects, *(intent.key for intent in intents)))
    subject = f"ralph: {request.subject}: intends {len(intents)} effects"
    return request.keep(MemoryBatch(_book_cost(tx, request.booked), state, intents, subject), None)


def _plan_settled(
    tx: Transaction, request: ExecutionRequest, done: ExecutedDecision, receipts: Receipts, known: Mapping[str, Record]
) -> MemoryBatch:
    state = commit.close_effects(replace(tx.state, claim=None), commit.receipts_of([done]))
    settled = tuple(commit.settled_records([done], known))
    batch = MemoryBatch(tx.memory, state, settled, f"ralph: {request.subject}", journal=_journal(tx, request, done))
    return request.keep(batch, None if done.cut else receipts)


def _book_cost(tx: Transaction, usd: float) -> Memory:
    return replace(tx.memory, header=schedule.book_spending(tx.memory.header, tx.now, usd)) if usd else tx.memory


def _journal(tx: Transaction, request: ExecutionRequest, done: ExecutedDecision) -> tuple[str, commit.Journal]:
    header, decision, plan = tx.memory.header, done.decision, done.decision.proposal
    name = f"{header.cycle:06d}-{request.name}-{header.serial}"
    lines = tuple(
        EffectLine(item.receipt.key, plan.action, kind_of(item.effect), item.receipt.status, item.receipt.url)
        for item in done.applied
    )
    judged = DecisionLine(plan.key, plan.action, plan.kind, plan.tier, decision.verdict, decision.rules)
    cycle_report = CycleReport(
        REPORT_SCHEMA, header.cycle, name, "paused" if done.cut else "done", "cli", False, tx.now,
        tx.ports.clock.now(), (), (), (), (judged,), lines, header.urgency, header.next_due_at,
        Usage(cost_usd=request.usd),
    )  # fmt: skip  # one report
    applied = tuple((plan.key, item.receipt) for item in done.applied)
    return name, commit.Journal(cycle_report, CycleSummary(posts=tuple(report.lines((done,)))), (), (), applied)
