"""What memory keeps of the work on an issue: its record, in every commit of a stroke that is about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ralph_mission.flows.carrying import ExecutionRequest, ExecutionResult, Receipts, execute_plan, write_memory
from ralph_mission.flows.strokes import Transaction
from ralph_mission.mission import work, work_plans
from ralph_mission.mission.ledger import MemoryBatch, WorkRecord
from ralph_mission.mission.proposal import Proposal


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What came of a plan: the record as it stands now, and what was carried out."""

    record: WorkRecord
    carried: ExecutionResult

    @property
    def refused(self) -> bool:
        """Whether rules spoke against it; then nothing was begun."""
        return self.carried.refused

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that spoke against it."""
        return self.carried.decision.rules


def carry_out_plan(
    this: Transaction, record: WorkRecord, plan: Proposal, usd: float = 0.0, also: tuple[str, ...] = ()
) -> PlanResult:
    """Carry out a plan about an issue, and move its record by what came of it.

    `usd` is booked on today's spending with the intents; the receipts of `also`, which are earlier effects' keys,
    count too. Raises as `carry` does.
    """
    carried = execute_plan(this, _errand(record, usd, also), plan)
    return PlanResult(
        record if carried.refused else _move_record(record, None if carried.cut else carried.receipts), carried
    )


def note_record(this: Transaction, record: WorkRecord, usd: float = 0.0) -> None:
    """Write down where the work stands, and nothing else. Raises Lost."""
    write_memory(this, _errand(record, usd, ()))


def _errand(record: WorkRecord, usd: float, also: tuple[str, ...]) -> ExecutionRequest:
    def keep(batch: MemoryBatch, receipts: Receipts | None) -> MemoryBatch:
        return _with(batch, _move_record(record, receipts))

    name, told = f"work-{record.issue}", f"issue {record.issue}: {record.state}"
    return ExecutionRequest(name, told, record.usd, usd, work_plans.WORK_RULES, also, keep)


def _move_record(record: WorkRecord, receipts: Receipts | None) -> WorkRecord:
    return record if receipts is None else work_plans.advance_record(record, receipts)


def _with(batch: MemoryBatch, record: WorkRecord) -> MemoryBatch:
    others = tuple(number for number in batch.state.working if number != record.issue)
    state = replace(batch.state, working=(*others, record.issue) if record.state in work.OPEN else others)
    memory = replace(batch.memory, issues=work.update_notes(batch.memory.issues, record))
    return replace(batch, memory=memory, state=state, records=(record, *batch.records))
