"""What the forge says about missions now, and who is authorised there. Read-only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ralph_mission.errors import Missing
from ralph_mission.mission.coder import tasks
from ralph_mission.mission.decide import with_findings
from ralph_mission.mission.issues.tasks import READY
from ralph_mission.mission.lifecycle import approval, chat_commands, ownership
from ralph_mission.mission.lifecycle.approval import agent_of_label
from ralph_mission.mission.lifecycle.table import brought_back, interpret_facts
from ralph_mission.mission.model.cycle import CycleSettings, MissionEvent, MissionFacts, Situation
from ralph_mission.mission.model.forge import Actor, Issue, Pull
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.mission import Action, Mission, Status
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.mission.publishing import content

T = TypeVar("T", Issue, Pull)
ANSWERS = {
    MissionEvent.APPROVED: "approved; the next cycle goes ahead",
    MissionEvent.MERGEABLE: "approved; the next cycle merges it",
    MissionEvent.BEHIND: "approved; the next cycle brings it up to date",
    MissionEvent.MERGED: "merged; the next cycle closes its mission",
    MissionEvent.DONE: "closed; the next cycle looks whether it is done",
    MissionEvent.PUBLISHED: "published; the next cycle closes it",
    MissionEvent.REFUSED: "rejected; the next cycle closes it",
    MissionEvent.GONE: "deleted; the next cycle lets it go",
    MissionEvent.CHANGES_REQUESTED: "changes were requested; the next cycle answers",
    MissionEvent.CHECKS_FAILED: "its checks failed; the next cycle looks into it",
}
"""What happened on the forge since the last cycle, and so need not be asked of anybody."""


def read_answers(ports: CyclePorts, settings: CycleSettings, state: OpenState, now: datetime) -> dict[int, str]:
    """The missions, by id, whose answer stands on the forge and was not acted on yet. Raises UserError."""
    found = {}
    for mission in state.missions:
        if mission.thread and mission.status.active:
            event = interpret_facts(mission, facts_about(ports, settings, mission, state), now).event
            if event is MissionEvent.MERGEABLE and mission.progress.failure:
                continue  # it was tried, and its reason is among what waits
            if event in ANSWERS:
                found[mission.id] = ANSWERS[event]
    return found


def facts_about(ports: CyclePorts, settings: CycleSettings, mission: Mission, state: OpenState) -> MissionFacts:
    """What the forge says about one mission now, with what owners wrote about it in a chat."""
    ((_, facts),) = chat_commands.known_to(((mission.id, read_facts(ports, settings, mission)),), state, ports.seal)
    return facts


def refresh_facts(ports: CyclePorts, situation: Situation) -> Situation:
    """The situation with missions, issues and pull requests read again, as an agent's work takes a while."""
    ports.forge.forget_lists()
    issues, pulls = ports.forge.issues("open"), ports.forge.pulls("all")
    known = [mission for mission in situation.missions if mission.thread]
    facts = tuple((mission.id, read_facts(ports, situation.settings, mission)) for mission in known)
    branches, facts = tuple(pull.head for pull in pulls), chat_commands.known_to(facts, situation.state, ports.seal)
    world = replace(situation.world, facts=facts, issues=issues, pulls=pulls, branches=branches)
    return with_findings(replace(situation, world=world))


def read_facts(ports: CyclePorts, settings: CycleSettings, mission: Mission) -> MissionFacts:
    """What the forge says about one mission, without threads that turn out not to be its own."""
    issue = read_if_there(mission.issue, ports.forge.issue) if mission.issue else None
    pull = read_if_there(mission.pull, ports.forge.pull) if mission.pull else None
    if pull and not mission.issue:
        issue = pull.as_issue()
    ports.progress.note(f"#{mission.thread} {mission.title}: {mission.status}")
    coder, us = ports.coder is not None, ports.forge.identity().id
    agent_waits = coder and mission.status in tasks.WAITS
    asks = bool(mission.question.proposal_hash) and not mission.pull
    edits = ports.forge.edits(mission.thread) if (agent_waits or asks) and issue and settings.owners else ()
    speakers = (tasks.list_speakers(issue, pull) if agent_waits else frozenset()) | {edit.actor for edit in edits}
    authorised = authorised_among(ports, settings, issue, pull, speakers)
    if foreign := ownership.why_foreign(mission, issue, pull, us, authorised):
        ports.progress.note(f"{foreign}: nothing is written there")
        return _of_another(mission, issue, pull, us, authorised, foreign)
    facts = _issue_facts(mission, issue, us, authorised)
    facts = replace(facts, pull=pull, authorised=authorised, coder=coder, seen_at=_newest(issue, pull))
    facts = replace(facts, usual_reason=ports.forge.usual_reason)
    if asks:
        theirs = (edit.at for edit in edits if edit.actor.id not in {*authorised, us})
        facts = replace(facts, edited_at=max(theirs, default=None))
    if mission.action is Action.PUBLISH and issue:
        posts = content.measure_posts(ports.publisher, issue.body) if issue.author.id == us else content.FOREIGN
        facts = replace(facts, shown=posts)
        if request := content.find_request(mission, facts):  # an earlier approval was for the text that is to change
            edited = max(filter(None, (facts.edited_at, request.created_at)))
            facts = replace(facts, edited_at=edited)
    if issue is None or not settings.owners:
        return facts
    calls = {event.label for event in issue.events if event.label == READY or agent_of_label(event.label)}
    at = approval.asked_at(issue, authorised, "ralph:mission", approval.APPROVED, *calls)
    reworded = (
        _reworded_reviews(ports, pull) if agent_waits and pull and mission.status is Status.FIXING else frozenset()
    )
    altered = approval.find_altering_editor(edits, {*authorised, us}, at) if agent_waits else None
    return replace(facts, asked_at=at, altered=altered, reworded=reworded)


def _of_another(
    mission: Mission, issue: Issue | None, pull: Pull | None, us: int, authorised: frozenset[int], foreign: str
) -> MissionFacts:
    """The facts if its thread is not, or no longer, this mission's."""
    ours = not ownership.why_foreign(mission, issue, None, us, authorised)
    pull_left = None if ours else ownership.own_pull(mission, pull, us)
    return MissionFacts(None, None, frozenset(), foreign, ours=ours, left=pull_left, seen_at=_newest(issue, pull))


def _issue_facts(mission: Mission, issue: Issue | None, us: int, authorised: frozenset[int]) -> MissionFacts:
    """The issue, and what our own text there announces to be sent, or to be sent after approval."""
    announcement = ownership.own_change(mission, issue, us)
    texts = (issue.body if issue and issue.author.id == us else "", announcement.body if announcement else "")
    named, offered = (
        frozenset().union(*(ownership.announced_digests(text, yes) for text in texts)) for yes in (False, True)
    )
    offered_at = (
        announcement.created_at if announcement and ownership.announced_digests(announcement.body, True) else None
    )
    requested = issue is not None and brought_back(issue, authorised, us)
    unasked = bool(ownership.announced_digests(texts[0], False)) and not requested
    return MissionFacts(issue, None, frozenset(), "", named, offered, offered_at, us=us, unasked=unasked)


def _newest(issue: Issue | None, pull: Pull | None) -> datetime | None:
    """When there was last activity on an issue, or reviews of its pull request, that a mission may have to react to."""
    if issue is None:
        return None
    remarks, reviews = issue.remarks, pull.reviews if pull else ()
    at = (*(event.at for event in issue.events), *(one.created_at for one in remarks), *(one.at for one in reviews))
    return max((issue.created_at, *at))


def _reworded_reviews(ports: CyclePorts, pull: Pull) -> frozenset[int]:
    """Reviews that may have been edited by others. The pull request was read before, so no later edit is missed."""
    own = ports.forge.own_reviews(pull.number)
    return frozenset(review.id for review in pull.reviews if review.id not in own)


def read_if_there(number: int, get: Callable[[int], T]) -> T | None:
    """An issue or pull request; None if it was deleted. Raises UserError for any other failure."""
    try:
        return get(number)
    except Missing:
        return None


def authorised_among(
    ports: CyclePorts,
    settings: CycleSettings,
    issue: Issue | None,
    pull: Pull | None,
    also: frozenset[Actor] = frozenset(),
) -> frozenset[int]:
    """The ids of authorised people among those who took part there, and `also`."""
    people = approval.list_deciders(issue, pull) | also
    return frozenset(p.id for p in people if approval.may_decide(p, settings.owners, ports.forge.may_approve))
