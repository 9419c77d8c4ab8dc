"""What a cycle comes to: missions after their deeds, lessons, what waits, when to look again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ralph_mission.mission import findings, reflect, schedule
from ralph_mission.mission.acting import Act
from ralph_mission.mission.deciding import Decided, Situation
from ralph_mission.mission.effects import OpenIssue
from ralph_mission.mission.ledger import absorb
from ralph_mission.mission.memory import Header
from ralph_mission.mission.model import Acceptance, Action, Finding, Mission, Verdict
from ralph_mission.mission.proposal import Decision, Proposal
from ralph_mission.mission.steps import Lesson
from ralph_mission.safety.patch import measure

CUT_BY_CAP = frozenset({"new-mission-cap", "action-cap", "auto-pr-cap"})


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Everything that is told and written at the end."""

    missions: tuple[Mission, ...]  # that go on, parked ones included
    ended: tuple[Mission, ...]
    dropped: tuple[Act, ...]  # issues and lists that certainly were not opened or brought up to date
    lessons: tuple[Lesson, ...]
    acceptance: Mapping[str, Acceptance]
    backlog: tuple[Finding, ...]
    recent: tuple[tuple[datetime, str, int], ...]
    header: Header
    at_once: bool = False  # work is ready: the next cycle need not wait


def conclude(situation: Situation, decided: Decided, acts: Sequence[Act]) -> Conclusion:
    """The cycle's result."""
    by_key = {act.decision.proposal.key: act for act in acts}
    dropped = tuple(act for act in acts if _came_to_nothing(act))
    missions = {mission.id: mission for mission in situation.missions}
    for mission in _moved(decided, by_key):
        missions[mission.id] = mission
    for act in dropped:
        if act.decision.proposal.interim:
            missions.pop(act.decision.proposal.interim.id, None)
    lessons = tuple(_lessons(decided, by_key)) + _silencing(situation)
    everyone = tuple(missions.values())
    over = reflect.ended(everyone, situation.now)
    at_once = _ready(situation, decided, acts)
    return Conclusion(
        tuple(mission for mission in everyone if mission not in over),
        over,
        dropped,
        lessons,
        reflect.learn(dict(situation.state.acceptance), lessons, situation.records),
        _waiting(situation, decided, acts),
        (*still_counted(situation), *automatic_lines(situation, _proposals(acts, dropped))),
        _header(situation, decided, at_once),
        at_once,
    )


# --- missions -------------------------------------------------------------------------


def _moved(decided: Decided, acts: Mapping[str, Act]) -> Iterable[Mission]:
    for step in decided.steps:
        act = acts.get(step.proposal.key) if step.proposal else None
        yield after(act) if act else step.mission
    stepped = {step.proposal.key for step in decided.steps if step.proposal}
    for decision in decided.decisions:
        proposal = decision.proposal
        act = acts.get(proposal.key)
        if proposal.key in stepped or not proposal.interim or decision.verdict is not Verdict.ALLOW:
            continue
        yield after(act) if act else proposal.interim


def after(act: Act) -> Mission:
    """The mission once the receipts are in: where it was going, or where it got stuck."""
    proposal = act.decision.proposal
    mission = proposal.after if act.complete else proposal.interim
    assert mission is not None
    for deed in act.deeds:
        mission = absorb(mission, deed.effect, deed.receipt)
    return mission


def _came_to_nothing(act: Act) -> bool:
    """Whether an issue, or a list of what is watched, certainly does not say what it was to say."""
    told = {deed.effect.key: deed.receipt.status for deed in act.deeds}
    proposal = act.decision.proposal
    return any(
        told.get(effect.key, "failed") == "failed"
        for effect in proposal.effects
        if proposal.monitor or isinstance(effect, OpenIssue)
    )


def _proposals(acts: Iterable[Act], dropped: Sequence[Act]) -> list[Proposal]:
    return [act.decision.proposal for act in acts if act not in dropped]


# --- lessons --------------------------------------------------------------------------


def _lessons(decided: Decided, acts: Mapping[str, Act]) -> Iterable[Lesson]:
    for step in decided.steps:
        act = acts.get(step.proposal.key) if step.proposal else None
        happened = act.complete if act else step.proposal is None
        if step.lesson and step.lesson.members and happened:
            yield step.lesson


def _silencing(situation: Situation) -> tuple[Lesson, ...]:
    """Closing a monitoring issue is a no to its kind, counted once."""
    return tuple(
        Lesson(0, kind, (), "rejected", "its monitoring issue was closed") for kind in sorted(situation.world.unwanted)
    )


# --- what waits -----------------------------------------------------------------------


def _waiting(situation: Situation, decided: Decided, acts: Sequence[Act]) -> tuple[Finding, ...]:
    """Findings that nothing was done about, in the plan's order."""
    done = {m.fingerprint for act in acts if _counts(act) for m in act.decision.proposal.members}
    order = {fp: place for place, fp in enumerate(fp for t in situation.plan.thoughts for fp in t.members)}
    left = [finding for finding in decided.fresh if finding.fingerprint not in done]
    return findings.remembered(sorted(left, key=lambda f: order.get(f.fingerprint, len(order))))


def _counts(act: Act) -> bool:
    """Whether its findings need not wait any longer; on a list that nobody is sure of they do."""
    return act.complete if act.decision.proposal.monitor else not _came_to_nothing(act)


def still_counted(situation: Situation) -> tuple[tuple[datetime, str, int], ...]:
    """The lines of earlier automatic pulls that still count."""
    return tuple(entry for entry in situation.state.recent if situation.now - entry[0] < reflect.WINDOW)


def automatic_lines(situation: Situation, proposals: Iterable[Proposal]) -> Iterable[tuple[datetime, str, int]]:
    """When, where and how many lines these proposals change without asking anybody."""
    for proposal in proposals:
        if proposal.automatic and proposal.patch:
            for file in measure(proposal.patch).files:
                yield situation.now, file.path, file.lines


# --- when to look again ---------------------------------------------------------------


def _ready(situation: Situation, decided: Decided, acts: Sequence[Act]) -> bool:
    """Whether a cap alone cut work that made progress, and today's wakes are not used up."""
    progress = any(act.complete and act.deeds for act in acts)
    return progress and _cut(decided.decisions) and _granted(situation)[1]


def _granted(situation: Situation) -> tuple[int, bool]:
    limit = situation.charter.limits.dispatches_per_day
    return schedule.granted(situation.memory.header, _today(situation), limit)


def _today(situation: Situation) -> str:
    return situation.now.date().isoformat()


def _same_day(situation: Situation) -> bool:
    return situation.memory.header.today == _today(situation)


def _header(situation: Situation, decided: Decided, at_once: bool) -> Header:
    before, same_day = situation.memory.header, _same_day(situation)
    waited = {finding.fingerprint for finding in situation.state.backlog}
    urgency, cause, streak = schedule.assess(decided.fresh, _cut(decided.decisions), before, waited)
    dispatches, wake = _granted(situation)
    header = replace(
        before,
        cycle=situation.cycle,
        last_cycle_at=situation.now,
        drift_seconds=schedule.drift(before.next_due_at, situation.now),
        today=_today(situation),
        spend_usd=round((before.spend_usd if same_day else 0.0) + max(0.0, situation.plan.usage.cost_usd), 6),
        dispatches=dispatches,
        wake=wake,
        high_cause=cause,
        high_streak=streak,
        cursors=_cursors(situation),
    )
    return schedule.plan_next(header, urgency, situation.charter.rhythm, situation.now, at_once)


def _cut(decisions: Iterable[Decision]) -> bool:
    """Whether a cap alone kept something from being done now."""
    held = (set(d.rules) for d in decisions if d.verdict is Verdict.HOLD and d.proposal.action is not Action.ANSWER)
    return any(rules and rules <= CUT_BY_CAP for rules in held)


def _cursors(situation: Situation) -> tuple[tuple[str, str], ...]:
    fresh = {s.name: s.cursor for s in situation.sightings if s.status == "ok" and s.cursor}
    return tuple(sorted({**dict(situation.memory.header.cursors), **fresh}.items()))
