"""The remains of a memory: its readable parts, the proof of our markers on the forge, the ledger of both.

Nothing is sent or redone here: intents are settled by reading, and unclear ones stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from ralph_mission.mission.lifecycle.ownership import facts_in
from ralph_mission.mission.model.effects import MARKER, Publish, Receipt
from ralph_mission.mission.model.forge import Actor, Issue, Pull
from ralph_mission.mission.model.ledger import (
    SETTLED,
    Anchor,
    EffectRecord,
    FindingRecord,
    MemoryBatch,
    MonitorRecord,
    OpenState,
    Record,
    absorb,
    may_redo,
    monitor_key,
    refers_to,
    settle,
)
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Action, Mission, Tier
from ralph_mission.mission.model.proposal import lookup
from ralph_mission.mission.ports import Forge, Store
from ralph_mission.values import dataclass

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)  # when an effect began whose record is lost


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `ralph memory verify`."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """The readable parts. `state` and `records` come from our own last commit, `doubtful` from anyone's."""

    head: str  # the branch's present commit, "" when it is gone
    anchor: Anchor | None = None
    memory: Memory | None = None  # the newest that can be read, with the newest people's sections
    state: OpenState | None = None
    records: tuple[Record, ...] = ()
    doubtful: tuple[Record, ...] = ()
    broken: tuple[str, ...] = ()  # paths on the head that are no use; the recovery commit removes them
    documents: tuple[tuple[str, bytes], ...] = ()  # journal and archive, by path, that the head has lost
    recovered: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Recoverable(Store, Protocol):
    """A store that can salvage and restart a memory."""

    def repair(self) -> list[str]:
        """Put right what cannot even be looked at; what was done, in words. Raises UserError for what it cannot."""

    def salvage(self) -> Salvage:
        """Everything readable, trusted or not. Raises UserError for what recovery cannot fix."""

    def restart(self, batch: MemoryBatch, salvaged: Salvage) -> Anchor:
        """Commit a new lineage on top of the present head, never resetting it, and remember the position."""

    def journal(self) -> Iterable[dict[str, Any]]:
        """Every cycle's journal document, oldest first. Raises UserError if one is unreadable."""

    def document(self) -> str:
        """The memory file's present text, or ""."""

    def checks(self) -> Iterable[Check]:
        """Each check with its result."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The new position, and in words its sources and missing parts."""

    anchor: Anchor
    recovered: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(slots=True)
class RecoveryReport:
    """The report, gathered during recovery."""

    recovered: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


# --- our markers on the forge ---


@dataclass(frozen=True, slots=True)
class Trace:
    """One of our markers on the forge: the key, its facts, and what carries it."""

    key: str
    facts: Mapping[str, str]
    thing: Issue | Pull
    remark: int = 0

    @property
    def mission(self) -> int:
        """Its mission, or 0."""
        number = self.facts.get("mission", "")
        return int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 0

    @property
    def members(self) -> tuple[str, ...]:
        """Its findings."""
        return tuple(part for part in self.facts.get("finding", "").split(",") if re.fullmatch("[0-9a-f]{8,64}", part))

    @property
    def kind(self) -> str:
        """The finding kind, or ""."""
        return self.facts.get("kind", "")

    @property
    def alone(self) -> bool:
        """Whether it is of a pull in which a mission lives, without an issue."""
        return isinstance(self.thing, Pull) and not self.remark and self.facts.get("issue") == "0"

    @property
    def action(self) -> Action:
        """Its action."""
        if not self.mission and not self.alone:
            return Action.MONITOR
        return Action.OPEN_FIX if lookup(self.kind).tier is Tier.LOW else Action.OPEN_PROPOSAL

    @property
    def receipt(self) -> Receipt:
        """The receipt that its effect would have got."""
        sha = self.thing.head_sha if isinstance(self.thing, Pull) else ""
        return Receipt(self.key, "adopted", self.remark or self.thing.number, self.thing.url, sha)


def traces_on(forge: Forge) -> tuple[Trace, ...]:
    """Every marker of our account on the forge, including closed threads."""
    us = forge.identity()
    issues = [forge.issue(issue.number) for issue in forge.issues("all")]
    pulls = [forge.pull(pull.number) for pull in forge.pulls("all")]
    things: list[Issue | Pull] = [*issues, *pulls]
    return tuple(trace for thing in things for trace in _traces_in(thing, us))


def _traces_in(thing: Issue | Pull, us: Actor) -> Iterable[Trace]:
    texts = [(thing.author, 0, thing.body), *((remark.author, remark.id, remark.body) for remark in thing.remarks)]
    for author, remark, body in texts:
        # Our marker is the last line; one further up may be a quotation.
        found = MARKER.fullmatch(body.rstrip().rpartition("\n")[2].strip())
        if found and author.id == us.id:
            yield Trace(found[1], facts_in(found[0]), thing, remark)


# --- the ledger ---


def rebuild_ledger(
    salvaged: Salvage, traces: Iterable[Trace], forge: Forge, report: RecoveryReport
) -> tuple[dict[str, Record], OpenState]:
    """Every record by its key, and the state with nothing left open."""
    by_key = {trace.key: trace for trace in traces}
    records = {record.key: record for doubtful in salvaged.doubtful if (record := _harmless(doubtful))}
    dropped = len(salvaged.doubtful) - len(records)
    records |= {record.key: record for record in salvaged.records}
    records |= {record.key: record for record in _lost_intents(salvaged.state, records)}
    state = _settle_intents(salvaged.state or OpenState(), records, by_key, forge, report)
    for trace in by_key.values():
        _apply_trace(trace, records, forge)
    report.recovered.append(
        f"{len(records)} ledger records, of {len(by_key)} things on the forge that carry our marker"
    )
    if dropped:
        report.lost.append(f"{dropped} plans that this clone did not write: they are not carried out")
    return records, state


def _lost_intents(state: OpenState | None, records: Mapping[str, Record]) -> Iterable[Record]:
    """What had been begun by keys whose records are lost: it may have been sent, so never again."""
    for key in (*state.effects, *state.unknown) if state else ():
        if key not in records:
            yield EffectRecord(key, key, Action.ANSWER, "", "unknown", None, 0, UNKNOWN_TIME)


def _harmless(record: Record) -> Record | None:
    """A record that may be anyone's, so that it can keep us from acting but never make us act; None for a plan."""
    if not isinstance(record, EffectRecord):
        return record
    if record.state in ("intended", "unknown"):
        return replace(record, state="unknown", effect=None)  # it may have been sent: never again
    return replace(record, effect=None) if record.state in SETTLED else None


def _settle_intents(
    state: OpenState, records: dict[str, Record], traces: Mapping[str, Trace], forge: Forge, report: RecoveryReport
) -> OpenState:
    """Settle intents by reading, never by acting."""
    unknown = []
    for key, record in list(records.items()):
        if isinstance(record, EffectRecord) and record.state in ("intended", "unknown"):
            receipt = _fate(record, traces, forge)
            records[key] = settle(record, receipt)
            report.recovered.append(f"{receipt.status}: an effect of cycle {record.cycle} that was still open ({key})")
            state = replace(
                state, missions=tuple(_move_mission(mission, record, receipt) for mission in state.missions)
            )
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


def _move_mission(mission: Mission, record: EffectRecord, receipt: Receipt) -> Mission:
    if record.mission != mission.id or record.effect is None:
        return mission
    return absorb(mission, record.effect, receipt)


def _apply_trace(trace: Trace, records: dict[str, Record], forge: Forge) -> None:
    """What one marker proves: the effect was done, its findings were acted on, and what a person decided."""
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
    """An unmerged closed pull request is a rejection, unless it is known that no authorised person closed it."""
    if not isinstance(thing, Pull) or thing.state == "open":
        return ""
    if thing.state == "merged":
        return "accepted"
    closer = thing.closed_by
    return "rejected" if closer is None or forge.may_approve(closer) else ""
