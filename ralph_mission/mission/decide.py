"""From a situation to decisions, purely: the same situation always gives the same decisions.

`Situation` is all that a cycle gathered, `decide` all that it concludes. `ralph journal show --replay`
runs `decide` again on a recorded situation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.findings import identity, ranking
from ralph_mission.mission.findings.identity import is_near, other_pulls, own_pulls
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.lifecycle.table import UNAPPROVED, interpret_facts
from ralph_mission.mission.memory.learning import WINDOW, learn
from ralph_mission.mission.memory.schedule import day_of
from ralph_mission.mission.model.cycle import (
    CycleDecisions,
    MissionEvent,
    MissionFacts,
    MissionStep,
    Situation,
    StepContext,
)
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.ledger import FindingRecord, HeldFix, MonitorRecord, RedBase, monitor_key
from ralph_mission.mission.model.mission import BRIEFS, HUMAN, Action, Finding, Mission, Status, update_mission
from ralph_mission.mission.model.proposal import BUMPS, KINDS, BudgetUsed, PolicyContext, Proposal
from ralph_mission.mission.policy import judge_all
from ralph_mission.mission.proposals.draft import DraftContext, close_lists, draft_all, leave_reopened
from ralph_mission.mission.publishing import posting


def with_findings(situation: Situation) -> Situation:
    """The situation with its findings: fresh and waiting ones, and what is to be announced."""
    announced = identity.finished_findings(situation.state.finished)
    findings = identity.drop_duplicates(
        (*identity.merge_findings(situation.observations, situation.state.backlog), *announced)
    )
    return with_fresh_findings(replace(situation, findings=findings))


def with_fresh_findings(situation: Situation) -> Situation:
    """The situation with the findings that nothing was done about, nobody banned and whose kind nobody silenced."""
    silenced = silenced_kinds(situation).union(situation.settings.watch_only)
    bans, _ = identity.parse_bans(situation.memory.do_not_repeat, frozenset(KINDS))
    begun = {member for mission in situation.missions for member in mission.members}
    fresh = tuple(
        finding
        for finding in still_to_handle(situation.findings, situation)
        if finding.kind not in silenced
        and not (finding.signal.observer == BRIEFS and finding.fingerprint in begun)
        and not any(
            identity.is_forbidden(bans, path, finding.kind, finding.signal.reference) for path in finding.signal.paths
        )
    )
    return replace(situation, fresh=fresh)


def still_to_handle(findings: Iterable[Finding], situation: Situation) -> tuple[Finding, ...]:
    """What nothing was done about yet, without corrections that a person refused or that a fix under way makes."""
    records = situation.records
    begun = (records.get(member) for mission in situation.missions for member in mission.members)
    working = {key for record in begun if isinstance(record, FindingRecord) for key in record.parts}
    remaining = (
        identity.without_parts(finding, lambda key: key in working or identity.is_refused(key, records))
        for finding in identity.not_yet_handled(findings, records)
    )
    return identity.not_yet_handled(filter(None, remaining), records)


def silenced_kinds(situation: Situation) -> frozenset[str]:
    """Kinds that people do not want to see listed: boxes of the dashboard say so."""
    world = situation.world
    return frozenset({*situation.state.silenced, *world.requested("unlist")} - {*world.requested("list")})


def drafts(situation: Situation) -> tuple[Proposal, ...]:
    """What would be done about the plan's thoughts."""
    context = DraftContext(
        situation.world.default,
        situation.cycle,
        situation.now,
        next_mission(situation),
        situation.settings.limits,
        situation.records,
        recent_lines(situation),
        frozenset(key for key, base in situation.state.unverified if base == _checked(situation)),
        frozenset(one.key for one in situation.state.held if one.whole),
        other_pulls(situation.world.pulls, situation.world.bot),
        frozenset(mission.kind for mission in situation.missions if mission.status is Status.EXECUTING),
        {(wording.fingerprint, wording.occurrence): wording for wording in situation.wordings},
        situation.settings.page,
        is_quiet_period(situation),
        list_threadless(situation),
        situation.settings.agent,
        situation.verified,
        situation.standing,
        situation.green,
        own_pulls(situation.world.pulls, situation.world.bot),
    )
    return draft_all(situation.plan.ranked_findings, situation.fresh, context)


def conflicting_fixes(situation: Situation) -> Iterator[str]:
    """Fixes that are not proposed yet, because they would conflict with our open pull requests; in words."""
    ours = own_pulls(situation.world.pulls, situation.world.bot)
    for finding in situation.fresh if ours else ():
        patch = finding.signal.patch
        if near := [pull.number for pull in ours if patch and is_near((pull,), patch)]:
            numbers = " and ".join(f"#{number}" for number in near)
            yield f"{finding.signal.title}: would conflict with {numbers}, so it waits until that is merged or closed"


def is_quiet_period(situation: Situation) -> bool:
    """Whether memory was recovered a short while ago: its posts may be forgotten, so nothing is posted."""
    until = situation.state.hushed_until
    return until is not None and situation.now < until


def findings_fully_posted(situation: Situation, receipts: Mapping[str, Receipt]) -> tuple[Finding, ...]:
    """The findings of which nothing is left to publish, given what came of this cycle's posts."""
    return posting.fully_posted(
        situation.fresh, situation.wordings, situation.records, receipts, situation.now, is_quiet_period(situation)
    )


def decide(situation: Situation, secrets: tuple[str, ...] = ()) -> CycleDecisions:
    """Steps of what is under way first, then what is new; every one of them judged."""
    steps = tuple(_steps(situation))
    moved = () if situation.steering else close_lists(situation.world.issues, situation.world.bot)
    proposals = [*(step.proposal for step in steps if step.proposal), *moved, *drafts(situation)]
    proposals += leave_reopened(situation.world.reopened)
    paused = bool(situation.world.requested("pause"))
    decisions = judge_all(proposals, policy_context(situation, secrets, paused))
    return CycleDecisions(steps, decisions)


def ask_about(
    situation: Situation, refused: Mapping[str, Mission | None], secrets: tuple[str, ...] = ()
) -> CycleDecisions:
    """Ask people about what the forge has just refused for good: proposals by key, with what became of their missions
    (None: it was to be a new one). The situation knows the receipts."""
    stuck = {mission.id: mission for mission in refused.values() if mission}
    situation = replace(
        situation,
        state=replace(situation.state, missions=_with(situation.state.missions, stuck)),
        world=replace(situation.world, adopted=_with(situation.world.adopted, stuck)),
    )
    steps = tuple(step for step in _steps(situation) if step.mission.id in stuck)
    new = (draft for draft in drafts(situation) if draft.key in refused and refused[draft.key] is None)
    proposals = [*(step.proposal for step in steps if step.proposal), *new]
    return CycleDecisions(steps, judge_all(proposals, policy_context(situation, secrets, paused=False)))


def _with(missions: Iterable[Mission], changed: Mapping[int, Mission]) -> tuple[Mission, ...]:
    return tuple(changed.get(mission.id, mission) for mission in missions)


def _steps(situation: Situation) -> tuple[MissionStep, ...]:
    """The step of each mission. After a mere word of a person, missions that wait do not count as waiting longer."""
    facts = facts_of_missions(situation)
    context = StepContext(
        situation.cycle,
        situation.now,
        situation.settings.owners,
        situation.settings.merge_method,
        situation.records,
        situation.world.default,
        situation.settings.limits,
        recent_lines(situation),
        {result.mission: result for result in situation.made},
    )
    found: list[MissionStep] = []
    for mission in situation.missions:
        if mission.thread and mission.id in facts:
            reading = interpret_facts(mission, facts[mission.id], situation.now)
            unsure = mission.status in UNAPPROVED and not mission.pull
            if situation.steering and reading.event is MissionEvent.DONE and unsure:
                continue  # a cycle that looks can tell whether it was done, or is a no
            steps = next_step(mission, facts[mission.id], reading, context)
            found += [_without_wait(step, mission) for step in steps] if situation.steering else steps
    return tuple(found)


def _without_wait(step: MissionStep, before: Mission) -> MissionStep:
    stalled = min(step.mission.progress.stalled_cycles, before.progress.stalled_cycles)
    return replace(step, mission=update_mission(step.mission, stalled_cycles=stalled))


def facts_of_missions(situation: Situation) -> dict[int, MissionFacts]:
    """What is known of each mission now: what the forge says, and whether what it is about is still found."""
    solved = {mission.id for mission in situation.missions if _is_solved(mission, situation)}
    looks = [one for one in situation.observations if one.at_commit and one.status == "ok"]
    signals, names = [signal for one in looks for signal in one.signals], {one.name for one in looks}
    there = {finding.fingerprint for finding in identity.identify(signals)}
    there |= {key for signal in signals for key in identity.keys_of_parts(signal)}
    present = {mission.id for mission in situation.missions if not there.isdisjoint(_keys_of(mission, situation))}
    found = [mission for mission in situation.missions if mission.members]  # not what a person asked for
    certain = {mission.id for mission in found if _observers_of(mission, situation) <= names}
    return {
        number: replace(facts, solved=number in solved, present=number in present, certain=number in certain)
        for number, facts in situation.world.facts
    }


def _observers_of(mission: Mission, situation: Situation) -> set[str]:
    """The observers of its findings; "" for one whose record is not known."""
    records = (situation.records.get(member) for member in mission.members)
    return {record.observer if isinstance(record, FindingRecord) else "" for record in records}


def _keys_of(mission: Mission, situation: Situation) -> set[str]:
    """The keys of its findings, and of what they are known by again."""
    records = (situation.records.get(member) for member in mission.members)
    parts = {key for record in records if isinstance(record, FindingRecord) for key in record.parts}
    return {*mission.members, *parts}


def _is_solved(mission: Mission, situation: Situation) -> bool:
    """Whether every one of its findings is gone; what an agent has just made a change for is under way."""
    if mission.action is Action.PUBLISH or not mission.members or not situation.world.default.sha:
        return False
    if any(result.mission == mission.id for result in situation.made):
        return False
    if mission.pull and (mission.kind == BUMPS or mission.base_sha == situation.world.default.sha):
        return False  # nobody can have put it right, or it is not looked for while our own pull covers it
    records = [situation.records.get(member) for member in mission.members]
    return all(
        isinstance(record, FindingRecord) and identity.is_gone(record, situation.observations) for record in records
    )


def policy_context(situation: Situation, secrets: tuple[str, ...], paused: bool) -> PolicyContext:
    """What judgement rests on."""
    header, settings, world = situation.memory.header, situation.settings, situation.world
    today = header.today == day_of(header, situation.now)
    bans, _ = identity.parse_bans(situation.memory.do_not_repeat, frozenset(KINDS))
    posted, records, now = situation.state.posted, situation.records, situation.judged_at or situation.now
    spent = BudgetUsed(
        active=situation.slots_taken,
        threads_week=len(threads_of_week(situation)),
        unanswered=sum(
            is_unanswered(mission) and _observers_of(mission, situation) != {BRIEFS} for mission in situation.missions
        ),
        usd_cycle=situation.usage.cost_usd,
        usd_day=(header.spend_usd if today else 0.0) + situation.usage.cost_usd,
        dispatches_day=header.dispatches if today else 0,
        posts_day=posting.on_day(posted, now, records),
        posts_lately=posting.within(settings.post_pause, posted, now, records),
    )
    return PolicyContext(
        settings.limits,
        spent,
        world.default.name,
        settings.memory_branch,
        world.bot,
        now,
        records,
        world.pulls,
        world.issues,
        world.branches,
        bans,
        recent_lines(situation),
        secrets,
        settings.owners,
        settings.quiet_hours,
        paused,
        settings.post_pause,
    )


def recent_lines(situation: Situation) -> Mapping[str, int]:
    """Lines that automatic pulls changed on each path within the window."""
    totals: dict[str, int] = {}
    for when, path, lines in situation.state.recent:
        if situation.now - when < WINDOW:
            totals[path] = totals.get(path, 0) + lines
    return totals


def threads_of_week(situation: Situation) -> tuple[tuple[datetime, int], ...]:
    """The issues and pulls of the last seven days that nobody asked for, without those that people accepted."""
    return tuple(entry for entry in situation.state.opened if situation.now - entry[0] < WINDOW)


def is_unanswered(mission: Mission) -> bool:
    """Whether something that we began waits for a person, or waited in vain."""
    waits = (Status.DISCOVERED, Status.IN_REVIEW, Status.ESCALATED, Status.PARKED)
    return mission.kind != HUMAN and mission.status in waits


def list_threadless(situation: Situation) -> frozenset[str]:
    """The fingerprints of findings that no thread is opened about; see `findings.ranking`."""
    weights = dict(situation.settings.weights)
    silent = _unwanted(situation)
    listed = {r.kind for r in situation.records.values() if isinstance(r, MonitorRecord) and r.total}
    small = ranking.too_small([f for f in situation.fresh if f.kind not in listed], weights)
    stale = ranking.not_seen_again(situation.fresh, situation.observations, situation.now)
    return frozenset(finding.fingerprint for finding in (*silent, *small, *stale))


def silent_kinds(situation: Situation) -> tuple[str, ...]:
    """The kinds of what was found and is not proposed, because people refuse it."""
    return tuple(sorted({finding.kind for finding in _unwanted(situation)}))


def _unwanted(situation: Situation) -> tuple[Finding, ...]:
    just_said = (step.lesson for step in _steps(situation) if step.lesson)
    own = learn(dict(situation.state.acceptance), just_said, situation.records)
    tallies = ranking.with_priors(own, situation.settings.priors)
    return ranking.unwanted(situation.fresh, situation.findings, tallies, dict(situation.settings.weights))


def next_mission(situation: Situation) -> int:
    """The number that the next mission gets."""
    return max([situation.state.next_mission, *(mission.id + 1 for mission in situation.missions)])


def keys_to_read(situation: Situation) -> set[str]:
    """The ledger keys that deciding touches; a cycle reads no others."""
    findings = (*situation.findings, *situation.fresh)
    parts = {key for finding in situation.findings for key in identity.keys_of_parts(finding.signal)}
    pending = {key for mission in situation.missions for key in mission.pending}
    members = {member for mission in situation.missions for member in mission.members}
    doubt = set(situation.state.unknown)
    return (
        parts | {f.fingerprint for f in findings} | {monitor_key(f.kind) for f in findings} | pending | members | doubt
    )


def _checked(situation: Situation) -> str:
    """What a failed verification is remembered for: the commit, with its checks."""
    return f"{situation.world.default.sha} {situation.settings.checks}".strip()


def with_held(situation: Situation, fix: HeldFix) -> Situation:
    """The situation once the repository's own checks failed on a proposal, or could not be run."""
    state, tried = situation.state, (fix.key, _checked(situation))
    others = tuple(one for one in state.held if one.key != fix.key)
    return replace(
        situation, state=replace(state, unverified=(*state.unverified, tried)[-50:], held=(*others, fix)[-50:])
    )


def without_retried(situation: Situation, force: bool) -> Situation:
    """The situation before fixes are verified: those whose checks could not be run, or run on another commit or with
    others, are tried again; if `force`, all but those of several findings that were tried and divided, so that their
    parts get a turn. One whose findings are gone is forgotten."""
    state, now = situation.state, _checked(situation)
    present = {finding.fingerprint for finding in situation.findings}
    gone = {one.key for one in state.held if one.members and present.isdisjoint(one.members)}
    divided = {one.key for one in state.held if one.ran and not one.whole and len(one.members) > 1}
    unverified = tuple(one for one in state.unverified if one[0] not in gone and (one[0] in divided or not force))
    failed = {key for key, base in unverified if base == now}
    fixes = tuple(one for one in state.held if one.key in failed)
    return replace(situation, state=replace(state, unverified=unverified, held=fixes))


def red_base(situation: Situation) -> RedBase:
    """Which checks fail on the default branch: as they ran in this cycle, or in one before on the same commit."""
    default, before = situation.world.default, situation.state.red
    if situation.red is not None:
        return RedBase(default.sha, default.name, situation.red)
    return before if before.commit == default.sha else RedBase()


def failed_verifications(situation: Situation) -> tuple[tuple[str, str], ...]:
    """Those to remember: what could not be run is tried again."""
    again = {one.key for one in situation.state.held if not one.ran}
    return tuple(one for one in situation.state.unverified if one[0] not in again)
