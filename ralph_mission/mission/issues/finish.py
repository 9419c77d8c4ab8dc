"""The end of the issue agent's work: the change is sent or the issue released, by the same process or a later one.

Each step is one transaction with the issue's record in its commit, decided by that record and the forge's state;
repeating it sends only what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from ralph_mission.errors import UserError
from ralph_mission.mission.coder import results
from ralph_mission.mission.issues import record as work
from ralph_mission.mission.issues.record import OPEN
from ralph_mission.mission.lifecycle.facts import read_if_there
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.effects import Effect
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.ledger import MemoryBatch, WorkRecord
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.transaction import (
    BRIEF,
    LONG,
    ExecutionRequest,
    ExecutionResult,
    Open,
    Receipts,
    Sleep,
    Transaction,
    execute_plan,
    run_transaction,
    write_memory,
)
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan's result: the current record, and the executed effects."""

    record: WorkRecord
    execution: ExecutionResult

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that refused it; then nothing was begun."""
        return self.execution.decision.rules

    @property
    def paused(self) -> bool:
        """Whether it may be retried once Ralph is resumed, whatever other rules refuse it."""
        return "paused" in self.rules

    @property
    def refused(self) -> bool:
        """Whether rules refuse it even after resuming."""
        return self.execution.refused and not self.paused


def carry_out_plan(
    tx: Transaction, record: WorkRecord, plan: Proposal, usd: float = 0.0, also: tuple[str, ...] = ()
) -> PlanResult:
    """Carry out a plan about an issue, and advance its record by the receipts.

    `usd` is added to today's spending with the intents; the receipts of the earlier effects with keys `also` count too.
    Raises as `carry` does.
    """
    execution = execute_plan(tx, _execution_request(record, usd, also), plan)
    return PlanResult(
        record if execution.refused else _move_record(record, None if execution.cut else execution.receipts), execution
    )


def note_record(tx: Transaction, record: WorkRecord, usd: float = 0.0) -> None:
    """Only record the state of the work. Raises Lost."""
    write_memory(tx, _execution_request(record, usd, ()))


def _execution_request(record: WorkRecord, usd: float, also: tuple[str, ...]) -> ExecutionRequest:
    def keep(batch: MemoryBatch, receipts: Receipts | None) -> MemoryBatch:
        return _with(batch, _move_record(record, receipts))

    name, subject = f"work-{record.issue}", f"issue {record.issue}: {record.state}"
    return ExecutionRequest(name, subject, record.usd, usd, work.WORK_RULES, also, keep)


def _move_record(record: WorkRecord, receipts: Receipts | None) -> WorkRecord:
    return record if receipts is None else work.advance_record(record, receipts)


def _with(batch: MemoryBatch, record: WorkRecord) -> MemoryBatch:
    others = tuple(number for number in batch.state.working if number != record.issue)
    state = replace(batch.state, working=(*others, record.issue) if record.state in work.OPEN else others)
    memory = replace(batch.memory, issues=work.update_notes(batch.memory.issues, record))
    return replace(batch, memory=memory, state=state, records=(record, *batch.records))


WAIT_SECONDS, RETRY_SECONDS = 600.0, 10.0
"""Seconds that a result waits for a network, a forge or `ralph resume`, and between two tries."""


def finish_work(opened: Open, sleep: Sleep, record: WorkRecord, played: AgentResult) -> WorkRecord:
    """Send the change, or release the issue."""
    if record.state == "working":
        record = _end_work(opened, sleep, record, played)
    return _drive(opened, sleep, record, lambda _: 0.0)


def _end_work(opened: Open, sleep: Sleep, record: WorkRecord, played: AgentResult) -> WorkRecord:
    """Record and send the result. A step that fails now is retried: no later process has the result."""
    waited = 0.0
    while True:
        try:
            return run_transaction(opened, sleep, partial(_end, record, played, waited >= WAIT_SECONDS), LONG)
        except UserError as problem:
            if waited >= WAIT_SECONDS or problem.who not in ("network", "forge"):
                raise
        sleep(RETRY_SECONDS)
        waited += RETRY_SECONDS


def is_taken_back(opened: Open, record: WorkRecord) -> bool:
    """Whether a person withdraws the issue while its agent works; no, if that cannot be read now."""
    try:
        forge = opened().ports.forge
        issue = read_if_there(record.issue, forge.issue)
        return work.is_withdrawn(replace(record, state="ending"), issue, forge.identity().id)
    except UserError:
        return False


def _end(ours: WorkRecord, played: AgentResult, last: bool, tx: Transaction) -> WorkRecord:
    """Record the loop's result; a change is announced and sent in the same transaction.

    Raises UserError while sending is stopped, unless this is the `last` try.
    """
    found = tx.work_record(ours.issue)
    if found is None or (found.holder, found.tries) != (ours.holder, ours.tries):
        return ours  # another process has declared us dead and taken over
    if found.state not in ("working", "ending"):
        return found  # an earlier commit of ours arrived although its answer was lost
    played = results.redact_words(played, tx.secrets)
    usd = schedule.settle_reserve(ours.reserved, ours.at, played.usd, tx.now) if found.state == "working" else 0.0
    record, issue = work.end_try(ours, played), read_if_there(ours.issue, tx.ports.forge.issue)
    if issue is None or work.is_withdrawn(record, issue, tx.ports.forge.identity().id):
        record = replace(record, state="withdrawing", reason="a person took it back")
    if record.state == "ending" and issue is not None:
        sent = _announce_change(tx, record, issue, played, usd, last)
        if isinstance(sent, WorkRecord):
            record = sent
        elif sent.paused:
            raise UserError("nothing may be sent now: Ralph is paused", "ralph resume", who="forge")
        else:
            return sent.record
    note_record(tx, record, usd)
    return record


def _announce_change(
    tx: Transaction, record: WorkRecord, issue: Issue, played: AgentResult, usd: float, last: bool
) -> PlanResult | WorkRecord:
    """The result of sending the change; if it may not be sent, the record of a failed attempt."""
    forge = tx.ports.forge
    try:
        changes = work.work_effects(record, issue, played, forge.default_branch().name, tx.now)
    except UnicodeDecodeError:
        return work.release_issue(record, "the change holds a file that is not text", 1)
    remark, _ = work.find_own_comment(record, issue, forge.identity().id)
    effects: tuple[Effect, ...] = (*work.announce_effects(record, remark, changes), *changes)
    done = carry_out_plan(tx, record, work.work_proposal(record, issue, effects, played.patch), usd)
    if not done.refused and not (done.paused and last):
        return done
    why = redact("; ".join(_objections(tx, played, done.rules)), tx.secrets)
    return work.release_issue(record, f"the change may not be sent: {why}", 1)


def _objections(tx: Transaction, played: AgentResult, rules: tuple[str, ...]) -> Iterator[str]:
    """Each rule against it, with its path, if any."""
    assert played.patch is not None
    found = inspect(played.patch, max_lines=tx.settings.limits.auto_pr_lines, secrets=tx.secrets)
    for rule in rules:
        paths = [one.path for one in found if one.rule == rule and one.path and one.rule != "secret"]
        yield f"{rule} ({', '.join(sorted(set(paths))[:5])})" if paths else rule


Spent = Callable[[WorkRecord], float]
"""The cost of a vanished runner's attempt, in USD."""


def _drive(opened: Open, sleep: Sleep, record: WorkRecord, spent: Spent) -> WorkRecord:
    """Run steps until the work is closed, or until a state cannot be left now."""
    while record.state in OPEN:
        after = run_transaction(opened, sleep, partial(_step, record, spent), LONG)
        if after is None or after.state == record.state:
            return after or record
        record = after
    return record


def _step(ours: WorkRecord, spent: Spent, tx: Transaction) -> WorkRecord | None:
    """Do what is missing in the work's state. The attempt of a runner that is gone is released."""
    record = tx.work_record(ours.issue)
    if record is None or record.state not in OPEN:
        return record
    if (record.holder, record.tries) != (ours.holder, ours.tries):
        return ours  # another process was faster, and has begun another attempt
    issue = read_if_there(ours.issue, tx.ports.forge.issue)
    if record.state == "working":
        record = work.abandon_try(record, spent(record))
    if record.state != "closing" and work.is_withdrawn(record, issue, tx.ports.forge.identity().id):
        record = replace(record, state="withdrawing", reason="a person took it back")
    if record.state == "ending" and issue is not None:
        return _sent_on(tx, record, issue)
    return _carry_out(tx, record, issue, _plan(tx, record, issue))


def _plan(tx: Transaction, record: WorkRecord, issue: Issue | None) -> tuple[Effect, ...]:
    """The effects at the end of the work on an issue."""
    if record.state == "withdrawing":
        return work.withdraw_effects(record, issue, tx.ports.forge.identity().id)
    return {"closing": work.finish_effects, "releasing": work.release_effects}[record.state](record)


def _sent_on(tx: Transaction, record: WorkRecord, issue: Issue) -> WorkRecord:
    """The rest of an announced change, unchanged."""
    known = tx.records(work.change_keys(record))
    unsent = work.find_unsent_change(record, known, issue, tx.ports.forge.identity().id)
    if unsent is None:
        record = work.release_issue(record, "its runner ended before the change was announced", 1)
        return _carry_out(tx, record, issue, work.release_effects(record))
    return _carry_out(tx, record, issue, unsent[0], unsent)


def _carry_out(
    tx: Transaction,
    record: WorkRecord,
    issue: Issue | None,
    effects: tuple[Effect, ...],
    unsent: work.UnsentChange | None = None,
) -> WorkRecord:
    back, record = schedule.settle_reserve(record.reserved, record.at, 0.0, tx.now), replace(record, reserved=0.0)
    if issue is None:  # deleted: nothing can be posted there
        record = replace(record, state="withdrawn", holder="")
        note_record(tx, record, back)
        return record
    keys, patch = (work.change_keys(record), unsent[1]) if unsent else ((), None)
    done = carry_out_plan(tx, record, work.work_proposal(record, issue, effects, patch), back, keys)
    if unsent and done.refused:
        record = work.release_issue(record, f"the change may not be sent: {', '.join(done.rules)}", 1)
        note_record(tx, record)
        return record
    return _count_refusal(tx, record, issue, back) if done.refused else done.record


def _count_refusal(tx: Transaction, record: WorkRecord, issue: Issue, usd: float) -> WorkRecord:
    """Count an end that rules refuse: retried twice, then reported without the reason, then ended silently."""
    if record.refusals + 1 < work.REFUSALS:
        record = replace(record, refusals=record.refusals + 1)
        note_record(tx, record, usd)
        return record
    bare = replace(record, reason=work.HIDDEN_REASON)
    done = carry_out_plan(tx, bare, work.work_proposal(bare, issue, _plan(tx, bare, issue)), usd)
    if not done.refused:
        return record if done.paused else done.record
    record = work.give_up(bare)
    note_record(tx, record, usd)
    return record


# --- what others left -----------------------------------------------------------------


def leftovers(opened: Open, sleep: Sleep, spent: Spent) -> Iterator[tuple[int, str]]:
    """Finish work whose runner is proven dead."""
    past = opened().ports.store.recall()
    for number in past.state.working if past else ():
        with ExitStack() as stack:
            record = run_transaction(opened, sleep, partial(_taken_over, stack, number), BRIEF)
            if record is not None:
                yield number, _drive(opened, sleep, record, spent).state


def _taken_over(stack: ExitStack, number: int, tx: Transaction) -> WorkRecord | None:
    """Take over a dead runner's record; None while it may be alive."""
    stack.pop_all().close()
    record = tx.work_record(number)
    if record is None or not stack.enter_context(tx.store.at_work(number)):
        return None
    if record.holder and not tx.store.proven_dead(record.holder):
        return None
    return record
