"""Carrying out a plan that belongs to no cycle: judged, intended, sent, written down, all in one stroke.

With everything that a cycle promises: no effect without its record on the branch before it, and none past the one gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ralph_mission.flows.strokes import Transaction, commit_transaction
from ralph_mission.mission import acting, chronicle, policy, posting, spending, telling_posts
from ralph_mission.mission.account import REPORT_SCHEMA, CycleReport, CycleSummary, DecisionLine, EffectLine
from ralph_mission.mission.acting import ExecutedDecision
from ralph_mission.mission.effects import Effect, PushBranch, Receipt, kind_of
from ralph_mission.mission.facts import facts_about
from ralph_mission.mission.ledger import Claim, EffectRecord, MemoryBatch, intend, remaining, settle
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.model import Usage, Verdict
from ralph_mission.mission.proposal import BudgetUsed, Decision, PolicyContext, Proposal
from ralph_mission.mission.rules import RULES, Rule
from ralph_mission.trouble import Lost, UserError

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
    """Do what a plan says, as far as it was not done before. Raises Lost before anything was done, Trouble."""
    known = this.house.store.records([*(effect.key for effect in plan.effects), *errand.also], this.past)
    left = remaining(plan.effects, known)
    decision = policy.judge(replace(plan, effects=left), _bench(this, left), errand.rules)
    if decision.verdict is not Verdict.ALLOW:
        return ExecutionResult(decision, {})
    this, intended = _intend_plan(this, errand, decision)
    look = partial(facts_about, this.ports, this.house.charter, state=this.state)
    (act,) = acting.execute_decisions(this.ports, [decision], {**known, **intended}, look)
    receipts = (*(deed.receipt for deed in act.deeds), *acting.not_attempted((act,)))
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
        quiet_hours=charter.quiet_hours, paused=acting.is_stopped(this.ports),
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
    state = chronicle.close_effects(replace(this.state, claim=None), [carried.receipts[key] for key in intended])
    batch = MemoryBatch(this.memory, state, settled, f"ralph: {errand.told}", journal=_journal(this, errand, act))
    commit_transaction(this, errand.keep(batch, None if carried.cut else carried.receipts))


def _book_cost(this: Transaction, usd: float) -> Memory:
    return (
        replace(this.memory, header=spending.book_spending(this.memory.header, this.now, usd)) if usd else this.memory
    )


def _journal(this: Transaction, errand: ExecutionRequest, act: ExecutedDecision) -> tuple[str, chronicle.Journal]:
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
    return name, chronicle.Journal(report, CycleSummary(posts=tuple(telling_posts.lines((act,)))), (), (), deeds)
