"""Rebuilds memory from the forge and the readable parts of the old one.

The branch is evidence, not authority: intents and plans are only carried over from a commit this clone knows as its
own, and nothing is sent or redone here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.errors import Damaged, Missing, UserError
from ralph_mission.mission import gather
from ralph_mission.mission.gather import is_forge_lost
from ralph_mission.mission.issues.record import OPEN
from ralph_mission.mission.issues.tasks import WORKING
from ralph_mission.mission.lifecycle import approval, chat_commands, ownership
from ralph_mission.mission.lifecycle.approval import standing_label
from ralph_mission.mission.memory import learning
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.mission.model.ledger import (
    Anchor,
    MemoryBatch,
    MonitorRecord,
    OpenState,
    Record,
    WorkRecord,
    key_of,
    work_key,
)
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Action, Mission, MissionQuestion, Status, update_mission
from ralph_mission.mission.model.proposal import lookup
from ralph_mission.mission.operations.salvage import (
    Recoverable,
    Recovered,
    RecoveryReport,
    Salvage,
    Trace,
    rebuild_ledger,
    traces_on,
)
from ralph_mission.mission.ports import Forge, Store

ASK_AGAIN = "recovered"  # no text has this hash: the next cycle posts the proposal's line again
HUSHED = timedelta(hours=24)  # what is seen by then may have been reported in public before memory was lost


def recover_memory(store: Recoverable, forge: Forge, now: datetime, take_over: bool = False) -> Recovered:
    """Rebuild memory and report the result. Raises UserError if a cycle is running here."""
    with store.exclusive() as ours:
        if not ours:
            raise UserError("a cycle is running", "wait until it has ended")
        repaired = store.repair()
        salvaged = store.salvage()
        report = RecoveryReport([*repaired, *salvaged.recovered], list(salvaged.lost))
        anchors = [anchor for anchor in (salvaged.anchor, _forge_anchor(forge, report)) if anchor]
        traces = traces_on(forge)
        if salvaged.state and is_forge_lost(forge, salvaged.state):
            salvaged = _without_forge(salvaged, report)
        records, open_state = rebuild_ledger(salvaged, traces, forge, report)
        state = replace(open_state, missions=rebuild_missions(open_state, traces, forge, now, report))
        state = _claim(state, store, take_over, report)
        found = at_work(records, state, forge, now, take_over)
        records |= {record.key: record for record in found}
        state = replace(state, working=tuple(record.issue for record in found))
        state = replace(state, next_mission=next_mission(state, traces))
        if not _whole(salvaged, anchors):
            state = _quieten(state, now, report)
        if salvaged.state is None:
            state = _recount(state, store, report)
        memory = _memory(salvaged, state, anchors, now)
        anchor = store.restart(MemoryBatch(memory, state, tuple(records.values()), "ralph: memory recovered"), salvaged)
        forge.show_dashboard("", anchor)
    return Recovered(anchor, tuple(report.recovered), tuple(report.lost))


def _forge_anchor(forge: Forge, report: RecoveryReport) -> Anchor | None:
    """The position recorded in the forge; an unreadable one is written again at the end."""
    try:
        return forge.anchor()
    except Damaged as damaged:
        report.lost.append(f"how far memory had come by the forge: {damaged.what}")
        return None


def _without_forge(salvaged: Salvage, report: RecoveryReport) -> Salvage:
    """What was salvaged, without what stood on a forge that holds nothing of it any more."""
    assert salvaged.state
    gone = [mission for mission in salvaged.state.missions if mission.thread]
    report.lost += [f"mission #{mission.id}: nothing of it is left on the forge: {mission.title}" for mission in gone]
    missions = tuple(mission for mission in salvaged.state.missions if not mission.thread)
    records = tuple(record for record in salvaged.records if not isinstance(record, MonitorRecord))
    doubtful = tuple(record for record in salvaged.doubtful if not isinstance(record, MonitorRecord))
    state = replace(salvaged.state, missions=missions, working=())
    return replace(salvaged, state=state, records=records, doubtful=doubtful)


def _whole(salvaged: Salvage, anchors: Iterable[Anchor]) -> bool:
    """Whether nothing of what was published can be missing: our last commit is there, and none is known after."""
    commits = {anchor.oid for anchor in anchors}
    return salvaged.state is not None and not salvaged.broken and commits == {salvaged.head}


def _quieten(state: OpenState, now: datetime, report: RecoveryReport) -> OpenState:
    """Posts leave no mark that could be found again: what is seen within a day counts as emitted."""
    report.lost.append(
        "what was posted: what is seen within a day from now is not posted, since it may have been before"
    )
    missions = tuple(_silent(mission) for mission in state.missions)
    return replace(state, finished=(), missions=missions, hushed_until=now + HUSHED)


def _silent(mission: Mission) -> Mission:
    """The mission; of one that publishes, only the question is left: nobody knows any more which network has it."""
    if mission.action is not Action.PUBLISH:
        return mission
    status = Status.DISCOVERED if mission.status in (Status.PLANNED, Status.EXECUTING) else mission.status
    return update_mission(mission, action=Action.OPEN_PROPOSAL, status=status, proposal_hash=ASK_AGAIN, pending=())


def _recount(state: OpenState, store: Recoverable, report: RecoveryReport) -> OpenState:
    """What people and networks answered, counted again from the journal that is still there."""
    try:
        documents = tuple(store.journal())
        tallies, posts = learning.acceptance(documents), learning.posts(documents)
    except (UserError, LookupError, TypeError, ValueError, AttributeError):
        report.lost.append("what was learned: the journal cannot be read, so its verdicts and posts are not counted")
        return state
    if documents:
        report.recovered.append(f"what was learned, counted again from the journals of {len(documents)} cycles")
    return replace(state, acceptance=tuple(sorted(tallies.items())), posted=posts)


def _claim(state: OpenState, store: Store, take_over: bool, report: RecoveryReport) -> OpenState:
    claim = state.claim
    if claim is None:
        return state
    if take_over or store.proven_dead(claim.holder):
        report.recovered.append(f"the claim of {claim.holder} on cycle {claim.cycle} is lifted")
        return replace(state, claim=None)
    report.lost.append(
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
        # what was obeyed stays obeyed
        cursors=tuple(pair for pair in old.header.cursors if pair[0] == chat_commands.CURSOR),
    )
    measured = learning.learnings(dict(state.acceptance), state.posted)
    return replace(old, header=header, active=learning.under_way(state.missions), measured=measured)


# --- missions ---


def rebuild_missions(
    state: OpenState, traces: tuple[Trace, ...], forge: Forge, now: datetime, report: RecoveryReport
) -> tuple[Mission, ...]:
    """Readable missions, and those that only the forge knows."""
    known = {mission.thread: mission for mission in state.missions if mission.thread and not mission.status.ended}
    pulls = {trace.mission: trace.thing for trace in traces if isinstance(trace.thing, Pull)}
    for trace in traces:
        thing = trace.thing
        own = thing if isinstance(thing, Pull) and trace.alone else None
        if trace.remark or not (own or (isinstance(thing, Issue) and trace.mission)) or thing.number in known:
            continue
        if thing.state == "open" and "ralph:mission" in thing.labels:
            number = trace.mission or next_mission(replace(state, missions=(*known.values(),)), traces)
            known[thing.number] = _rebuild_mission(trace, number, own or pulls.get(trace.mission), forge, now)
            report.recovered.append(
                f"mission #{number} from {'pull request' if own else 'issue'} #{thing.number}: {thing.title}"
            )
    for mission in _peoples_own(traces, forge, known, now):
        known[mission.issue] = mission
        report.recovered.append(f"mission #{mission.id} from pull request #{mission.pull}: {mission.title}")
    return tuple(_one_of_each_number(known.values(), traces, report))


def _one_of_each_number(
    missions: Iterable[Mission], traces: tuple[Trace, ...], report: RecoveryReport
) -> Iterable[Mission]:
    """Of missions that claim one number, the one whose issue or pull request says so: a cycle refuses two."""
    issues = {(trace.mission, trace.thing.number) for trace in traces if isinstance(trace.thing, Issue)}
    alone = {(trace.members, trace.thing.number) for trace in traces if trace.alone}
    by_id: dict[int, Mission] = {}
    for mission in sorted(
        missions, key=lambda one: (one.id, one.thread) not in issues and (one.members, one.thread) not in alone
    ):
        first = by_id.setdefault(mission.id, mission)
        if first is not mission:
            report.lost.append(f"mission #{mission.id} on #{mission.thread}: #{first.thread} has that number")
    return by_id.values()


def _peoples_own(traces: Iterable[Trace], forge: Forge, known: Collection[int], now: datetime) -> Iterable[Mission]:
    """Missions from people's own issues whose pull request waits for them; the others are adopted again."""
    pulls = [trace.thing for trace in traces if isinstance(trace.thing, Pull)]
    for number, (mission, pull) in gather.pulls_for(pulls, forge.identity().id).items():
        if number in known or not mission:
            continue
        with suppress(Missing):  # nothing is left of it to work on
            issue = forge.issue(number)
            authorised = frozenset(p.id for p in approval.list_deciders(issue, pull) if forge.may_approve(p))
            if issue.state == "open" and ownership.is_requested(issue, authorised):
                adopted = gather.mission_of_issue(issue, mission, 0, now, agent=True)
                yield gather.found_again(adopted, mission, issue, pull, authorised)


def _rebuild_mission(trace: Trace, number: int, pull: Pull | None, forge: Forge, now: datetime) -> Mission:
    action, tier, thing = trace.action, lookup(trace.kind).tier, trace.thing
    rebuilt = Mission(
        number,
        key_of("mission", "recovered", str(thing.number)),
        thing.title,
        trace.kind,
        action,
        tier,
        _status(thing, pull, action),
        0,
        thing.created_at,
        now,
        members=trace.members,
        issue=0 if trace.alone else thing.number,
        question=MissionQuestion(proposal_hash=ASK_AGAIN if action is Action.OPEN_PROPOSAL else ""),
        last_action="found again when memory was recovered",
    )
    if pull is None:
        return rebuilt
    authorised = frozenset(r.author.id for r in pull.reviews if forge.may_approve(r.author))
    return gather.caught_up(rebuilt, pull, authorised)


def _status(thing: Issue | Pull, pull: Pull | None, action: Action) -> Status:
    for label, status in gather.STANDING:
        if label in thing.labels:
            return status
    if pull is not None:
        return Status.IN_REVIEW
    return Status.EXECUTING if action is Action.OPEN_FIX else Status.DISCOVERED


def next_mission(state: OpenState, traces: Iterable[Trace]) -> int:
    """An unused mission number."""
    used = [mission.id for mission in state.missions] + [trace.mission for trace in traces]
    return max([state.next_mission, *(number + 1 for number in used)])


# --- issues at work ---


def at_work(
    records: Mapping[str, Record], state: OpenState, forge: Forge, now: datetime, take_over: bool
) -> tuple[WorkRecord, ...]:
    """The records of work that is not at its end. With `take_over` nobody's: the next run brings it there."""
    numbers = sorted({*state.working, *_labelled_by_us(forge)})
    found = (_work_record(records.get(work_key(number)), number, now) for number in numbers)
    return tuple(replace(record, holder="") if take_over else record for record in found)


def _labelled_by_us(forge: Forge) -> Iterator[int]:
    us = forge.identity().id
    for issue in forge.issues("open", (WORKING,)):
        label = standing_label(forge.issue(issue.number), WORKING)
        if label is not None and label.actor.id == us:
            yield issue.number


def _work_record(known: Record | None, number: int, now: datetime) -> WorkRecord:
    """What was known of it; where nothing was, one try is counted, and nobody has it."""
    if not isinstance(known, WorkRecord):
        return WorkRecord(work_key(number), number, "", "", "working", 1, "", now)
    return known if known.state in OPEN else replace(known, state="working")
