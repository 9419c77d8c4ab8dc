"""What a cycle comes to: missions after their effects, lessons, what waits, when to look again. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.mission import decide
from ralph_mission.mission.coder import tasks
from ralph_mission.mission.execute import ExecutedDecision
from ralph_mission.mission.findings import identity
from ralph_mission.mission.memory import learning, schedule
from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.cycle import CycleDecisions, Lesson, MissionFacts, MissionStep, Situation
from ralph_mission.mission.model.effects import Effect, MergePull, OpenPull, PushBranch, Receipt, opens_mission
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.ledger import FinishedMission, absorb, may_be_done
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import (
    Acceptance,
    Action,
    FailureReason,
    Finding,
    Limits,
    Mission,
    Observation,
    Status,
    Verdict,
    update_mission,
)
from ralph_mission.mission.model.proposal import BUMPS, Proposal
from ralph_mission.mission.ports import THINKER
from ralph_mission.mission.publishing import posting
from ralph_mission.safety.bumps import counted_patch
from ralph_mission.safety.patch import measure
from ralph_mission.values import dataclass

CURSORS = 200_000  # characters, as they are written; the head of the memory file has 256 KiB
CUT_BY_CAP = frozenset({"new-mission-cap", "action-cap", "auto-pr-cap"})  # which the very next cycle lifts
MERGE_WAITS = (FailureReason.NOT_ATTEMPTED, FailureReason.QUEUED, FailureReason.BEHIND)  # checks, a queue, its base
SOON_AFTER_APPROVAL = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Everything that is reported and written at the end."""

    missions: tuple[Mission, ...]  # that go on, parked ones included
    ended: tuple[Mission, ...]
    dropped: tuple[ExecutedDecision, ...]  # threads and lists that certainly were not opened or brought up to date
    lessons: tuple[Lesson, ...]
    acceptance: Mapping[str, Acceptance]
    backlog: tuple[Finding, ...]
    recent: tuple[tuple[datetime, str, int], ...]
    header: Header
    at_once: bool = False  # work is ready: the next cycle need not wait
    fully_posted: tuple[Finding, ...] = ()  # of these nothing is left to be posted
    finished: tuple[FinishedMission, ...] = ()  # what is to be announced
    posted: tuple[Posted, ...] = ()  # what went out in this cycle
    opened: tuple[tuple[datetime, int], ...] = ()  # threads that nobody asked for, as `OpenState` has them


def conclude(situation: Situation, decided: CycleDecisions, acts: Sequence[ExecutedDecision]) -> Conclusion:
    """The cycle's result."""
    by_key = {act.decision.proposal.key: act for act in acts}  # the last one, where a refusal was asked about at once
    dropped = tuple(act for act in by_key.values() if _came_to_nothing(act))
    missions = {mission.id: mission for mission in situation.missions}
    for mission in _advance_missions(decided, by_key, situation.settings.limits):
        missions[mission.id] = mission
    for act in dropped:
        if act.decision.proposal.interim:
            missions.pop(act.decision.proposal.interim.id, None)
    lessons = tuple(_lessons(decided, by_key))
    everyone = tuple(missions.values())
    over = learning.ended_missions(everyone, situation.now)
    posted = decide.findings_fully_posted(situation, {effect.key: receipt for effect, receipt in _receipts(acts)})
    news = identity.list_announceable(over, situation.settings.announce, situation.cycle, situation.now)
    at_once = _ready(situation, decided, acts) or _agent_waits(situation, everyone) or _has_news(situation, news)
    at_once = at_once or _were_posts_answered(situation, acts)
    proposals = [act.decision.proposal for act in by_key.values() if act not in dropped]
    opened = (*decide.threads_of_week(situation), *opened_threads(situation, proposals))
    return Conclusion(
        tuple(mission for mission in everyone if mission not in over),
        over,
        dropped,
        lessons,
        learning.learn(dict(situation.state.acceptance), lessons, situation.records),
        _waiting(situation, tuple(by_key.values()), posted),
        (*still_counted(situation), *automatic_lines(situation, proposals)),
        _look_soon(situation, everyone, tuple(by_key.values()), _header(situation, decided, at_once)),
        at_once,
        posted,
        (*_findings_to_announce(situation, posted, _in_doubt(situation, acts)), *news),
        tuple(_new_posts(situation, acts)),
        _unaccepted(opened, lessons),
    )


# --- missions -------------------------------------------------------------------------


def _advance_missions(
    decided: CycleDecisions, acts: Mapping[str, ExecutedDecision], limits: Limits
) -> Iterable[Mission]:
    refusing = {d.proposal.key: d.rules for d in decided.decisions if d.verdict is not Verdict.ALLOW}
    for step in decided.steps:
        act = acts.get(step.proposal.key) if step.proposal else None
        rules = refusing.get(step.proposal.key, ()) if step.proposal else ()
        stays = _waiting_its_turn(step) if _cut_by_cap(rules, limits) else step.mission
        yield update_mission(after(act) if act else stays, refused=() if act else rules)
    stepped = {step.proposal.key for step in decided.steps if step.proposal}
    for decision in decided.decisions:
        proposal = decision.proposal
        act = acts.get(proposal.key)
        if proposal.key in stepped or not proposal.interim or decision.verdict is not Verdict.ALLOW:
            continue
        yield after(act) if act else proposal.interim


def _waiting_its_turn(step: MissionStep) -> Mission:
    """The mission without its step, which comes in a later cycle: that is no lack of progress to ask a person about."""
    before = step.proposal.before if step.proposal else None
    return update_mission(step.mission, stalled_cycles=before.progress.stalled_cycles) if before else step.mission


def _cut_by_cap(rules: Collection[str], limits: Limits) -> bool:
    """Whether a cap alone keeps something from being done now, and will not in a cycle to come."""
    for_good = frozenset() if limits.auto_prs_per_cycle else frozenset({"auto-pr-cap"})
    return bool(rules) and CUT_BY_CAP - for_good >= set(rules)


def after(act: ExecutedDecision) -> Mission:
    """The mission once the receipts are in: where it was going, or where it got stuck."""
    proposal = act.decision.proposal
    mission = proposal.after if act.complete else proposal.interim
    assert mission is not None
    for item in act.applied:
        mission = absorb(mission, item.effect, item.receipt)
    return mission


def refused_for_good(acts: Iterable[ExecutedDecision]) -> tuple[ExecutedDecision, ...]:
    """Changes that met a refusal that only a person can lift."""
    return tuple(
        act
        for act in acts
        if any(
            isinstance(item.effect, PushBranch | OpenPull | MergePull)
            and item.receipt.reason is FailureReason.NEEDS_PERSON
            for item in act.applied
        )
    )


def _came_to_nothing(act: ExecutedDecision) -> bool:
    """Whether a thread certainly was not opened, or a list of what is watched does not say what it was to say."""
    statuses = {item.effect.key: item.receipt.status for item in act.applied}
    proposal = act.decision.proposal
    return any(
        statuses.get(effect.key, "failed") == "failed"
        for effect in proposal.effects
        if proposal.monitor or opens_mission(effect)
    )


# --- lessons --------------------------------------------------------------------------


def _lessons(decided: CycleDecisions, acts: Mapping[str, ExecutedDecision]) -> Iterable[Lesson]:
    for step in decided.steps:
        act = acts.get(step.proposal.key) if step.proposal else None
        happened = act.complete if act else step.proposal is None
        if step.lesson and step.lesson.members and happened:
            yield step.lesson


# --- what waits -----------------------------------------------------------------------


def _waiting(situation: Situation, acts: Sequence[ExecutedDecision], posted: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings that nothing was done about, in the plan's order; after a mere word of a person, those of before."""
    if situation.steering:
        return situation.state.backlog
    done = {m.fingerprint for act in acts if _counts(act) for m in act.decision.proposal.members}
    done |= {finding.fingerprint for finding in posted}
    order = {fp: place for place, fp in enumerate(fp for t in situation.plan.ranked_findings for fp in t.members)}
    waiting = [finding for finding in situation.fresh if finding.fingerprint not in done]
    doubt = _in_doubt(situation, acts)
    findings = (finding for finding in situation.findings if (finding.fingerprint, finding.signal.occurrence) in doubt)
    first = sorted(waiting, key=lambda f: order.get(f.fingerprint, len(order)))
    return identity.to_backlog((*first, *findings), situation.now)


def _in_doubt(situation: Situation, acts: Sequence[ExecutedDecision]) -> frozenset[posting.Key]:
    return posting.in_doubt(situation.records, _receipts(acts), situation.now)


def _counts(act: ExecutedDecision) -> bool:
    """Whether its findings need not wait any longer; on a list that nobody is sure of they do.

    Those of a post wait until all of it is published.
    """
    if act.decision.proposal.action is Action.PUBLISH:
        return False
    return act.complete if act.decision.proposal.monitor else not _came_to_nothing(act)


def _receipts(acts: Iterable[ExecutedDecision]) -> tuple[tuple[Effect, Receipt], ...]:
    return tuple((item.effect, item.receipt) for act in acts for item in act.applied)


def _has_news(situation: Situation, news: Sequence[FinishedMission]) -> bool:
    """Whether something is to be announced that was not before, and somebody may still wake us today."""
    return bool(news) and _grant_wake(situation)[1]


def _findings_to_announce(
    situation: Situation, posted: Sequence[Finding], doubt: frozenset[posting.Key]
) -> tuple[FinishedMission, ...]:
    """What waits to be announced; what the owner has no words for waits for nothing, words that can be fixed do.

    So does what is in doubt: a person may yet say that it was not sent.
    """
    if situation.steering:  # nobody was asked for words
        return situation.state.finished
    worded = (wording for wording in situation.wordings if wording.problem or (wording.ready and wording.posts))
    waiting = {wording.fingerprint for wording in worded} - {finding.fingerprint for finding in posted}
    waiting |= {fingerprint for fingerprint, _ in doubt}
    return identity.still_waiting(situation.state.finished, waiting, situation.now)


def _new_posts(situation: Situation, acts: Iterable[ExecutedDecision]) -> Iterable[Posted]:
    for act in acts:
        for effect, receipt in _receipts((act,)):
            post = posting.to_posted(effect, receipt, act.decision.proposal.kind, situation.now)
            if post and not may_be_done(situation.records.get(effect.key)):
                yield post


def still_counted(situation: Situation) -> tuple[tuple[datetime, str, int], ...]:
    """The lines of earlier automatic pulls that still count."""
    return tuple(entry for entry in situation.state.recent if situation.now - entry[0] < learning.WINDOW)


def automatic_lines(situation: Situation, proposals: Iterable[Proposal]) -> Iterable[tuple[datetime, str, int]]:
    """When, where and how many lines these proposals change without asking anybody."""
    for proposal in proposals:
        if proposal.automatic and proposal.patch:
            for file in measure(counted_patch(proposal.patch) if proposal.kind == BUMPS else proposal.patch).files:
                yield situation.now, file.path, file.lines


def opened_threads(situation: Situation, proposals: Iterable[Proposal]) -> Iterable[tuple[datetime, int]]:
    """One entry for each issue and pull that these proposals open unasked."""
    for proposal in proposals:
        mission = proposal.interim.id if proposal.interim else 0
        yield from ((situation.now, mission) for _ in range(proposal.threads))


def _unaccepted(opened: Iterable[tuple[datetime, int]], lessons: Iterable[Lesson]) -> tuple[tuple[datetime, int], ...]:
    """The threads but for those of missions that people accepted: what is wanted is not rationed."""
    accepted = {lesson.mission for lesson in lessons if lesson.verdict == "accepted" and lesson.mission}
    return tuple(entry for entry in opened if entry[1] not in accepted)


# --- when to look again ---------------------------------------------------------------


def _ready(situation: Situation, decided: CycleDecisions, acts: Sequence[ExecutedDecision]) -> bool:
    """Whether a cap alone cut work that made progress, and today's wakes are not used up."""
    progress = any(act.complete and act.applied for act in acts)
    return progress and _was_cut_by_cap(situation, decided) and _grant_wake(situation)[1]


def _agent_waits(situation: Situation, missions: Iterable[Mission]) -> bool:
    """Whether an agent can go on at once: it may, has money, and somebody may still wake us today."""
    facts = dict(situation.world.facts)
    stopped = {result.mission for result in situation.made if not _went_well(result)}
    ready = (m for m in missions if m.id in facts and m.id not in stopped and tasks.is_waiting(m, facts[m.id]))
    return any(ready) and _grant_wake(situation)[1] and _compute_budget(situation).usd > 0


def _went_well(result: AgentResult) -> bool:
    """Whether going on at once is worth it: what failed, or moved nothing, waits for the next cycle in its time."""
    return result.outcome == "made" or (result.outcome == "goes on" and result.progressed)


def _compute_budget(situation: Situation) -> tasks.AgentBudget:
    spent = (situation.memory.header.spend_usd if _same_day(situation) else 0.0) + situation.usage.cost_usd
    return tasks.compute_budget(situation.settings.limits, 0.0, spent, 0.0)


def _grant_wake(situation: Situation) -> tuple[int, bool]:
    limit = situation.settings.limits.dispatches_per_day
    return schedule.count_granted_wakes(situation.memory.header, _today(situation), limit)


def _today(situation: Situation) -> str:
    return schedule.day_of(situation.memory.header, situation.now)


def _same_day(situation: Situation) -> bool:
    return situation.memory.header.today == _today(situation)


def _were_posts_answered(situation: Situation, acts: Iterable[ExecutedDecision]) -> bool:
    """Whether a mission's texts went out, and only the remark that tells of it is left."""
    sent = (act for act in acts if act.decision.proposal.action is Action.PUBLISH and act.decision.proposal.before)
    answers = ([item.receipt.status for item in act.applied] for act in sent if act.complete)
    return any("failed" not in every for every in answers) and _grant_wake(situation)[1]


def _header(situation: Situation, decided: CycleDecisions, at_once: bool) -> Header:
    before, same_day = situation.memory.header, _same_day(situation)
    if situation.steering and not at_once:
        return _header_between(situation)
    waited = {finding.fingerprint for finding in situation.state.backlog}
    urgency, cause, streak = schedule.assess(situation.fresh, _was_cut_by_cap(situation, decided), before, waited)
    if situation.steering:  # nothing was looked at that could have changed them
        urgency, cause, streak = before.urgency, before.high_cause, before.high_streak
    dispatches, wake = _grant_wake(situation)
    header = replace(
        before,
        cycle=situation.cycle,
        last_cycle_at=situation.now,
        drift_seconds=schedule.drift(before.next_due_at, situation.now),
        today=_today(situation),
        spend_usd=round((before.spend_usd if same_day else 0.0) + situation.usage.cost_usd, 6),
        dispatches=dispatches,
        wake=wake,
        high_cause=cause,
        high_streak=streak,
        cursors=cursors(carry_cursors(situation), situation.observations),
    )
    return schedule.plan_next(header, urgency, situation.settings.rhythm, situation.now, at_once)


def _header_between(situation: Situation) -> Header:
    """After a cycle that only heard a person: the next one is due when it was, and is as urgent."""
    before = schedule.begin_day(situation.memory.header, _today(situation))
    return replace(
        before,
        cycle=situation.cycle,
        last_cycle_at=situation.now,
        spend_usd=round(before.spend_usd + situation.usage.cost_usd, 6),
        generation=before.generation + 1,
    )


def _look_soon(
    situation: Situation, missions: Iterable[Mission], acts: Sequence[ExecutedDecision], header: Header
) -> Header:
    """The next cycle is due before long while a person's request is not done: a step of it failed for now, or an
    approved merge waits, for checks whose end no event tells, or whose start a person must allow.

    Only for a day after the approval: what takes longer waits for a person itself.
    """
    soon, facts = situation.now + situation.settings.rhythm.high, dict(situation.world.facts)
    if header.next_due_at is None or header.next_due_at <= soon:
        return header
    approved = (_approved_at(facts[one.id]) for one in missions if one.id in facts and _merge_waits(one, facts[one.id]))
    merge_waits = any(at and situation.now - at < SOON_AFTER_APPROVAL for at in approved)
    lasting = refused_for_good(acts)
    failed = situation.steering and not all(act.complete or act in lasting for act in acts)
    return replace(header, next_due_at=soon) if merge_waits or failed else header


def _merge_waits(mission: Mission, facts: MissionFacts) -> bool:
    """Whether checks or a queue are in its way: what counts as a failure is not to be tried again that soon."""
    click = facts.pull is not None and bool(facts.pull.held)
    return mission.status is Status.IN_REVIEW and (click or mission.progress.failure_reason in MERGE_WAITS)


def _approved_at(facts: MissionFacts) -> datetime | None:
    """When who may decide last approved its head; None where nobody did."""
    reviews = facts.pull.reviews if facts.pull else ()
    sha = facts.pull.head_sha if facts.pull else ""
    approvals = (one for one in reviews if one.state == "approved" and one.sha == sha)
    return max((one.at for one in approvals if one.author.id in facts.authorised), default=None)


def carry_cursors(situation: Situation) -> tuple[tuple[str, str], ...]:
    """The cursors as they were, but for what the thinker wants to be given back."""
    before = dict(situation.memory.header.cursors)
    return tuple((before | ({THINKER: situation.plan.cursor} if situation.plan.cursor else {})).items())


def _was_cut_by_cap(situation: Situation, decided: CycleDecisions) -> bool:
    """Whether a cap alone kept something from being done now."""
    waiting = (d for d in decided.decisions if d.verdict is Verdict.HOLD and d.proposal.action is not Action.ANSWER)
    return any(_cut_by_cap(decision.rules, situation.settings.limits) for decision in waiting)


def cursors(before: Iterable[tuple[str, str]], observations: Iterable[Observation]) -> tuple[tuple[str, str], ...]:
    """How far each observer got. Together they have to fit: a longer head could not be read any more.

    If they do not fit, the largest is dropped, and that observer starts over.
    """
    entries = {**dict(before), **{s.name: s.cursor for s in observations if s.status == "ok" and s.cursor}}
    sizes = {name: len(json.dumps(cursor)) for name, cursor in entries.items()}
    while sum(sizes.values()) > CURSORS:
        del sizes[max(sizes, key=lambda name: sizes[name])]
    return tuple(sorted((name, entries[name]) for name in sizes))
