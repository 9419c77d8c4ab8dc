"""One stroke of work on memory and forge: claim and intents in one commit, the effects, their receipts in another.

A cycle is one long stroke. Work on an issue lasts hours and holds nothing meanwhile but its own issue, so it is made
of short ones, each as careful as a cycle: nothing before its intent stands on the branch, all through the one gate.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

from ralph_mission.mission import acting, chronicle, gathering
from ralph_mission.mission.deciding import CycleSettings
from ralph_mission.mission.ledger import MemoryBatch, MemorySnapshot, OpenState, WorkRecord, work_key
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.ports import CyclePorts, Store
from ralph_mission.trouble import Lost, UserError

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
        return self.past.memory if self.past else gathering.first_memory(self.ports, self.now)

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
    """Raises Trouble when forge and memory disagree; Lost when only because somebody was at work since we recalled."""
    try:
        gathering.check_anchor(house.ports, past)
    except UserError:
        now = house.store.recall()
        if (now.oid if now else "") != (past.oid if past else ""):
            raise Lost from None
        raise


def _settle_leftovers(house: TransactionContext, past: MemorySnapshot | None) -> MemorySnapshot | None:
    """What an earlier run intended and did not settle: looked for, adopted, or left to what is planned now."""
    if past is None or not (past.state.effects or past.state.unknown):
        return past
    records = gathering.read_open(house.ports, past)
    deeds = acting.reconcile(house.ports, past.state, records, house.secrets)
    if not deeds and not past.state.effects:
        return past
    return house.store.commit(chronicle.settle_open(past, deeds, records), past)


def commit_transaction(this: Transaction, batch: MemoryBatch) -> Transaction:
    """Commit memory, with the dashboard that goes with it, and tell the forge how far it is. Raises Lost."""
    past = this.house.store.commit(replace(batch, dashboard=this.ports.dashboard(batch.memory, batch.state)), this.past)
    this.ports.forge.set_anchor(gathering.anchor_of(past))
    return replace(this, past=past)
