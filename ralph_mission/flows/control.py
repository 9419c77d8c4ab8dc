"""The owner's hand on the wheel: pause, resume, settle what only a person can know, read the journal."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from ralph_mission.mission.drafting import monitor_key
from ralph_mission.mission.effects import OpenIssue, Receipt
from ralph_mission.mission.ledger import (
    Batch,
    EffectRecord,
    FindingRecord,
    MonitorRecord,
    OpenState,
    Recollection,
    Record,
    absorb,
    settle,
)
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.model import Action
from ralph_mission.mission.ports import Store
from ralph_mission.mission.trouble import Trouble


class Editable(Store, Protocol):
    """A store that takes a person's edit, and shows what it has written down."""

    def edit(self, memory: Memory, after: Recollection, message: str) -> None:
        """Commit what a person may change (Learnings, Do Not Repeat, `paused`) as a person's edit."""
        ...

    def journal(self) -> Iterable[dict[str, Any]]:
        """Every cycle's journal document, oldest first."""
        ...

    def exclusive(self) -> AbstractContextManager[bool]:
        """As in `Store`."""
        ...


def pause(store: Editable) -> None:
    """Stop before the next effect. Raises Trouble when there is no memory to write it in."""
    _set_paused(store, True)


def resume(store: Editable) -> None:
    """Go on."""
    _set_paused(store, False)


def _set_paused(store: Editable, paused: bool) -> None:
    past = _present(store)
    if past.memory.header.paused is not paused:
        header = replace(past.memory.header, paused=paused)
        store.edit(replace(past.memory, header=header), past, f"ralph: {'paused' if paused else 'resumed'} by a person")


def _present(store: Editable) -> Recollection:
    past = store.recall()
    if past is None:
        raise Trouble("there is no memory yet", "run a cycle first, or set RALPH_PAUSED=1 to keep it from starting")
    return past


def resolve(store: Editable, key: str, sent: bool, number: int = 0) -> None:
    """A person says what became of an effect whose fate is unknown; `number`: the issue or remark it made.

    Raises Trouble when there is no such effect, or when a cycle is running.
    """
    with store.exclusive() as ours:
        if not ours:
            raise Trouble("a cycle is running", "wait until it has ended")
        past = _present(store)
        record = store.records([key], past).get(key)
        if not isinstance(record, EffectRecord) or key not in past.state.unknown:
            raise Trouble(f"no effect {key} is waiting for an answer", "see `ralph journal`")
        receipt = Receipt(
            key, "adopted" if sent else "failed", number, detail="" if sent else "not sent, says a person"
        )
        state, records = _told(past, record, receipt, store)
        records += _monitored(record, receipt, store, past)
        store.commit(Batch(past.memory, state, records, f"ralph: {key} settled by a person"), past)


def _told(
    past: Recollection, record: EffectRecord, receipt: Receipt, store: Store
) -> tuple[OpenState, tuple[Record, ...]]:
    state = replace(past.state, unknown=tuple(key for key in past.state.unknown if key != record.key))
    settled = settle(record, receipt)
    if receipt.status == "failed" and isinstance(record.effect, OpenIssue):
        return _undone(state, settled, store, past)
    missions = tuple(
        absorb(mission, record.effect, receipt) if mission.id == record.mission and record.effect else mission
        for mission in state.missions
    )
    return replace(state, missions=missions), (settled,)


def _monitored(record: EffectRecord, receipt: Receipt, store: Store, past: Recollection) -> tuple[MonitorRecord, ...]:
    """The record of a monitoring issue, once it is certain which issue that is."""
    if record.action is not Action.MONITOR or not isinstance(record.effect, OpenIssue) or not receipt.number:
        return ()
    found = store.records([monitor_key(record.kind)], past).values()
    return tuple(replace(monitor, issue=receipt.number) for monitor in found if isinstance(monitor, MonitorRecord))


def _undone(
    state: OpenState, settled: EffectRecord, store: Store, past: Recollection
) -> tuple[OpenState, tuple[Record, ...]]:
    """An issue that was never opened: its mission ends and its findings may be proposed again."""
    gone = [mission for mission in state.missions if mission.id == settled.mission]
    members = [member for mission in gone for member in mission.members]
    found = store.records(members, past).values()
    forgotten = tuple(replace(record, occurrences=()) for record in found if isinstance(record, FindingRecord))
    state = replace(state, missions=tuple(mission for mission in state.missions if mission not in gone))
    return state, (settled, *forgotten)


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
