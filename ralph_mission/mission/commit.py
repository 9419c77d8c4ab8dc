"""What is committed to the memory branch, batch by batch: intents, settlements, the cycle's end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import conclude, decide
from ralph_mission.mission.conclude import Conclusion
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision, not_attempted
from ralph_mission.mission.lifecycle.checkboxes import ONCE
from ralph_mission.mission.memory import learning, schedule
from ralph_mission.mission.memory.schedule import book_spending
from ralph_mission.mission.memory.text import trim_memory
from ralph_mission.mission.model.cycle import CycleDecisions, CycleReport, CycleSummary, Lesson, Situation
from ralph_mission.mission.model.effects import OpenIssue, OpenPull, Publish, Receipt, opens_mission
from ralph_mission.mission.model.forge import Measured, Posted
from ralph_mission.mission.model.ledger import (
    KEPT_IDS,
    KEPT_WAKES,
    Claim,
    EffectRecord,
    FindingRecord,
    MemoryBatch,
    MemorySnapshot,
    MonitorRecord,
    OpenState,
    Record,
    absorb,
    build_intents,
    may_be_done,
    remaining,
    settle,
)
from ralph_mission.mission.model.memory import CycleNote, Memory
from ralph_mission.mission.model.mission import Action, Finding, Mission
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.publishing import posting
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class Journal:
    """One cycle for auditors: traces every effect to its finding, rules, tier and approver."""

    report: CycleReport
    telling: CycleSummary  # the name on the memory branch, for ever
    approvers: tuple[tuple[str, str], ...]  # decision key, who approved
    lessons: tuple[Lesson, ...]
    deeds: tuple[tuple[str, Receipt], ...]  # decision key, receipt; named so on the memory branch, for ever
    counted: tuple[Lesson, ...] = ()  # the lessons that were not on record already
    posts: tuple[Posted, ...] = ()  # posts of this cycle, and what networks reported of earlier ones


# --- before anything happens ----------------------------------------------------------


def prepare_intents(
    situation: Situation, decided: CycleDecisions, known: Mapping[str, Record], holder: str, at: datetime
) -> MemoryBatch | None:
    """Claim, intents of every allowed effect that was not done before, and the cost so far.

    None if there are no such effects: then money reserved for an agent stays reserved until the end.
    """
    allowed = [decision.proposal for decision in decided.allowed if decision.proposal.effects]
    records = [record for proposal in allowed for record in _intents(proposal, situation, known)]
    if not any(isinstance(record, EffectRecord) for record in records):
        return None
    opened = tuple(r.key for r in records if isinstance(r, EffectRecord) and r.state == "intended")
    state = replace(
        situation.state,
        claim=Claim(holder, situation.cycle, situation.cycle_id, at),
        effects=(*situation.state.effects, *opened),
        missions=begin_missions(situation.missions, allowed, known),
        recent=(*conclude.still_counted(situation), *conclude.automatic_lines(situation, allowed)),
        opened=(*decide.threads_of_week(situation), *conclude.opened_threads(situation, allowed)),
        next_mission=decide.next_mission(situation) + sum(p.new_mission for p in allowed),
    )
    subject = f"ralph: cycle {situation.cycle}: intends {len(opened)} effects"
    return MemoryBatch(_book_cost(situation, 0.0), state, tuple(records), subject)


def intend_more(
    state: OpenState,
    situation: Situation,
    questions: CycleDecisions,
    refused: Sequence[ExecutedDecision],
    known: Mapping[str, Record],
) -> MemoryBatch | None:
    """What a person is asked about refusals, within the same claim; None if that is nothing. What was refused is
    settled, so that a runner that dies now leaves only the question."""
    allowed = [decision.proposal for decision in questions.allowed if decision.proposal.effects]
    settled = {record.key: record for record in settled_records(refused, known)}
    now_known = {**known, **settled}
    intents = {record.key: record for proposal in allowed for record in _intents(proposal, situation, now_known)}
    opened = tuple(one.key for one in intents.values() if isinstance(one, EffectRecord) and one.state == "intended")
    if not opened:
        return None
    state = close_effects(state, receipts_of(refused))
    state = replace(
        state,
        effects=(*state.effects, *opened),
        missions=begin_missions(state.missions, allowed, now_known),
    )
    subject = f"ralph: cycle {situation.cycle}: asks about {len(refused)} refusals"
    return MemoryBatch(_book_cost(situation, 0.0), state, tuple((settled | intents).values()), subject)


def _book_cost(situation: Situation, more: float) -> Memory:
    """Memory with this cycle's cost so far, and `more` that is reserved."""
    header = book_spending(situation.memory.header, situation.now, situation.usage.cost_usd + more)
    return replace(situation.memory, header=replace(header, cursors=conclude.carry_cursors(situation)))


def _intents(proposal: Proposal, situation: Situation, known: Mapping[str, Record]) -> Iterable[Record]:
    moved = proposal.interim or proposal.before
    mission = moved.id if moved else 0
    facts = (proposal.key, proposal.action, proposal.kind, mission, situation.cycle, situation.now)
    for record in build_intents(remaining(proposal.effects, known), *facts):
        yield posting.tried_again(record, known.get(record.key))
    yield from build_intents(proposal.planned, *facts, state="planned")
    if proposal.action is not Action.PUBLISH:  # a posted finding is known once nothing of it is left to post
        yield from learning.acted_on(proposal.members, situation.records, situation.cycle, mission)
    if proposal.monitor:
        yield proposal.monitor


def begin_missions(
    missions: Iterable[Mission], allowed: Iterable[Proposal], known: Mapping[str, Record]
) -> tuple[Mission, ...]:
    """The missions while their effects are carried out. What an ended run did of them is in there already, since
    nobody absorbs its receipt later if this run dies as well."""
    begun = {mission.id: mission for mission in missions}
    for proposal in allowed:
        if mission := proposal.interim:
            for effect in proposal.effects:
                record = known.get(effect.key)
                if isinstance(record, EffectRecord) and may_be_done(record) and record.receipt:
                    mission = absorb(mission, effect, record.receipt)
            begun[mission.id] = mission
    return tuple(begun.values())


def reserve_cost(situation: Situation, mission: Mission | None, usd: float, holder: str, at: datetime) -> MemoryBatch:
    """Claim memory and reserve money for an agent, or for an observer that calls a model (no mission), before it
    starts: a runner that dies counts as having spent all of it."""
    missions = situation.state.missions
    state = replace(
        situation.state,
        claim=Claim(holder, situation.cycle, situation.cycle_id, at),
        missions=tuple(mission if mission and one.id == mission.id else one for one in missions),
    )
    what = f"an agent works on mission {mission.id}" if mission else "a model is asked about what is to be seen"
    subject = f"ralph: cycle {situation.cycle}: {what}"
    return MemoryBatch(_book_cost(situation, usd), state, (), subject)


# --- an earlier run's leftovers -------------------------------------------------------


def settle_open(past: MemorySnapshot, applied: Sequence[AppliedEffect], records: Mapping[str, Record]) -> MemoryBatch:
    """Store what was found out about intended effects (by looking, or from a person), and update their missions."""
    settled = [
        settle(record, item.receipt)
        for item in applied
        if isinstance(record := records.get(item.effect.key), EffectRecord)
    ]
    by_key = {item.effect.key: item for item in applied}
    missions = tuple(_absorb_receipts(mission, settled, by_key) for mission in past.state.missions)
    state = close_effects(replace(past.state, claim=None, missions=missions), [item.receipt for item in applied])
    state, forgotten = _without_unopened(state, settled, by_key, records)
    state = replace(state, posted=posting.remember_posts(state.posted, _posted_late(settled, by_key)))
    unposted = _forget_unposted(settled, by_key, records)
    subject = f"ralph: settled {len(applied)} effects of an earlier run"
    return MemoryBatch(past.memory, state, (*settled, *forgotten, *unposted), subject)


def _posted_late(settled: Iterable[EffectRecord], applied: Mapping[str, AppliedEffect]) -> Iterable[Posted]:
    """Posts that turned out to have been sent."""
    for record in settled:
        item = applied[record.key]
        if post := posting.to_posted(item.effect, item.receipt, record.kind, record.at):
            yield post


def _forget_unposted(
    settled: Iterable[EffectRecord], applied: Mapping[str, AppliedEffect], records: Mapping[str, Record]
) -> Iterable[FindingRecord]:
    """What certainly was not posted may be posted later, so it is no longer recorded as known."""
    for record in settled:
        effect = applied[record.key].effect
        before = records.get(effect.finding) if isinstance(effect, Publish) and record.state == "failed" else None
        if isinstance(before, FindingRecord) and isinstance(effect, Publish):
            yield learning.not_said(before, effect.occurrence)


def _without_unopened(
    state: OpenState,
    settled: Iterable[EffectRecord],
    applied: Mapping[str, AppliedEffect],
    records: Mapping[str, Record],
) -> tuple[OpenState, tuple[FindingRecord, ...]]:
    """Remove missions whose thread was never opened."""
    unopened = [r for r in settled if r.state == "failed" and opens_mission(applied[r.key].effect)]
    ids = {record.mission for record in unopened}
    times = {record.at for record in unopened if record.action is Action.OPEN_FIX}  # only fixes change lines unasked
    gone = [mission for mission in state.missions if mission.id in ids]
    members = [records.get(member) for mission in gone for member in mission.members]
    return (
        replace(
            state,
            missions=tuple(mission for mission in state.missions if mission not in gone),
            next_mission=state.next_mission - any(mission.id == state.next_mission - 1 for mission in gone),
            recent=tuple(entry for entry in state.recent if entry[0] not in times),
            opened=tuple(entry for entry in state.opened if not entry[1] or entry[1] not in ids),
        ),
        tuple(learning.not_acted_on(record) for record in members if isinstance(record, FindingRecord)),
    )


def _absorb_receipts(
    mission: Mission, settled: Iterable[EffectRecord], applied: Mapping[str, AppliedEffect]
) -> Mission:
    for record in settled:
        if record.mission == mission.id:
            mission = absorb(mission, applied[record.key].effect, applied[record.key].receipt)
    return mission


def close_effects(state: OpenState, receipts: Iterable[Receipt]) -> OpenState:
    """The state after these receipts: their effects are no longer open, and those in doubt are listed."""
    statuses = {receipt.key: receipt.status for receipt in receipts}
    waiting = (key for key in state.unknown if statuses.get(key, "unknown") == "unknown")
    doubtful = (key for key, status in statuses.items() if status == "unknown")
    still = tuple(key for key in state.effects if key not in statuses)
    return replace(state, effects=still, unknown=tuple(dict.fromkeys((*waiting, *doubtful))))


# --- the end --------------------------------------------------------------------------


def receipts_of(acts: Sequence[ExecutedDecision]) -> tuple[Receipt, ...]:
    """Every effect's receipt, including those a stop held back."""
    return (*(item.receipt for act in acts for item in act.applied), *not_attempted(acts))


def settled_records(acts: Sequence[ExecutedDecision], intended: Mapping[str, Record]) -> Iterable[EffectRecord]:
    """The write-ahead records, completed by their receipts."""
    for receipt in receipts_of(acts):
        record = intended.get(receipt.key)
        if isinstance(record, EffectRecord) and record.state == "intended":
            yield settle(record, receipt)


def write(
    situation: Situation,
    decided: CycleDecisions,
    acts: Sequence[ExecutedDecision],
    conclusion: Conclusion,
    intended: Mapping[str, Record],
    report: CycleReport,
    cycle_summary: CycleSummary,
    base: OpenState,
) -> MemoryBatch:
    """Receipts, memory, journal and archive in one commit."""
    state = next_state(situation, acts, conclusion, base)
    memory, overflow = trim_memory(_memory(situation, acts, conclusion, state.posted))
    return MemoryBatch(
        memory,
        state,
        tuple(_records(situation, acts, conclusion, intended)),
        f"ralph: cycle {situation.cycle}: {_subject(acts)}",
        journal=(
            situation.cycle_id,
            _journal(situation, decided, acts, conclusion, report, cycle_summary, state.posted),
        ),
        archive=((f"{situation.now:%Y-%m}", overflow),) if overflow else (),
        paused=True if situation.world.requested("pause") else None,
    )


def next_state(
    situation: Situation, acts: Sequence[ExecutedDecision], conclusion: Conclusion, base: OpenState
) -> OpenState:
    """The state after these decisions were carried out."""
    silenced, wakes = tuple(sorted(decide.silenced_kinds(situation))), base.wakes
    if not situation.steering:  # the cycle ran when it was due, or later
        wakes = (*base.wakes, (situation.now, conclusion.header.drift_seconds))[-KEPT_WAKES:]
    state = replace(
        base,
        claim=None,
        missions=conclusion.missions,
        acceptance=tuple(sorted(conclusion.acceptance.items())),
        backlog=conclusion.backlog,
        recent=conclusion.recent,
        opened=conclusion.opened,
        unverified=decide.failed_verifications(situation),
        held=situation.state.held,
        silenced=silenced,
        done=(*base.done, situation.cycle_id)[-KEPT_IDS:],
        posted=posting.remember_posts(base.posted, conclusion.posted, collect_measurements(situation), situation.now),
        finished=conclusion.finished,
        hushed_until=base.hushed_until if decide.is_quiet_period(situation) else None,
        wakes=wakes,
        watched=_watched(acts, base),
        obeyed=base.obeyed + any(situation.world.requested(verb) for verb in ONCE),
        ignored=situation.world.ignored,
        red=decide.red_base(situation),
    )
    return close_effects(state, receipts_of(acts))


def collect_measurements(situation: Situation) -> tuple[Measured, ...]:
    """What networks reported in this cycle about our own posts."""
    return tuple(measured for observation in situation.observations for measured in observation.measured)


def _watched(acts: Sequence[ExecutedDecision], base: OpenState) -> tuple[MonitorRecord, ...]:
    """The dashboard's lists, updated where something was added."""
    lists = {record.kind: record for record in base.watched}
    done = (act.decision.proposal.monitor for act in acts if act.complete)
    lists |= {record.kind: record for record in done if record}
    return tuple(lists[kind] for kind in sorted(lists))


def _records(
    situation: Situation, acts: Sequence[ExecutedDecision], conclusion: Conclusion, intended: Mapping[str, Record]
) -> Iterable[Record]:
    yield from settled_records(acts, intended)
    for act in acts:
        if act.decision.proposal.monitor and act.complete:
            yield act.decision.proposal.monitor
            yield from learning.acted_on(act.decision.proposal.members, situation.records, situation.cycle, 0)
    for act in conclusion.dropped:
        yield from _reopened_records(act, situation)
    yield from _public_records(conclusion.fully_posted, situation)
    findings = {**situation.records, **{k: r for k, r in intended.items() if isinstance(r, FindingRecord)}}
    yield from learning.apply_lessons(conclusion.lessons, findings)


def _public_records(findings: Iterable[Finding], situation: Situation) -> Iterable[Record]:
    """Records of what was posted; if one thing was posted twice in a cycle, of both."""
    records: dict[str, Record] = {}
    for finding in findings:
        for record in learning.acted_on((finding,), {**situation.records, **records}, situation.cycle, 0):
            records[record.key] = record
    return records.values()


def _reopened_records(act: ExecutedDecision, situation: Situation) -> Iterable[FindingRecord]:
    """What certainly was not opened may be proposed again, so its members are no longer recorded as known."""
    for member in act.decision.proposal.members:
        before = situation.records.get(member.fingerprint)
        if isinstance(before, FindingRecord):
            yield before
        else:
            yield FindingRecord(member.fingerprint, member.kind, member.title, (), situation.cycle)


def _memory(
    situation: Situation,
    acts: Sequence[ExecutedDecision],
    conclusion: Conclusion,
    posts: Sequence[Posted],
) -> Memory:
    header = conclusion.header
    note = CycleNote(
        situation.cycle,
        situation.now.replace(second=0, microsecond=0),
        tuple(_observation_lines(situation)),
        tuple(_action_lines(acts)),
        header.urgency,
        _next_cycle(situation, conclusion),
    )
    gone_on = {mission.issue for mission in situation.missions}
    issues = tuple(note for note in situation.memory.issues if note.state != "done" or note.issue not in gone_on)
    memory = replace(situation.memory, header=header, issues=issues)
    return learning.update_notes(memory, conclusion.missions, conclusion.ended, note, conclusion.acceptance, posts)


def _next_cycle(situation: Situation, conclusion: Conclusion) -> str:
    """The pause after a cycle of this urgency; no pause while work is ready."""
    pause = schedule.format_pause(situation.settings.rhythm.pause(conclusion.header.urgency))
    return f"{pause} (at once: work is ready)" if conclusion.at_once else pause


def _observation_lines(situation: Situation) -> Iterable[str]:
    for observation in situation.observations:
        if observation.status == "skipped":
            continue
        unavailable = " unavailable" if observation.status == "unavailable" else ""
        detail = wording.plain(observation.detail, 200) or f"{len(observation.signals)} seen"
        yield f"{observation.name}{unavailable}: {detail}"
        yield from (f"not checked: {wording.plain(one, 200)}" for one in observation.unchecked)
    for finding in situation.fresh[: learning.SHOWN]:
        yield wording.plain(finding.title)
    if len(situation.fresh) > learning.SHOWN:
        yield f"and {len(situation.fresh) - learning.SHOWN} more"


def _action_lines(acts: Sequence[ExecutedDecision]) -> Iterable[str]:
    for act in acts:
        proposal = act.decision.proposal
        opened = [f"#{d.receipt.number}" for d in act.applied if isinstance(d.effect, OpenIssue | OpenPull)]
        numbers = f" ({', '.join(opened)})" if opened else ""
        unfinished = "" if act.complete else " (not finished)"
        yield f"{proposal.action}: {proposal.title}{numbers}{unfinished}"
    if not acts:
        yield "nothing to do"


def _journal(
    situation: Situation,
    decided: CycleDecisions,
    acts: Sequence[ExecutedDecision],
    conclusion: Conclusion,
    report: CycleReport,
    cycle_summary: CycleSummary,
    posts: Sequence[Posted],
) -> Journal:
    approvers = tuple((d.proposal.key, d.proposal.approver) for d in decided.decisions if d.proposal.approver)
    applied = tuple((act.decision.proposal.key, item.receipt) for act in acts for item in act.applied)
    counted = learning.worth_reporting(conclusion.lessons, situation.records)
    news = {post.key for post in conclusion.posted} | {changed.key for changed in collect_measurements(situation)}
    changed = tuple(post for post in posts if post.key in news)
    return Journal(report, cycle_summary, approvers, conclusion.lessons, applied, counted, changed)


def _subject(acts: Sequence[ExecutedDecision]) -> str:
    return ", ".join(str(act.decision.proposal.action) for act in acts) or "nothing to do"
