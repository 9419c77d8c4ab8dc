"""Memory rebuilt from what the forge shows and from what can still be read of the old one.

What stands on the branch is evidence, not authority: intents and plans are carried over only
from a commit this clone knows as its own, and nothing is sent or redone here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from ralph_mission.flows.recover_work import at_work
from ralph_mission.flows.traces import Trace, traces_on
from ralph_mission.mission import approval, belonging, orders, recount, reflect, wishes
from ralph_mission.mission.effects import Publish, Receipt
from ralph_mission.mission.kinds import lookup
from ralph_mission.mission.ledger import (
    SETTLED,
    Anchor,
    Batch,
    EffectRecord,
    FindingRecord,
    MonitorRecord,
    OpenState,
    Record,
    absorb,
    key_of,
    may_redo,
    monitor_key,
    refers_to,
    settle,
)
from ralph_mission.mission.memory import Memory, MissionNote
from ralph_mission.mission.model import Action, Issue, Mission, Pull, Status, Tier
from ralph_mission.mission.ports import Forge, Store
from ralph_mission.trouble import Missing, Trouble

HUSHED = timedelta(hours=24)  # what is seen by then may have been said in public before memory was lost
ASK_AGAIN = "recovered"  # no text has this hash: the next cycle posts the proposal's line anew


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `ralph memory verify`."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can still be read. `state` and `records` are of our own last commit, `doubtful` of anyone's."""

    head: str  # the branch's present commit, "" when it is gone
    anchor: Anchor | None = None
    memory: Memory | None = None  # the newest that can be read, with the newest people's sections
    state: OpenState | None = None
    records: tuple[Record, ...] = ()
    doubtful: tuple[Record, ...] = ()
    broken: tuple[str, ...] = ()  # paths on the head that are no use; the recovery commit removes them
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Recoverable(Store, Protocol):
    """A store that can show what is left of a memory and start it anew."""

    def salvage(self) -> Salvage:
        """Everything that can still be read, trusted or not. Raises Trouble for what recovery cannot mend."""
        ...

    def restart(self, batch: Batch, salvaged: Salvage) -> Anchor:
        """Commit a new lineage on top of the present head, never resetting it, and remember the position."""
        ...

    def journal(self) -> Iterable[dict[str, Any]]:
        """Every cycle's journal document, oldest first. Raises Trouble when one cannot be read."""
        ...

    def document(self) -> str:
        """The memory file as it stands; "" when there is none."""
        ...

    def checks(self) -> Iterable[Check]:
        """Each thing that can be verified, and how it fared."""
        ...


@dataclass(frozen=True, slots=True)
class Recovered:
    """The new position, and in plain words what it was made of and what is missing."""

    anchor: Anchor
    kept: tuple[str, ...]
    lost: tuple[str, ...]


def recover(store: Recoverable, forge: Forge, now: datetime, take_over: bool = False) -> Recovered:
    """Rebuild memory and tell what became of it. Raises Trouble when a cycle is running here."""
    with store.exclusive() as ours:
        if not ours:
            raise Trouble("a cycle is running", "wait until it has ended")
        salvaged = store.salvage()
        told = _Told(list(salvaged.kept), list(salvaged.lost))
        anchors = [anchor for anchor in (salvaged.anchor, forge.anchor()) if anchor]
        traces = traces_on(forge)
        records, open_state = _ledger(salvaged, traces, forge, told)
        state = _claim(
            replace(open_state, missions=_missions(open_state, traces, forge, now, told)), store, take_over, told
        )
        found = at_work(records, state, forge, now, take_over)
        records |= {record.key: record for record in found}
        state = replace(state, working=tuple(record.issue for record in found))
        state = replace(state, next_mission=_next_mission(state, traces))
        if not _whole(salvaged, anchors):
            state = _hushed(state, now, told)
        if salvaged.state is None:
            state = _recounted(state, store, told)
        memory = _memory(salvaged, state, anchors, now)
        anchor = store.restart(Batch(memory, state, tuple(records.values()), "ralph: memory recovered"), salvaged)
        forge.set_anchor(anchor)
    return Recovered(anchor, tuple(told.kept), tuple(told.lost))


@dataclass(slots=True)
class _Told:
    kept: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


# --- the ledger -------------------------------------------------------------------------


def _ledger(
    salvaged: Salvage, traces: Iterable[Trace], forge: Forge, told: _Told
) -> tuple[dict[str, Record], OpenState]:
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
    state: OpenState, records: dict[str, Record], traces: Mapping[str, Trace], forge: Forge, told: _Told
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
            trace.key, trace.key, _action(trace), trace.kind, "adopted", None, 0, at, trace.mission, trace.receipt
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


def _action(trace: Trace) -> Action:
    if not trace.mission:
        return Action.MONITOR
    return Action.OPEN_FIX if lookup(trace.kind).tier is Tier.LOW else Action.OPEN_PROPOSAL


# --- missions ---------------------------------------------------------------------------


def _missions(
    state: OpenState, traces: tuple[Trace, ...], forge: Forge, now: datetime, told: _Told
) -> tuple[Mission, ...]:
    known = {mission.issue: mission for mission in state.missions if mission.issue}
    pulls = {trace.mission: trace.thing for trace in traces if isinstance(trace.thing, Pull)}
    for trace in traces:
        issue = trace.thing
        if trace.remark or not isinstance(issue, Issue) or not trace.mission or issue.number in known:
            continue
        if issue.state == "open" and "ralph:mission" in issue.labels:
            known[issue.number] = _rebuilt(trace, issue, pulls.get(trace.mission), forge, now)
            told.kept.append(f"mission #{trace.mission} from issue #{issue.number}: {issue.title}")
    for mission in _peoples_own(traces, forge, known, now):
        known[mission.issue] = mission
        told.kept.append(f"mission #{mission.id} from pull #{mission.pull}: {mission.title}")
    return tuple(_one_of_each_number(known.values(), traces, told))


def _one_of_each_number(missions: Iterable[Mission], traces: tuple[Trace, ...], told: _Told) -> Iterable[Mission]:
    """Of missions that claim one number, the one whose issue on the forge says so: a cycle refuses two."""
    said = {(trace.mission, trace.thing.number) for trace in traces if isinstance(trace.thing, Issue)}
    kept: dict[int, Mission] = {}
    for mission in sorted(missions, key=lambda mission: (mission.id, mission.issue) not in said):
        first = kept.setdefault(mission.id, mission)
        if first is not mission:
            told.lost.append(f"mission #{mission.id} on issue #{mission.issue}: issue #{first.issue} has that number")
    return kept.values()


def _peoples_own(traces: Iterable[Trace], forge: Forge, known: Collection[int], now: datetime) -> Iterable[Mission]:
    """Missions that people made of their own issues, and whose pull waits for them; the others are adopted anew."""
    pulls = [trace.thing for trace in traces if isinstance(trace.thing, Pull)]
    for number, (mission, pull) in wishes.pulls_for(pulls, forge.identity().id).items():
        if number in known:
            continue
        with suppress(Missing):  # nothing is left of it to work on
            issue = forge.issue(number)
            authorised = frozenset(p.id for p in approval.voices(issue, pull) if forge.may_approve(p))
            if issue.state == "open" and belonging.wished(issue, authorised):
                made = wishes.mission_of(issue, mission, 0, now, agent=True)
                yield wishes.found_again(made, mission, issue, pull, authorised)


def _rebuilt(trace: Trace, issue: Issue, pull: Pull | None, forge: Forge, now: datetime) -> Mission:
    action, tier = _action(trace), lookup(trace.kind).tier
    rebuilt = Mission(
        trace.mission,
        key_of("mission", "recovered", str(issue.number)),
        issue.title,
        trace.kind,
        action,
        tier,
        _status(issue, pull, action),
        0,
        issue.created_at,
        now,
        members=trace.members,
        issue=issue.number,
        proposal_hash=ASK_AGAIN if action is Action.OPEN_PROPOSAL else "",
        last_action="found again when memory was recovered",
    )
    if pull is None:
        return rebuilt
    authorised = frozenset(r.author.id for r in pull.reviews if forge.may_approve(r.author))
    return wishes.caught_up(rebuilt, pull, authorised)


def _status(issue: Issue, pull: Pull | None, action: Action) -> Status:
    for label, status in wishes.STANDING:
        if label in issue.labels:
            return status
    if pull is not None:
        return Status.IN_REVIEW
    return Status.EXECUTING if action is Action.OPEN_FIX else Status.DISCOVERED


def _next_mission(state: OpenState, traces: Iterable[Trace]) -> int:
    used = [mission.id for mission in state.missions] + [trace.mission for trace in traces]
    return max([state.next_mission, *(number + 1 for number in used)])


# --- posts ------------------------------------------------------------------------------


def _whole(salvaged: Salvage, anchors: Iterable[Anchor]) -> bool:
    """Whether nothing of what was said in public can be missing: our last commit is there, and none is known after."""
    seen = {anchor.oid for anchor in anchors}
    return salvaged.state is not None and not salvaged.broken and seen == {salvaged.head}


def _hushed(state: OpenState, now: datetime, told: _Told) -> OpenState:
    """Posts leave no mark that could be found again: what is seen within a day counts as said."""
    told.lost.append("what was posted: what is seen within a day from now is not posted, since it may have been before")
    missions = tuple(_silent(mission) for mission in state.missions)
    return replace(state, finished=(), missions=missions, hushed_until=now + HUSHED)


def _silent(mission: Mission) -> Mission:
    """The mission; of one that publishes, only the question is left: nobody knows any more which network has it."""
    if mission.action is not Action.PUBLISH:
        return mission
    asked = Status.DISCOVERED if mission.status in (Status.PLANNED, Status.EXECUTING) else mission.status
    return replace(mission, action=Action.OPEN_PROPOSAL, status=asked, proposal_hash=ASK_AGAIN, pending=())


# --- what was learned -------------------------------------------------------------------


def _recounted(state: OpenState, store: Recoverable, told: _Told) -> OpenState:
    """What people and networks said, counted again from the journal that is still there."""
    try:
        documents = tuple(store.journal())
        tallies, posts = recount.acceptance(documents), recount.posts(documents)
    except (Trouble, LookupError, TypeError, ValueError, AttributeError):
        told.lost.append("what was learned: the journal cannot be read, so its verdicts and posts are not counted")
        return state
    if documents:
        told.kept.append(f"what was learned, counted again from the journals of {len(documents)} cycles")
    return replace(state, acceptance=tuple(sorted(tallies.items())), posted=posts)


# --- claim and memory -------------------------------------------------------------------


def _claim(state: OpenState, store: Store, take_over: bool, told: _Told) -> OpenState:
    claim = state.claim
    if claim is None:
        return state
    if take_over or store.proven_dead(claim.holder):
        told.kept.append(f"the claim of {claim.holder} on cycle {claim.cycle} is lifted")
        return replace(state, claim=None)
    told.lost.append(
        f"nothing yet: {claim.holder} may still be in cycle {claim.cycle} and keeps its claim; "
        "once you know that it is dead, run `ralph memory recover --take-over`"
    )
    return state


def _memory(salvaged: Salvage, state: OpenState, anchors: Iterable[Anchor], now: datetime) -> Memory:
    old = salvaged.memory or Memory()
    serial = max([old.header.serial, *(anchor.serial for anchor in anchors)])
    header = replace(
        old.header,
        lineage=key_of("lineage", "recovered", salvaged.head, old.header.lineage, str(serial), now.isoformat()),
        serial=serial,
        generation=old.header.generation + 1,
        next_due_at=None,
        high_streak=0,
        high_cause="",
        cursors=tuple(pair for pair in old.header.cursors if pair[0] == orders.CURSOR),  # what was obeyed stays obeyed
    )
    active = tuple(_note(mission) for mission in state.missions if mission.status.active)
    measured = reflect.learnings(dict(state.acceptance), state.posted)
    return replace(old, header=header, active=active, measured=measured)


def _note(mission: Mission) -> MissionNote:
    return MissionNote(
        mission.id,
        mission.title,
        mission.status,
        mission.issue,
        mission.pull,
        mission.started_cycle,
        mission.last_action,
        mission.next_step,
    )
