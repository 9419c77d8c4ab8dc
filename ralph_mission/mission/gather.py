"""Reads memory and the forge for one cycle. Read-only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.mission.decide import drafts, keys_to_read, with_findings
from ralph_mission.mission.findings import identity
from ralph_mission.mission.lifecycle import approval, chat_commands, ownership
from ralph_mission.mission.lifecycle.approval import may_decide
from ralph_mission.mission.lifecycle.checkboxes import ONCE, THREAD_ORDERS, is_untold
from ralph_mission.mission.lifecycle.facts import authorised_among, read_facts, read_if_there
from ralph_mission.mission.lifecycle.steps import NOBODY_HERE
from ralph_mission.mission.lifecycle.table import advance
from ralph_mission.mission.lifecycle.waiting import WAITS_FOR_AGENT, describe_checks
from ralph_mission.mission.memory.text import check_position, refuse
from ralph_mission.mission.model.cycle import (
    CycleDecisions,
    CycleSettings,
    ForgeSnapshot,
    MissionEvent,
    MissionFacts,
    Situation,
)
from ralph_mission.mission.model.effects import MARKER
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.mission.model.ledger import (
    Anchor,
    EffectRecord,
    MemorySnapshot,
    OpenState,
    Record,
    key_of,
    refers_to,
)
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.model.mission import HUMAN, Action, Mission, Status, Tier, update_mission
from ralph_mission.mission.ports import CyclePorts, Forge
from ralph_mission.mission.proposals.wording import person_name, plain
from ralph_mission.values import compile_regex

STANDING = (("ralph:parked", Status.PARKED), ("ralph:escalated", Status.ESCALATED))
"""Our labels on an issue that show the state of its mission."""
_NUMBER = compile_regex(r"[1-9][0-9]{0,8}")


def check_anchor(forge: Forge, past: MemorySnapshot | None) -> None:
    """Raise UserError for memory that no cycle can continue from.

    The forge knows of later memory or of work of ours that memory lacks, or memory holds missions we never wrote.
    """
    if past:
        _refuse_false_missions(past.state)
    check_position(anchor_of(past) if past else None, [forge.anchor()])
    if past is None and forge.has_our_work():
        raise UserError(
            "there is no memory, but the forge holds issues or pull requests that Ralph made",
            "rebuild it with `ralph memory recover`",
        )
    if past and (is_forge_lost(forge, past.state) or _is_forge_new(forge, past)):
        raise UserError(
            "memory knows issues and pull requests of Ralph's, and the forge holds none of them",
            "put back what was deleted (.ralph/forge), or go on without it: ralph memory recover",
        )


def is_forge_lost(forge: Forge, state: OpenState) -> bool:
    """Whether a forge with reliable lists has nothing of ours left although memory has missions there."""
    missions = [mission for mission in state.missions if mission.thread]
    if not missions or not forge.lists_at_once or any(_is_there(forge, mission) for mission in missions):
        return False
    return not forge.has_our_work()


def _is_there(forge: Forge, mission: Mission) -> bool:
    if mission.issue:
        return read_if_there(mission.issue, forge.issue) is not None
    return read_if_there(mission.pull, forge.pull) is not None


def _is_forge_new(forge: Forge, past: MemorySnapshot) -> bool:
    """Whether the forge knows nothing of memory or of us, although memory says work was finished there."""
    if not past.memory.completed or not forge.lists_at_once or forge.anchor() is not None:
        return False
    return not forge.has_our_work()


def anchor_of(past: MemorySnapshot) -> Anchor:
    """Where memory stands."""
    return Anchor(past.memory.header.lineage, past.memory.header.serial, past.oid)


def describe_slots(past: MemorySnapshot | None, settings: CycleSettings) -> str:
    """ "2 of 3 missions under way": a mission that waits for an answer before its work begins takes none."""
    used = sum(mission.status.begun for mission in past.state.missions) if past else 0
    return f"{used} of {settings.limits.active_missions} missions under way"


def read_open(ports: CyclePorts, past: MemorySnapshot) -> dict[str, Record]:
    """The records of open effects, and of what settling them may change."""
    records = dict(ports.store.records((*past.state.effects, *past.state.unknown), past))
    opened = [record for record in records.values() if isinstance(record, EffectRecord)]
    referred = {refers_to(record.effect) for record in opened if record.effect} - {""}
    members = {member for mission in past.state.missions if not mission.thread for member in mission.members}
    return records | dict(ports.store.records(referred | members, past))


def read_effects(ports: CyclePorts, decided: CycleDecisions, past: MemorySnapshot | None) -> dict[str, Record]:
    """The records of allowed effects and of those they refer to."""
    effects = [effect for decision in decided.allowed for effect in decision.proposal.effects]
    keys = {effect.key for effect in effects} | {refers_to(effect) for effect in effects} - {""}
    return dict(ports.store.records(keys, past))


def read_situation(
    ports: CyclePorts, settings: CycleSettings, past: MemorySnapshot | None, cycle_id: str, now: datetime
) -> Situation:
    """What memory holds and what the forge says of every mission."""
    memory, state = (past.memory, past.state) if past else (first_memory(ports, now), OpenState())
    cycle = memory.header.cycle + 1
    cycle_id = cycle_id or f"{cycle:06d}-{key_of('cycle', memory.header.lineage, past.oid if past else '')[:8]}"
    world = _read_forge(ports, settings, memory, state, cycle, now)
    situation = Situation(cycle, cycle_id, now, settings, memory, state, world)
    remarks = [ownership.of_remark(mission.key) for mission in state.missions]
    successors = ownership.read_successors(remarks, lambda keys: ports.store.records(keys, past))
    situation = with_findings(replace(situation, state=_believable(state, world, successors), records=successors))
    return replace(situation, records=read_records(ports, situation, keys_to_read(situation), past))


def _refuse_false_missions(state: OpenState) -> None:
    """Raise UserError for missions that we would not have stored this way.

    Two missions must not share a number, and a finished one leaves the state.
    """
    if len({mission.id for mission in state.missions}) < len(state.missions):
        raise refuse("memory holds two missions of one number")
    pulls = [mission.pull for mission in state.missions if mission.pull and not mission.issue]
    if len({*pulls}) < len(pulls):
        raise refuse("memory holds two missions of one pull request")
    for mission in state.missions:
        if mission.status.ended:
            raise refuse(f"memory keeps mission #{mission.id}, which has ended: it is {mission.status}")


def _believable(state: OpenState, world: ForgeSnapshot, records: Mapping[str, Record]) -> OpenState:
    """The state as the forge bears it out: no change that no fixer showed, no remark that is not ours, the checks."""
    facts = dict(world.facts)
    missions = tuple(_as_it_stands(m, facts.get(m.id), records, world.bot) for m in state.missions)
    return replace(state, missions=missions, backlog=identity.to_backlog(state.backlog))


def _as_it_stands(mission: Mission, facts: MissionFacts | None, records: Mapping[str, Record], us: int) -> Mission:
    issue, pull = (facts.issue, facts.pull) if facts else (None, None)
    remark = ownership.own_remark(mission, records, issue, us)
    return update_mission(mission, comment=remark, checks=describe_checks(pull))


def _read_forge(
    ports: CyclePorts, settings: CycleSettings, memory: Memory, state: OpenState, cycle: int, now: datetime
) -> ForgeSnapshot:
    forge = ports.forge
    issues, pulls = forge.issues("open"), forge.pulls("all")
    facts = tuple((mission.id, read_facts(ports, settings, mission)) for mission in state.missions if mission.thread)
    handed = {note.pull for note in memory.issues if note.state == "done"}
    lost = pulls_for(pulls, forge.identity().id, handed)
    adopted = tuple(adopt(ports, settings, state, issues, lost, handed, cycle, now))
    facts += tuple((mission.id, read_facts(ports, settings, mission)) for mission in adopted)
    branches = tuple(pull.head for pull in pulls)
    facts = chat_commands.known_to(facts, state, ports.seal)
    facts = tuple((id, replace(one, untold=is_untold(one, forge.ticks()))) for id, one in facts)
    ticked, us = read_ticks(ports, settings, state), forge.identity().id
    followed = {mission.pull for mission in (*state.missions, *adopted)}
    rejected = (pull for pull in pulls if pull.number not in followed and ownership.was_rejected(pull, us))
    rejected_pulls = (read_if_there(pull.number, forge.pull) for pull in rejected)
    reopened = tuple(pull for pull in rejected_pulls if pull and not ownership.was_left(pull, us))
    return ForgeSnapshot(
        us, forge.default_branch(), branches, issues, pulls, facts, adopted=adopted, reopened=reopened, **ticked
    )


def read_ticks(ports: CyclePorts, settings: CycleSettings, state: OpenState) -> dict[str, tuple[Any, ...]]:
    """What authorised people ticked about Ralph itself, as `orders`; as `ignored`, ticks that count for nothing.

    A tick that was already obeyed carries an older number.
    """
    ordered, ignored = list[str](), list[tuple[str, str]]()
    for tick in ports.forge.ticks():
        verb, what = tick.box.split(" ")[:2]
        if verb in ONCE and what != str(state.obeyed):
            continue
        if tick.actor is None:
            ignored.append((tick.box, "it is unclear who ticked this: untick it and tick it again"))
        elif not may_decide(tick.actor, settings.owners, ports.forge.may_approve):
            may = "owners" if settings.owners else "people with write access"
            ignored.append((tick.box, f"ticked by {person_name(tick.actor)}, but only {may} decide here"))
        elif verb not in THREAD_ORDERS:
            ordered.append(tick.box)
    return {"orders": tuple(ordered), "ignored": tuple(ignored)}


def read_fix_records(ports: CyclePorts, situation: Situation, past: MemorySnapshot | None) -> Situation:
    """The situation with the records of fixes that may be proposed, as one may have failed before."""
    fixes = (draft for draft in drafts(situation) if draft.action is Action.OPEN_FIX)
    keys = {effect.key for draft in fixes for effect in draft.effects}
    return replace(situation, records={**situation.records, **ports.store.records(keys, past)}) if keys else situation


def first_memory(ports: CyclePorts, now: datetime) -> Memory:
    """The first memory of a repository."""
    lineage = key_of("lineage", ports.forge.default_branch().sha, now.isoformat())
    return Memory(Header(lineage=lineage))


def read_records(
    ports: CyclePorts, situation: Situation, keys: Iterable[str], past: MemorySnapshot | None
) -> dict[str, Record]:
    """The records of these keys, added to those already read."""
    return {**situation.records, **ports.store.records(keys, past)}


def mission_of_issue(issue: Issue, number: int, cycle: int, now: datetime, agent: bool) -> Mission:
    """A new mission for this issue; `agent`: whether an agent carries it out."""
    mission = Mission(
        number, _key(issue, _times(issue)), plain(issue.title), HUMAN, Action.OPEN_PROPOSAL, Tier.HIGH,
        Status.DISCOVERED, cycle, now, now, issue=issue.number, last_action="a person made it a mission",
        next_step=WAITS_FOR_AGENT if agent else NOBODY_HERE,
    )  # fmt: skip  # one value
    return advance(mission, MissionEvent.APPROVED, now)


def pulls_for(pulls: Iterable[Pull], us: int, handed: Collection[int] = ()) -> Mapping[int, tuple[int, Pull]]:
    """Our newest open pull request for each person's issue, with the number of its mission, by the issue's number.

    One made by `ralph work` names no mission (0); it counts once it is `handed` over, open or not.
    """
    ours = (
        p
        for p in pulls
        if (p.state == "open" or p.number in handed) and p.author.id == us and p.head.startswith(ownership.BRANCHES)
    )
    signed = ((_signature(pull)[1], pull) for pull in sorted(ours, key=lambda pull: pull.number))
    return {
        int(facts["issue"]): (int(facts.get("mission", 0)), pull) for facts, pull in signed if _names_its_asker(facts)
    }


def found_again(mission: Mission, number: int, issue: Issue, pull: Pull, authorised: frozenset[int]) -> Mission:
    """Restore `mission` under `number`, whose change is in this pull request.

    It gets its old key from the pull request's marker, so that nothing done for it is done again.
    """
    signed, facts = _signature(pull)
    if "mission" in facts:
        keys = (_key(issue, times) for times in range(1, _times(issue) + 1))
        key = next((key for key in keys if key_of(key, "open_pull") == signed), mission.key)
        note = "found again by its pull request"
    else:  # a finished issue that was reopened is another mission, with effects of its own
        key, note = key_of("mission", "work", str(issue.number), str(number)), f"`ralph work` opened #{pull.number}"
    status = next((status for label, status in STANDING if label in issue.labels), Status.IN_REVIEW)
    found = replace(mission, id=number, key=key, status=status, last_action=note, next_step="")
    return caught_up(found, pull, authorised)


def caught_up(mission: Mission, pull: Pull, authorised: frozenset[int]) -> Mission:
    """The mission with its pull request. A review of an older commit counts as answered, by the push.

    Somebody else's commit is never taken for ours just because memory was lost: then no head counts as ours, and the
    mission is stuck until a person has looked at it.
    """
    requests = [r for r in pull.reviews if r.state == "changes_requested" and r.author.id in authorised]
    earlier = [review for review in requests if review.sha != pull.head_sha]
    head = pull.head_sha if pull.commits and pull.own.issuperset(pull.commits) else ""
    return update_mission(
        mission, pull=pull.number, branch=pull.head, head_sha=head,
        base_sha=head,  # an answer merges nothing in
        rounds=len({review.sha for review in earlier}), answered_at=max((r.at for r in earlier), default=None),
    )  # fmt: skip  # one value


def _key(issue: Issue, times: int) -> str:
    return key_of("mission", "issue", str(issue.number), str(times))


def _times(issue: Issue) -> int:
    """How often somebody set the label `ralph:mission`."""
    return sum(event.added and event.label == "ralph:mission" for event in issue.events)


def _signature(pull: Pull) -> tuple[str, Mapping[str, str]]:
    """Key and facts of the marker in the last line of a pull request's text; further up it may be a quotation."""
    found = MARKER.fullmatch(pull.body.rstrip().rpartition("\n")[2].strip())
    return (found[1], ownership.facts_in(found[0])) if found else ("", {})


def _names_its_asker(facts: Mapping[str, str]) -> bool:
    numbers = (facts.get("mission", "1"), facts.get("issue", ""))
    if facts.get("kind") != HUMAN or not all(_NUMBER.fullmatch(number) for number in numbers):
        return False
    return "mission" in facts or facts == ownership.work_facts(int(facts["issue"]))


def adopt(
    ports: CyclePorts,
    settings: CycleSettings,
    state: OpenState,
    issues: Iterable[Issue],
    lost: Mapping[int, tuple[int, Pull]],
    handed: Collection[int],
    cycle: int,
    now: datetime,
) -> Iterable[Mission]:
    """Missions that an authorised person requested by labelling an issue; anyone else's label is ignored.

    If its pull request is open (`lost`, by issue), the mission is not new but continues where it was. A pull request of
    `ralph work`, which only handles authorised requests, needs no label. One that no cycle has seen yet (`handed`)
    becomes a mission whatever people did meanwhile, so that their verdict is answered; it replaces a parked mission
    without a pull request. Issues that `ralph work` is working on are left alone.
    """
    ours, ids = {m.issue for m in state.missions}, {m.id for m in state.missions}
    parked = {m.issue for m in state.missions if m.status is Status.PARKED and not m.pull}
    requested = {issue.number for issue in issues if "ralph:mission" in issue.labels}
    open_ = {issue.number for issue in issues}
    new = {issue for issue, (before, pull) in lost.items() if pull.number in handed and not before}
    number = max([state.next_mission, *(id + 1 for id in ids), *(id + 1 for id, _ in lost.values())])
    for one in sorted(requested | (open_ & lost.keys()) | new):
        before, pull = lost.get(one, (0, None))
        by_work, first = pull is not None and not before, one in new
        if one in (ours - parked if first else ours) or not (by_work or one in requested):
            continue
        if one in state.working:
            ports.progress.note(f"#{one} is left to `ralph work`, which is at it or has to end it")
            continue
        full = read_if_there(one, ports.forge.issue)
        if full is None:
            continue
        authorised = authorised_among(ports, settings, full, None)
        mission = mission_of_issue(full, number, cycle, now, ports.coder is not None)
        if not first and not _still_wanted(full, mission, authorised, by_work):
            continue
        if pull is None or before in ids:
            yield mission
            number += 1
            continue
        found = _found_again(ports, settings, mission, before or number, full, ports.forge.pull(pull.number))
        yield replace(found, status=Status.IN_REVIEW) if first else found
        ids.add(before or number)
        number += by_work


def _found_again(
    ports: CyclePorts, settings: CycleSettings, mission: Mission, number: int, issue: Issue, pull: Pull
) -> Mission:
    found = found_again(mission, number, issue, pull, authorised_among(ports, settings, issue, pull))
    return replace(found, comment=ownership.own_remark(found, {}, issue, ports.forge.identity().id))


def _still_wanted(issue: Issue, mission: Mission, authorised: frozenset[int], by_work: bool) -> bool:
    """Whether an authorised person set the current label, after the mission was parked and forgotten."""
    if issue.state != "open" or approval.on_issue(issue, mission, authorised).state == "rejected":  # lists may be late
        return False
    request = approval.standing_label(issue, "ralph:mission")
    parked = approval.standing_label(issue, "ralph:parked")
    if request is None or request.actor.id not in authorised:
        return by_work and parked is None
    return parked is None or request.at > parked.at
