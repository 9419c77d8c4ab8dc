"""Missions that people requested with an issue: new ones, those of `ralph work`, and those that memory lost.

A person's issue carries no marker of ours; the pull request that an agent made for it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.lifecycle import approval, ownership
from ralph_mission.mission.lifecycle.facts import authorised_among, read_if_there
from ralph_mission.mission.lifecycle.steps import NOBODY_HERE
from ralph_mission.mission.lifecycle.table import advance
from ralph_mission.mission.lifecycle.waiting import WAITS_FOR_AGENT
from ralph_mission.mission.model.cycle import CycleSettings, MissionEvent
from ralph_mission.mission.model.effects import MARKER
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.mission.model.ledger import OpenState, key_of
from ralph_mission.mission.model.mission import HUMAN, Action, Mission, Status, Tier, update_mission
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.mission.proposals.wording import plain
from ralph_mission.values import compile_regex

STANDING = (("ralph:parked", Status.PARKED), ("ralph:escalated", Status.ESCALATED))
"""Our labels on an issue that show the state of its mission."""
_NUMBER = compile_regex(r"[1-9][0-9]{0,8}")


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
        key, note = (
            next((key for key in keys if key_of(key, "open_pull") == signed), mission.key),
            "found again by its pull request",
        )
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
