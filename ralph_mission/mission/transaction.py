"""One stroke of work on memory and forge: claim and intents in one commit, the effects, their receipts in another.

A cycle is one long stroke. Work on an issue lasts hours and holds nothing meanwhile but its own issue, so it is made
of short ones, each as careful as a cycle: nothing before its intent stands on the branch, all through the one gate.

Carrying out a plan that belongs to no cycle: judged, intended, sent, written down, all in one stroke.

With everything that a cycle promises: no effect without its record on the branch before it, and none past the one gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import commit, execute, gather
from ralph_mission.mission import report as telling_posts
from ralph_mission.mission.execute import ExecutedDecision
from ralph_mission.mission.lifecycle.facts import facts_about
from ralph_mission.mission.memory import schedule
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
    WorkRecord,
    intend,
    remaining,
    settle,
    work_key,
)
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Usage, Verdict
from ralph_mission.mission.model.proposal import BudgetUsed, Decision, PolicyContext, Proposal
from ralph_mission.mission.policy import judge
from ralph_mission.mission.policy.rules import RULES, Rule
from ralph_mission.mission.ports import CyclePorts, Store
from ralph_mission.mission.publishing import posting
from ralph_mission.values import dataclass

T = TypeVar("T")
PAUSE = 2.0  # seconds between two looks at whether memory is free
BRIEF, LONG = 120.0, 3600.0
"""Seconds to wait for it: before anything was begun, and with a result in hands."""


class WorkStore(Store, Protocol):
    """A store that also knows who is at work on which issue of this clone."""

    def at_work(self, issue: int) -> AbstractContextManager[bool]:
        """Held while somebody works on an issue; gives False when another process of this clone holds it."""
        ...


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """What a stroke may touch, built anew for each: an hour later a forge has other lists."""

    ports: CyclePorts
    store: WorkStore
    charter: CycleSettings
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction:
    """Memory as it is in our hands."""

    house: TransactionContext
    past: MemorySnapshot | None
    now: datetime

    @property
    def ports(self) -> CyclePorts:
        return self.house.ports

    @property
    def memory(self) -> Memory:
        return self.past.memory if self.past else gather.first_memory(self.ports, self.now)

    @property
    def state(self) -> OpenState:
        return self.past.state if self.past else OpenState()

    def record(self, issue: int) -> WorkRecord | None:
        """What is known about the work on an issue."""
        found = self.house.store.records([work_key(issue)], self.past).get(work_key(issue))
        return found if isinstance(found, WorkRecord) else None


Open = Callable[[], TransactionContext]
Sleep = Callable[[float], None]


class Busy(UserError):
    """Another runner has memory in its hands for longer than we wait. Nothing was begun."""

    def __init__(self, by: str) -> None:
        what = f"{by or 'another process here'} is writing memory"
        super().__init__(what, "run again later; if it is certainly dead: ralph memory recover --take-over")


def run_transaction(opened: Open, sleep: Sleep, do: Callable[[Transaction], T], patience: float) -> T:
    """`do` with memory in our hands, as soon as nobody else has it. Raises Busy after `patience` seconds.

    What a dead runner left is settled first. Whoever comes between us and our intents was first: then it is decided
    anew, on what stands there by then.
    """
    waited, by = 0.0, ""
    while True:
        try:
            house = opened()
            with house.store.exclusive() as ours:
                past = house.store.recall() if ours else None
                by = _holder(house, past)
                if ours and not by:
                    _check_position(house, past)
                    return do(Transaction(house, _settle_leftovers(house, past), house.ports.clock.now()))
        except Lost:
            pass
        if waited >= patience:
            raise Busy(by)
        sleep(PAUSE)
        waited += PAUSE


def _holder(house: TransactionContext, past: MemorySnapshot | None) -> str:
    """Who has memory in hands, "" when nobody has or nobody can tell."""
    claim = past.state.claim if past else None
    return claim.holder if claim and not house.store.proven_dead(claim.holder) else ""


def _check_position(house: TransactionContext, past: MemorySnapshot | None) -> None:
    """Raises UserError when forge and memory disagree; Lost when only because somebody worked since we recalled."""
    try:
        gather.check_anchor(house.ports.forge, past)
    except UserError:
        now = house.store.recall()
        if (now.oid if now else "") != (past.oid if past else ""):
            raise Lost from None
        raise


def _settle_leftovers(house: TransactionContext, past: MemorySnapshot | None) -> MemorySnapshot | None:
    """What an earlier run intended and did not settle: looked for, adopted, or left to what is planned now."""
    if past is None or not (past.state.effects or past.state.unknown):
        return past
    records = gather.read_open(house.ports, past)
    deeds = execute.reconcile(house.ports, past.state, records, house.secrets)
    if not deeds and not past.state.effects:
        return past
    return house.store.commit(commit.settle_open(past, deeds, records), past)


def commit_transaction(this: Transaction, batch: MemoryBatch) -> Transaction:
    """Commit memory, with the dashboard that goes with it, and tell the forge how far it is. Raises Lost."""
    past = this.house.store.commit(replace(batch, dashboard=this.ports.dashboard(batch.memory, batch.state)), this.past)
    this.ports.forge.set_anchor(gather.anchor_of(past))
    return replace(this, past=past)


Receipts = Mapping[str, Receipt]
Keep = Callable[[MemoryBatch, Receipts | None], MemoryBatch]
"""What else a commit of memory holds; given what each effect came to, None while they are only intended or were cut."""


def alone(batch: MemoryBatch, _: Receipts | None) -> MemoryBatch:
    """Nothing else: the effects' own records are all that memory keeps."""
    return batch


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """What a plan is carried out for. `name` is that of its claim and journal, `told` what commits of memory say.

    `usd` is what it cost; `booked` is added to today's spending with the intents (less than nothing gives back). `also`
    are keys of earlier effects whose receipts count, `keep` says what else is written.
    """

    name: str
    told: str
    usd: float = 0.0
    booked: float = 0.0
    rules: Sequence[Rule] = RULES
    also: tuple[str, ...] = ()
    keep: Keep = alone


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What came of a plan: the decision, and each effect's receipt, an earlier one too; none with rules against it."""

    decision: Decision
    receipts: Receipts
    cut: bool = False

    @property
    def refused(self) -> bool:
        """Whether rules spoke against it."""
        return self.decision.verdict is not Verdict.ALLOW


def execute_plan(this: Transaction, errand: ExecutionRequest, plan: Proposal) -> ExecutionResult:
    """Do what a plan says, as far as it was not done before. Raises Lost before anything was done, UserError."""
    known = this.house.store.records([*(effect.key for effect in plan.effects), *errand.also], this.past)
    left = remaining(plan.effects, known)
    decision = judge.judge(replace(plan, effects=left), _bench(this, left), errand.rules)
    if decision.verdict is not Verdict.ALLOW:
        return ExecutionResult(decision, {})
    this, intended = _intend_plan(this, errand, decision)
    look = partial(facts_about, this.ports, this.house.charter, state=this.state)
    (act,) = execute.execute_decisions(this.ports, [decision], {**known, **intended}, look)
    receipts = (*(deed.receipt for deed in act.deeds), *execute.not_attempted((act,)))
    before = {one.key: one.receipt for one in known.values() if isinstance(one, EffectRecord) and one.receipt}
    carried = ExecutionResult(decision, before | {receipt.key: receipt for receipt in receipts}, act.cut)
    try:
        _settle_execution(this, errand, act, carried, intended)
    except Lost:
        what = "somebody else wrote memory while effects were sent"
        raise UserError(what, "run again: what was sent is looked for") from None
    return carried


def book_cost(this: Transaction, told: str, usd: float) -> Transaction:
    """Add to today's spending, and nothing else. Raises Lost."""
    return (
        commit_transaction(this, MemoryBatch(_book_cost(this, usd), this.state, (), f"ralph: {told}")) if usd else this
    )


def write_memory(this: Transaction, errand: ExecutionRequest) -> Transaction:
    """What the errand keeps, and its money; nothing is sent. Raises Lost."""
    batch = MemoryBatch(_book_cost(this, errand.booked), this.state, (), f"ralph: {errand.told}")
    return commit_transaction(this, errand.keep(batch, None))


def _bench(this: Transaction, effects: Sequence[Effect]) -> PolicyContext:
    forge, charter = this.ports.forge, this.house.charter
    doubts = this.house.store.records(this.state.unknown, this.past)
    lately = posting.within(charter.post_pause, this.state.posted, this.now, doubts)
    spent = BudgetUsed(posts_day=posting.on_day(this.state.posted, this.now, doubts), posts_lately=lately)
    pushes = any(isinstance(effect, PushBranch) for effect in effects)
    taken = tuple(pull.head for pull in forge.pulls("all")) if pushes else ()
    return PolicyContext(
        charter.limits, spent, forge.default_branch().name, charter.memory_branch, forge.identity().id, this.now,
        branches=taken, secrets=this.house.secrets, owners=charter.owners,
        quiet_hours=charter.quiet_hours, paused=execute.is_stopped(this.ports),
        post_pause=charter.post_pause,
    )  # fmt: skip  # one value


def _intend_plan(
    this: Transaction, errand: ExecutionRequest, decision: Decision
) -> tuple[Transaction, Mapping[str, EffectRecord]]:
    plan, cycle = decision.proposal, this.memory.header.cycle
    mission = plan.before.id if plan.before else 0
    made = intend(plan.effects, plan.key, plan.action, plan.kind, mission, cycle, this.now)
    claim = Claim(this.house.store.holder(), cycle, errand.name, this.now) if made else None
    state = replace(this.state, claim=claim, effects=(*this.state.effects, *(one.key for one in made)))
    batch = MemoryBatch(
        _book_cost(this, errand.booked), state, made, f"ralph: {errand.told}: intends {len(made)} effects"
    )
    return commit_transaction(this, errand.keep(batch, None)), {one.key: one for one in made}


def _settle_execution(
    this: Transaction,
    errand: ExecutionRequest,
    act: ExecutedDecision,
    carried: ExecutionResult,
    intended: Mapping[str, EffectRecord],
) -> None:
    settled = tuple(settle(record, carried.receipts[key]) for key, record in intended.items())
    state = commit.close_effects(replace(this.state, claim=None), [carried.receipts[key] for key in intended])
    batch = MemoryBatch(this.memory, state, settled, f"ralph: {errand.told}", journal=_journal(this, errand, act))
    commit_transaction(this, errand.keep(batch, None if carried.cut else carried.receipts))


def _book_cost(this: Transaction, usd: float) -> Memory:
    return (
        replace(this.memory, header=schedule.book_spending(this.memory.header, this.now, usd)) if usd else this.memory
    )


def _journal(this: Transaction, errand: ExecutionRequest, act: ExecutedDecision) -> tuple[str, commit.Journal]:
    header, decision, plan = this.memory.header, act.decision, act.decision.proposal
    name = f"{header.cycle:06d}-{errand.name}-{header.serial}"
    lines = tuple(
        EffectLine(deed.receipt.key, plan.action, kind_of(deed.effect), deed.receipt.status, deed.receipt.url)
        for deed in act.deeds
    )
    judged = DecisionLine(plan.key, plan.action, plan.kind, plan.tier, decision.verdict, decision.rules)
    report = CycleReport(
        REPORT_SCHEMA, header.cycle, name, "paused" if act.cut else "done", "cli", False, this.now,
        this.ports.clock.now(), (), (), (), (judged,), lines, header.urgency, header.next_due_at,
        Usage(cost_usd=errand.usd),
    )  # fmt: skip  # one report
    deeds = tuple((plan.key, deed.receipt) for deed in act.deeds)
    return name, commit.Journal(report, CycleSummary(posts=tuple(telling_posts.lines((act,)))), (), (), deeds)
