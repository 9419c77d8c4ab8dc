"""The owner's hand on the wheel: pause, resume, settle what only a person can know, read the journal."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from ralph_mission.errors import UserError
from ralph_mission.mission.commit import settle_open
from ralph_mission.mission.execute import AppliedEffect
from ralph_mission.mission.memory.model import Memory
from ralph_mission.mission.model.effects import OpenIssue, Publish, Receipt
from ralph_mission.mission.model.ledger import (
    NOT_ATTEMPTED,
    EffectRecord,
    MemoryBatch,
    MemorySnapshot,
    MonitorRecord,
    Record,
    monitor_key,
    settle,
)
from ralph_mission.mission.model.mission import Action
from ralph_mission.mission.ports import Store


class Editable(Store, Protocol):
    """A store that takes a person's edit, and shows what it has written down."""

    def edit(self, memory: Memory, after: MemorySnapshot, message: str) -> None:
        """Commit what a person may change (Learnings, Do Not Repeat, `paused`) as a person's edit."""
        ...

    def journal(self) -> Iterable[dict[str, Any]]:
        """Every cycle's journal document, oldest first."""
        ...

    def exclusive(self) -> AbstractContextManager[bool]:
        """As in `Store`."""
        ...


def pause(store: Editable) -> None:
    """Stop before the next effect. Raises UserError when there is no memory to write it in."""
    _set_paused(store, True)


def resume(store: Editable) -> None:
    """Go on."""
    _set_paused(store, False)


def _set_paused(store: Editable, paused: bool) -> None:
    past = _present(store)
    if past.memory.header.paused is not paused:
        header = replace(past.memory.header, paused=paused)
        store.edit(replace(past.memory, header=header), past, f"ralph: {'paused' if paused else 'resumed'} by a person")


def _present(store: Editable) -> MemorySnapshot:
    past = store.recall()
    if past is None:
        raise UserError("there is no memory yet", "run a cycle first, or set RALPH_PAUSED=1 to keep it from starting")
    return past


def resolve(store: Editable, key: str, sent: bool, number: int = 0) -> None:
    """A person says what became of an effect whose fate is unknown; `number`: the issue or remark it made.

    Raises UserError when there is no such effect, or when a cycle is running.
    """
    with store.exclusive() as ours:
        if not ours:
            raise UserError("a cycle is running", "wait until it has ended")
        past = _present(store)
        record = store.records([key], past).get(key)
        if not isinstance(record, EffectRecord) or key not in past.state.unknown:
            raise UserError(f"no effect {key} is waiting for an answer", "see `ralph journal`")
        if sent and not number and isinstance(record.effect, OpenIssue):  # a mission without its issue waits for ever
            raise UserError(f"{key} opens an issue: which one is it?", "add: --number NUMBER", usage=True)
        said = "" if sent else f"{NOT_ATTEMPTED}not sent, says a person"
        receipt = Receipt(key, "adopted" if sent else "failed", number, detail=said)
        store.commit(_settled_batch(store, past, record, receipt), past)


def _settled_batch(store: Store, past: MemorySnapshot, record: EffectRecord, receipt: Receipt) -> MemoryBatch:
    """The same that reconciling does with what it found; whose cycle it is does not change."""
    subject = f"ralph: {record.key} settled by a person"
    if record.effect is None:  # of a memory that was recovered: nothing hangs on it any more
        unknown = tuple(key for key in past.state.unknown if key != record.key)
        return MemoryBatch(past.memory, replace(past.state, unknown=unknown), (settle(record, receipt),), subject)
    members = {m for mission in past.state.missions if mission.id == record.mission for m in mission.members}
    about = {record.effect.finding} - {""} if isinstance(record.effect, Publish) else set()
    records = {record.key: record, **store.records({monitor_key(record.kind), *members, *about}, past)}
    batch = settle_open(past, [AppliedEffect(record.effect, receipt)], records)
    uncounted = _uncount(record, receipt, records.get(monitor_key(record.kind)))
    return replace(
        batch,
        state=replace(batch.state, claim=past.state.claim),
        records=(*batch.records, *uncounted),
        message=subject,
    )


def _uncount(record: EffectRecord, receipt: Receipt, monitor: Record | None) -> Iterable[MonitorRecord]:
    """A list that was never sent counts nothing yet, so that what is seen again is listed; what was seen once stays."""
    opens = isinstance(record.effect, OpenIssue) and record.action is Action.MONITOR
    if opens and receipt.status == "failed" and isinstance(monitor, MonitorRecord):
        yield replace(monitor, total=0)


def journal(store: Editable) -> list[dict[str, Any]]:
    """Every effect that was ever done, oldest first: cycle, when, key, action, kind, state, url."""
    return [
        {
            "cycle": document["report"]["cycle"],
            "at": document["report"]["started_at"],
            "key": effect["key"],
            "action": effect["action"],
            "kind": effect["kind"],
            "state": effect["status"],
            "url": effect["url"],
        }
        for document in store.journal()
        for effect in document["report"]["effects"]
    ]
