"""What memory keeps of the work on an issue: its record, in every commit of a stroke that is about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ralph_mission.flows.carrying import Carried, Errand, Receipts, carry, write
from ralph_mission.flows.strokes import Stroke
from ralph_mission.mission import work, work_plans
from ralph_mission.mission.ledger import Batch, WorkRecord
from ralph_mission.mission.proposal import Proposal


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a plan: the record as it stands now, and what was carried out."""

    record: WorkRecord
    carried: Carried

    @property
    def refused(self) -> bool:
        """Whether rules spoke against it; then nothing was begun."""
        return self.carried.refused

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that spoke against it."""
        return self.carried.decision.rules


def carry_out(this: Stroke, record: WorkRecord, plan: Proposal, usd: float = 0.0, also: tuple[str, ...] = ()) -> Done:
    """Carry out a plan about an issue, and move its record by what came of it.

    `usd` is booked on today's spending with the intents; the receipts of `also`, which are earlier effects' keys,
    count too. Raises as `carry` does.
    """
    carried = carry(this, _errand(record, usd, also), plan)
    return Done(record if carried.refused else _moved(record, None if carried.cut else carried.receipts), carried)


def note(this: Stroke, record: WorkRecord, usd: float = 0.0) -> None:
    """Write down where the work stands, and nothing else. Raises Lost."""
    write(this, _errand(record, usd, ()))


def _errand(record: WorkRecord, usd: float, also: tuple[str, ...]) -> Errand:
    def keep(batch: Batch, receipts: Receipts | None) -> Batch:
        return _with(batch, _moved(record, receipts))

    name, told = f"work-{record.issue}", f"issue {record.issue}: {record.state}"
    return Errand(name, told, record.usd, usd, work_plans.WORK_RULES, also, keep)


def _moved(record: WorkRecord, receipts: Receipts | None) -> WorkRecord:
    return record if receipts is None else work_plans.moved(record, receipts)


def _with(batch: Batch, record: WorkRecord) -> Batch:
    others = tuple(number for number in batch.state.working if number != record.issue)
    state = replace(batch.state, working=(*others, record.issue) if record.state in work.OPEN else others)
    memory = replace(batch.memory, issues=work.noted(batch.memory.issues, record))
    return replace(batch, memory=memory, state=state, records=(record, *batch.records))
