"""The questions a cycle asks the world, in order, through its ports. Asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import isfinite
from typing import TypeVar

from ralph_mission.mission import (
    analysis,
    announced,
    approval,
    belonging,
    coding,
    completed,
    content,
    findings,
    orders,
    posting,
    resonance,
    succession,
    wishes,
)
from ralph_mission.mission.deciding import (
    Charter,
    Decided,
    Situation,
    World,
    drafts,
    keys_to_read,
    present,
    silenced_kinds,
    to_think_about,
    with_unverified,
)
from ralph_mission.mission.deciding import decide as decide_now
from ralph_mission.mission.kinds import Route, lookup
from ralph_mission.mission.ledger import (
    Anchor,
    EffectRecord,
    MonitorRecord,
    OpenState,
    Recollection,
    Record,
    key_of,
    monitor_key,
    refers_to,
)
from ralph_mission.mission.lifecycle import Facts
from ralph_mission.mission.memory import Header, Memory
from ralph_mission.mission.model import Action, Actor, Finding, Issue, Mission, Pull, Sighting, Signal, Status, Verdict
from ralph_mission.mission.ports import Brief, Gaze, Plan, Ports, Verification
from ralph_mission.mission.position import check_position, refuse
from ralph_mission.mission.proposal import Proposal
from ralph_mission.safety import text
from ralph_mission.safety.secrets import find_secrets, redact
from ralph_mission.trouble import Missing, Trouble

T = TypeVar("T", Issue, Pull)
WORDED = 50  # findings of which a text is made in one cycle
VERIFIED = 2  # proposals whose change is tried with the repository's own checks in one cycle


def check_anchor(ports: Ports, past: Recollection | None) -> None:
    """Raises Trouble when the forge remembers more than memory does, or has work of ours that memory lacks."""
    check_position(anchor_of(past) if past else None, [ports.forge.anchor()])
    if past is None and ports.forge.has_our_work():
        raise Trouble(
            "there is no memory, but the forge holds issues or pulls that Ralph made",
            "rebuild it with `ralph memory recover`",
        )


def anchor_of(past: Recollection) -> Anchor:
    """Where memory stands."""
    return Anchor(past.memory.header.lineage, past.memory.header.serial, past.oid)


def slots(past: Recollection | None, charter: Charter) -> str:
    """ "2 of 3 missions active"."""
    taken = sum(mission.status.active for mission in past.state.missions) if past else 0
    return f"{taken} of {charter.limits.active_missions} missions active"


def read_open(ports: Ports, past: Recollection) -> dict[str, Record]:
    """The records of effects that are still open, and of what settling them may change."""
    records = dict(ports.store.records((*past.state.effects, *past.state.unknown), past))
    opened = [record for record in records.values() if isinstance(record, EffectRecord)]
    referred = {refers_to(record.effect) for record in opened if record.effect} - {""}
    watched = {record.kind for record in opened if record.action is Action.MONITOR}
    members = {member for mission in past.state.missions if not mission.issue for member in mission.members}
    lists = succession.read(map(succession.of_list, watched), lambda keys: ports.store.records(keys, past))
    return records | lists | dict(ports.store.records(referred | {*map(monitor_key, watched)} | members, past))


def read_effects(ports: Ports, decided: Decided, past: Recollection | None) -> dict[str, Record]:
    """What the ledger knows of the effects that were allowed, and of those they refer to."""
    allowed = [d.proposal for d in decided.decisions if d.verdict is Verdict.ALLOW]
    effects = [effect for proposal in allowed for effect in proposal.effects]
    keys = {effect.key for effect in effects} | {refers_to(effect) for effect in effects} - {""}
    return dict(ports.store.records(keys, past))


# --- check ----------------------------------------------------------------------------


def situate(ports: Ports, charter: Charter, past: Recollection | None, cycle_id: str, now: datetime) -> Situation:
    """What memory holds and what the forge says of every mission."""
    memory, state = (past.memory, past.state) if past else (born(ports, now), OpenState())
    cycle = memory.header.cycle + 1
    cycle_id = cycle_id or f"{cycle:06d}-{key_of('cycle', memory.header.lineage, past.oid if past else '')[:8]}"
    _refuse_twins(state)
    world = _look(ports, charter, state, cycle, now)
    situation = Situation(cycle, cycle_id, now, charter, memory, state, world)
    remarks = [succession.of_remark(mission.key) for mission in state.missions]
    told = succession.read(remarks, lambda keys: ports.store.records(keys, past))
    situation = replace(situation, state=_believable(state, world, told), records=told)
    return replace(situation, records=_records(ports, situation, keys_to_read(situation), past))


def _refuse_twins(state: OpenState) -> None:
    """Raises Trouble for two missions of one number: what the forge says of one must not pass for the other."""
    if len({mission.id for mission in state.missions}) < len(state.missions):
        raise refuse("memory holds two missions of one number")


def _believable(state: OpenState, world: World, records: Mapping[str, Record]) -> OpenState:
    """The state without what only memory says: a change that no fixer showed, a remark that is not ours."""
    issues = {number: facts.issue for number, facts in world.facts if facts.issue}
    remarks = (belonging.own_remark(m, records, issues.get(m.id), world.bot) for m in state.missions)
    missions = tuple(replace(m, comment=remark) for m, remark in zip(state.missions, remarks, strict=True))
    return replace(state, missions=missions, backlog=findings.remembered(state.backlog))


def _records(ports: Ports, situation: Situation, keys: Iterable[str], past: Recollection | None) -> dict[str, Record]:
    """What the ledger says, of these keys and of lists; none names an open issue as a list that is none."""
    kinds = {finding.kind for finding in present(situation) if lookup(finding.kind).route is Route.MONITOR}
    lines = succession.read(map(succession.of_list, kinds), lambda keys: ports.store.records(keys, past))
    records = {**situation.records, **ports.store.records(keys, past), **lines}
    listed = {issue.number: issue for issue in situation.world.issues}
    return {key: belonging.true_list(r, records, listed, situation.world.bot) for key, r in records.items()}


def born(ports: Ports, now: datetime) -> Memory:
    """The first memory of a repository."""
    lineage = key_of("lineage", ports.forge.default_branch().sha, now.isoformat())
    return Memory(Header(lineage=lineage))


def _look(ports: Ports, charter: Charter, state: OpenState, cycle: int, now: datetime) -> World:
    forge = ports.forge
    issues, pulls = forge.issues("open"), forge.pulls("all")
    facts = tuple((mission.id, _facts(ports, charter, mission)) for mission in state.missions if mission.issue)
    lost = wishes.pulls_for(pulls, forge.identity().id)
    adopted = tuple(_adopt(ports, charter, state, issues, lost, cycle, now))
    facts += tuple((mission.id, _facts(ports, charter, mission)) for mission in adopted)
    branches = tuple(pull.head for pull in pulls)
    facts = orders.known_to(facts, state, ports.seal)
    return World(forge.identity().id, forge.default_branch(), branches, issues, pulls, facts, adopted)


def facts_about(ports: Ports, charter: Charter, mission: Mission, state: OpenState) -> Facts:
    """What the forge says of one mission now, with what owners said of it in a chat."""
    ((_, facts),) = orders.known_to(((mission.id, _facts(ports, charter, mission)),), state, ports.seal)
    return facts


def _facts(ports: Ports, charter: Charter, mission: Mission) -> Facts:
    issue = _there(mission.issue, ports.forge.issue)
    pull = _there(mission.pull, ports.forge.pull) if mission.pull else None
    ports.voice.note(f"#{mission.issue} {mission.title}: {mission.status}")
    coder, us = ports.coder is not None, ports.forge.identity().id
    told = coder and mission.status in coding.WAITS
    asks = bool(mission.proposal_hash) and not mission.pull
    edits = ports.forge.edits(mission.issue) if (told or asks) and issue and charter.owners else ()
    heard = (coding.heard(issue, pull) if told else frozenset()) | {edit.actor for edit in edits}
    authorised = _authorised(ports, charter, issue, pull, heard)
    if foreign := belonging.why_foreign(mission, issue, pull, us, authorised):
        ports.voice.note(f"{foreign}: nothing is written there")
        ours = not belonging.why_foreign(mission, issue, None, us, authorised)
        left = None if ours else belonging.own_pull(mission, pull, us)
        return Facts(None, None, frozenset(), foreign, ours=ours, left=left)
    shown = belonging.own_change(mission, issue, us)
    texts = (issue.body if issue and issue.author.id == us else "", shown.body if shown else "")
    named, asked = (frozenset().union(*(announced.announced(text, yes) for text in texts)) for yes in (False, True))
    offered_at = shown.created_at if shown and announced.announced(shown.body, True) else None
    facts = Facts(issue, pull, authorised, "", named, asked, offered_at, coder, us)
    if asks:
        theirs = (edit.at for edit in edits if edit.actor.id not in {*authorised, us})
        facts = replace(facts, edited_at=max(theirs, default=None))
    if mission.action is Action.PUBLISH and issue:
        said = content.measured(ports.press, issue.body) if issue.author.id == us else content.FOREIGN
        facts = replace(facts, shown=said)
    if issue is None or not charter.owners:
        return facts
    at = approval.asked_at(issue, authorised, "ralph:mission", approval.APPROVED)
    reworded = _reworded(ports, pull) if told and pull and mission.status is Status.FIXING else frozenset()
    altered = approval.altered(edits, {*authorised, us}, at) if told else None
    return replace(facts, asked_at=at, altered=altered, reworded=reworded)


def _reworded(ports: Ports, pull: Pull) -> frozenset[int]:
    """Reviews that need not say what their authors wrote. The pull was read before, so no later edit is missed."""
    own = ports.forge.own_reviews(pull.number)
    return frozenset(review.id for review in pull.reviews if review.id not in own)


def refreshed(ports: Ports, situation: Situation) -> Situation:
    """The situation with what the forge says of missions, issues and pulls now: an agent's work takes a while."""
    ports.forge.look_anew()
    issues, pulls = ports.forge.issues("open"), ports.forge.pulls("all")
    known = [mission for mission in situation.missions if mission.issue]
    facts = tuple((mission.id, _facts(ports, situation.charter, mission)) for mission in known)
    branches, facts = tuple(pull.head for pull in pulls), orders.known_to(facts, situation.state, ports.seal)
    world = replace(situation.world, facts=facts, issues=issues, pulls=pulls, branches=branches)
    return replace(situation, world=world)


def _there(number: int, get: Callable[[int], T]) -> T | None:
    """An issue or pull; None when somebody deleted it. Raises Trouble for any other reason."""
    try:
        return get(number)
    except Missing:
        return None


def _authorised(
    ports: Ports, charter: Charter, issue: Issue | None, pull: Pull | None, also: frozenset[Actor] = frozenset()
) -> frozenset[int]:
    people = approval.voices(issue, pull) | also
    return frozenset(p.id for p in people if approval.may_decide(p, charter.owners, ports.forge.may_approve))


def _adopt(
    ports: Ports,
    charter: Charter,
    state: OpenState,
    issues: Iterable[Issue],
    lost: Mapping[int, tuple[int, Pull]],
    cycle: int,
    now: datetime,
) -> Iterable[Mission]:
    """Missions that an authorised person made by labelling an issue; anyone else's label is ignored.

    One whose pull is open (`lost`, by issue) is no new one: it goes on where it was.
    """
    ours, taken = ({m.issue for m in state.missions}, {m.id for m in state.missions})
    number = max([state.next_mission, *(id + 1 for id in taken), *(id + 1 for id, _ in lost.values())])
    for issue in issues:
        if "ralph:mission" not in issue.labels or issue.number in ours:
            continue
        full = ports.forge.issue(issue.number)
        authorised = _authorised(ports, charter, full, None)
        made = wishes.mission_of(full, number, cycle, now, ports.coder is not None)
        if not _still_wanted(full, authorised) or approval.on_issue(full, made, authorised).state == "rejected":
            continue
        before, pull = lost.get(issue.number, (0, None))
        if pull is None or before in taken:
            yield made
            number += 1
        else:
            yield _found_again(ports, charter, made, before, full, ports.forge.pull(pull.number))
            taken.add(before)


def _found_again(ports: Ports, charter: Charter, made: Mission, number: int, issue: Issue, pull: Pull) -> Mission:
    found = wishes.found_again(made, number, issue, pull, _authorised(ports, charter, issue, pull))
    return replace(found, comment=belonging.own_remark(found, {}, issue, ports.forge.identity().id))


def _still_wanted(issue: Issue, authorised: frozenset[int]) -> bool:
    """Whether an authorised person set the label that stands there, and not before it was parked and forgotten."""
    wish = approval.standing_label(issue, "ralph:mission")
    parked = approval.standing_label(issue, "ralph:parked")
    return wish is not None and wish.actor.id in authorised and (parked is None or wish.at > parked.at)


# --- observe --------------------------------------------------------------------------


def observe(
    ports: Ports, situation: Situation, past: Recollection | None, scratch: str, secrets: tuple[str, ...]
) -> Situation:
    """Ask every observer, if there is a free slot; one that fails is unavailable and nothing more."""
    ports.voice.phase("observe", "" if situation.free_slot else "skipped, no free slot")
    if situation.free_slot:
        asked = ((observer, _gaze(observer.name, situation, scratch)) for observer in ports.observers)
        sightings = tuple(_heard(ports, sighting, secrets) for sighting in ports.looks(asked))
    else:
        skipped = partial(Sighting, status="skipped", detail="no free mission slot")
        sightings = tuple(skipped(observer.name) for observer in ports.observers)
    situation = replace(situation, sightings=sightings)
    missing = keys_to_read(situation) - set(situation.records)
    situation = replace(situation, records=_records(ports, situation, missing, past))
    return replace(situation, world=replace(situation.world, unwanted=tuple(_unwanted(ports, situation))))


def _unwanted(ports: Ports, situation: Situation) -> Iterable[str]:
    """Finding kinds whose monitoring issue was closed since the last cycle by a person whose verdict counts."""
    newly = silenced_kinds(situation) - set(situation.state.silenced)
    for record in situation.records.values():
        if isinstance(record, MonitorRecord) and record.kind in newly:
            issue = _there(record.issue, ports.forge.issue)
            if issue and issue.closed_by and issue.closed_by.id in _authorised(ports, situation.charter, issue, None):
                yield record.kind


def _gaze(name: str, situation: Situation, scratch: str) -> Gaze:
    header = situation.memory.header
    return Gaze(
        situation.world.default, situation.now, header.last_cycle_at, dict(header.cursors).get(name, ""), scratch
    )


def _heard(ports: Ports, sighting: Sighting, secrets: tuple[str, ...]) -> Sighting:
    """A sighting without any secret that an observed text or an error held."""
    # A cursor cannot be redacted and still be one: without it the observer looks as if for the first time.
    cursor = "" if "known-value" in find_secrets(sighting.cursor, secrets) else sighting.cursor
    sighting = replace(sighting, detail=redact(sighting.detail, secrets), cursor=cursor)
    ports.voice.note(f"{sighting.name}: {sighting.detail or f'{len(sighting.signals)} signals'}")
    nameable = (signal for signal in sighting.signals if not find_secrets(signal.path, secrets))
    signals = tuple(_without_secrets(signal, secrets) for signal in nameable)
    gone = tuple(tuple(redact(part, secrets) for part in essence) for essence in sighting.gone)
    return replace(sighting, signals=signals, gone=gone)


def _without_secrets(signal: Signal, secrets: tuple[str, ...]) -> Signal:
    """Neither memory nor a report may carry a secret that stood in an observed text."""
    return replace(
        signal,
        title=redact(signal.title, secrets),
        detail=redact(signal.detail, secrets),
        author=redact(signal.author, secrets),
        essence=tuple(redact(part, secrets) for part in signal.essence),
        kind=redact(signal.kind, secrets),
        occurrence=redact(signal.occurrence, secrets),
        facts=tuple(
            (redact(name, secrets), redact(value, secrets) if isinstance(value, str) else value)
            for name, value in signal.facts
        ),
    )


# --- think ----------------------------------------------------------------------------


def think(ports: Ports, situation: Situation, secrets: tuple[str, ...]) -> Situation:
    """Have the findings ranked that nothing was done about yet. A thinker's words are as untrusted as any."""
    thinkable = to_think_about(situation)
    ports.voice.phase("think", f"{len(thinkable)} new or waiting")
    brief = Brief(
        thinkable,
        situation.missions,
        dict(situation.state.acceptance),
        situation.charter.limits,
        situation.memory,
        situation.now,
        resonance.factors(situation.state.posted),
    )
    plan = _harmless(ports.thinker.think(brief), thinkable, secrets)
    if plan.thoughts:
        ports.voice.note(f"first: {plan.thoughts[0].why}")
    return replace(situation, plan=plan)


def word(ports: Ports, situation: Situation, past: Recollection | None = None) -> Situation:
    """What the findings of the plan would say in public, made before anything is judged, and what was said of it."""
    thought = {member for thought in situation.plan.thoughts for member in thought.members}
    news = {finding.fingerprint for finding in completed.findings(situation.state.finished)}
    about = [finding for finding in to_think_about(situation) if finding.fingerprint in thought | news]
    wanted = sorted(about, key=lambda finding: finding.fingerprint not in news)[:WORDED]
    worded = [(finding, wording) for finding in wanted if (wording := ports.press.word(finding))]
    for trouble in dict.fromkeys(wording.trouble for _, wording in worded if wording.trouble):
        ports.voice.note(trouble)
    keys = {effect.key for pair in worded for effect in posting.effects_of(*pair)}
    records = {**situation.records, **ports.store.records(keys, past)} if keys else situation.records
    return replace(situation, wordings=tuple(wording for _, wording in worded), records=records)


def _harmless(plan: Plan, known: Iterable[Finding], secrets: tuple[str, ...]) -> Plan:
    """The plan as far as it is about findings that are there; of what else it says nothing is kept, or recorded."""
    kinds = {finding.fingerprint: finding.kind for finding in known}
    thoughts = (
        replace(
            t,
            members=tuple(member for member in t.members if member in kinds),
            why=text.said(redact(t.why, secrets)),
            sections=tuple(
                (name, text.said(redact(words, secrets))) for name, words in t.sections if name in analysis.WRITABLE
            ),
        )
        for t in plan.thoughts
        if isfinite(t.score) and t.kind in kinds.values()
    )
    remark, cursor = text.said(redact(plan.remark, secrets)), redact(plan.cursor, secrets)
    return replace(plan, thoughts=tuple(thoughts), remark=remark, cursor=cursor)


def verify(ports: Ports, situation: Situation, scratch: str, secrets: tuple[str, ...]) -> Situation:
    """Try the changes that would be allowed; one that the repository's own checks refuse is not proposed."""
    tried = 0
    while (candidate := _to_verify(situation, secrets)) is not None:
        if tried == VERIFIED:
            ports.voice.note(f"put off, enough was tried: {candidate.title}")
            situation = _put_off(situation, candidate.kind)
            continue
        outcome = _try(ports, candidate, scratch)
        if outcome.ok:
            break
        tried += 1
        said = f"{candidate.title}: {redact(outcome.detail, secrets)}"
        ports.voice.note(f"not proposed: {said}")
        situation = replace(with_unverified(situation, candidate.key), refused=(*situation.refused, said))
    return situation


def _put_off(situation: Situation, kind: str) -> Situation:
    """The situation without thoughts about a kind: they are not tried in this cycle, and so not proposed."""
    thoughts = tuple(thought for thought in situation.plan.thoughts if thought.kind != kind)
    return replace(situation, plan=replace(situation.plan, thoughts=thoughts))


def _try(ports: Ports, candidate: Proposal, scratch: str) -> Verification:
    ports.voice.note(f"verifying: {candidate.title}")
    assert candidate.patch is not None
    try:
        return ports.hands.verify(candidate.patch, scratch)
    except Exception as error:  # what could not be checked is not proposed
        return Verification(
            False, error.what if isinstance(error, Trouble) else f"could not run ({type(error).__name__})"
        )


def _to_verify(situation: Situation, secrets: tuple[str, ...]) -> Proposal | None:
    if not any(proposal.automatic and proposal.patch for proposal in drafts(situation)):
        return None
    decisions = decide_now(situation, secrets).decisions
    allowed = (d.proposal for d in decisions if d.verdict is Verdict.ALLOW)
    return next((proposal for proposal in allowed if proposal.automatic and proposal.patch), None)
