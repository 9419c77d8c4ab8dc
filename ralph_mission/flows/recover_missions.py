"""Missions rebuilt from our issues and pulls on the forge, and from people's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime

from ralph_mission.flows.recover_parts import Told
from ralph_mission.flows.traces import Trace
from ralph_mission.mission import approval, belonging, wishes
from ralph_mission.mission.kinds import lookup
from ralph_mission.mission.ledger import OpenState, key_of
from ralph_mission.mission.model import Action, Issue, Mission, Pull, Status
from ralph_mission.mission.ports import Forge
from ralph_mission.trouble import Missing

ASK_AGAIN = "recovered"  # no text has this hash: the next cycle posts the proposal's line anew


def rebuilt_missions(
    state: OpenState, traces: tuple[Trace, ...], forge: Forge, now: datetime, told: Told
) -> tuple[Mission, ...]:
    """Those that can still be read, and those that only the forge knows."""
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


def _one_of_each_number(missions: Iterable[Mission], traces: tuple[Trace, ...], told: Told) -> Iterable[Mission]:
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
    action, tier = trace.action, lookup(trace.kind).tier
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


def next_mission(state: OpenState, traces: Iterable[Trace]) -> int:
    """A number that no mission has or had."""
    used = [mission.id for mission in state.missions] + [trace.mission for trace in traces]
    return max([state.next_mission, *(number + 1 for number in used)])
