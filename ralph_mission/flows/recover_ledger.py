"""The ledger rebuilt: what can still be read of it, settled by looking, and what our markers on the forge prove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ralph_mission.flows.recover_parts import Salvage, Told
from ralph_mission.flows.traces import Trace
from ralph_mission.mission.effects import Publish, Receipt
from ralph_mission.mission.ledger import (
    SETTLED,
    EffectRecord,
    FindingRecord,
    MonitorRecord,
    OpenState,
    Record,
    absorb,
    may_redo,
    monitor_key,
    refers_to,
    settle,
)
from ralph_mission.mission.model import Issue, Mission, Pull
from ralph_mission.mission.ports import Forge


def rebuilt_ledger(
    salvaged: Salvage, traces: Iterable[Trace], forge: Forge, told: Told
) -> tuple[dict[str, Record], OpenState]:
    """Every record by its key, and the state with nothing left open."""
    by_key = {trace.key: trace for trace in traces}
    records = {record.key: record for doubtful in salvaged.doubtful if (record := _harmless(doubtful))}
    dropped = len(salvaged.doubtful) - len(records)
    records |= {record.key: record for record in salvaged.records}
    state = _settled(salvaged.state or OpenState(), records, by_key, forge, told)
    for trace in by_key.values():
        _shown(trace, records, forge)
    told.kept.append(f"{len(records)} ledger records, of {len(by_key)} things on the forge that carry our marker")
    if dropped:
        told.lost.append(f"{dropped} plans that this clone did not write: they are not carried out")
    return records, state


def _harmless(record: Record) -> Record | None:
    """A record that may be anyone's, so that it can keep us from acting but never make us act; None for a plan."""
    if not isinstance(record, EffectRecord):
        return record
    if record.state in ("intended", "unknown"):
        return replace(record, state="unknown", effect=None)  # it may have been sent: never again
    return replace(record, effect=None) if record.state in SETTLED else None


def _settled(
    state: OpenState, records: dict[str, Record], traces: Mapping[str, Trace], forge: Forge, told: Told
) -> OpenState:
    """Intents settled by looking, never by doing."""
    unknown = []
    for key, record in list(records.items()):
        if isinstance(record, EffectRecord) and record.state in ("intended", "unknown"):
            receipt = _fate(record, traces, forge)
            records[key] = settle(record, receipt)
            told.kept.append(f"{receipt.status}: an effect of cycle {record.cycle} that was still open ({key})")
            state = replace(state, missions=tuple(_moved(mission, record, receipt) for mission in state.missions))
            unknown += [key] if receipt.status == "unknown" else []
    return replace(state, effects=(), unknown=tuple(unknown))


def _fate(record: EffectRecord, traces: Mapping[str, Trace], forge: Forge) -> Receipt:
    if record.key in traces:
        return traces[record.key].receipt
    effect = record.effect
    listed = effect is not None and not refers_to(effect) and not isinstance(effect, Publish)
    found = forge.find(effect) if effect is not None and listed else None
    if found is not None:
        return found
    certain = effect is not None and may_redo(effect, forge.lists_at_once)
    return Receipt(record.key, "failed" if certain else "unknown", detail="not there when memory was recovered")


def _moved(mission: Mission, record: EffectRecord, receipt: Receipt) -> Mission:
    if record.mission != mission.id or record.effect is None:
        return mission
    return absorb(mission, record.effect, receipt)


def _shown(trace: Trace, records: dict[str, Record], forge: Forge) -> None:
    """What one marker proves: the effect was done, its findings were acted on, and what a person said."""
    known = records.get(trace.key)
    if not isinstance(known, EffectRecord) or known.state not in SETTLED:
        at = trace.thing.created_at
        records[trace.key] = EffectRecord(
            trace.key, trace.key, trace.action, trace.kind, "adopted", None, 0, at, trace.mission, trace.receipt
        )
    if trace.kind and not trace.mission and isinstance(trace.thing, Issue) and not trace.remark:
        key = monitor_key(trace.kind)
        records.setdefault(key, MonitorRecord(key, trace.kind, trace.thing.number, (), 0))
    for member in trace.members:
        before = records.get(member)
        if not isinstance(before, FindingRecord):
            before = FindingRecord(member, trace.kind, trace.thing.title, ("",), 0, trace.mission)
        records[member] = replace(before, verdict=_verdict(trace.thing, forge) or before.verdict)


def _verdict(thing: Issue | Pull, forge: Forge) -> str:
    """A pull that was closed unmerged is a no, unless it is known that nobody with a say closed it."""
    if not isinstance(thing, Pull) or thing.state == "open":
        return ""
    if thing.state == "merged":
        return "accepted"
    closer = thing.closed_by
    return "rejected" if closer is None or forge.may_approve(closer) else ""
