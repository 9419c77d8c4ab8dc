"""The next step of a mission: from what the facts mean to a worded proposal, or none.

One function per event. A step that changes the outside is a `Proposal` and goes through
policy like everything else; a step that only changes what we know is applied as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralph_mission.mission import coded, coding, content_steps, offering, step_aside, step_ends, step_yes, wording
from ralph_mission.mission.approval import about, stands
from ralph_mission.mission.effects import Comment
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.lifecycle import Event, Facts, Reading, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.step_parts import TICK, Circumstances, Step, denied, lesson, proposed, story, told, waited


def step(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> tuple[Step, ...]:
    """What follows from this reading: usually one step; a refused yes and a new question are two."""
    if facts.foreign:
        return (step_aside.kept_away(mission, facts, around),)
    refused = (denied(mission, facts, reading),) if reading.opinion.rules else ()
    if reading.event is not None:
        return (*refused, _BY_EVENT[reading.event](mission, facts, reading, around))
    if mission.action is Action.PUBLISH:
        return (*refused, _publish(mission, facts, around))
    if _edited(mission, facts):
        return (*refused, _ask_again(mission, facts, around))
    if mission.status in (Status.PLANNED, Status.EXECUTING) and mission.pending:
        return (step_yes.resume(mission, facts, around),)
    if mission.status is Status.FIXING and facts.coder and mission.pending:
        return (*refused, offering.resumed(mission, facts, around) or coded.unanswered(mission))
    if facts.coder and coding.answered(mission, facts):
        return (*refused, coded.answered(mission, around))
    if made := around.made.get(mission.id):
        return (*refused, coded.follow(mission, facts, made, around))
    return refused or (_waiting(mission, facts, around),)


def _publish(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    if why := content_steps.refused_everywhere(mission, facts, around):
        return step_aside.escalated(mission, mission, facts, Reading(Event.STUCK), around, why)
    return content_steps.follow(mission, facts, around)


def _waiting(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """Nothing happened. An agent that cannot be told what to do says so: in the mission's story, once."""
    untold = facts.coder and mission.status in coding.WAITS and facts.issue and coding.why_not(mission, facts)
    if not untold:
        return Step(waited(mission))
    line = f"no agent takes it: {untold}"
    stays = replace(mission, next_step=f"N{line[1:]}.")
    if any(said.endswith(line) for said in mission.story):
        return Step(stays)
    after = told(mission, around, line, stays.next_step)
    step = proposed(Action.ANSWER, mission, after, (story(after, around),), "", None)
    return replace(step, mission=stays)  # it waits for a person, and not for us


def _changes_requested(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    mission = offering.void(mission)
    fixing = replace(advance(mission, Event.CHANGES_REQUESTED, around.now), answered_before=mission.answered_at)
    if facts.coder and mission.rounds < coding.ROUNDS:
        who = wording.person(reading.opinion.actor)
        after = told(fixing, around, f"{who} asked for changes", coding.WAITS_FOR_AGENT)
        return proposed(Action.ANSWER, mission, after, (story(after, around),), "", None)
    if facts.coder:
        words = f"asked for changes again after {mission.rounds} answers"
        return step_aside.escalated(mission, fixing, facts, reading, around, words)
    return step_aside.escalated(mission, fixing, facts, reading, around, "asked for changes that no fixer can make")


def _pull_opened(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    if mission.status is not Status.EXECUTING:
        return step_aside.revived(mission, facts, reading, around)
    assert facts.pull is not None
    opened = advance(mission, Event.PULL_OPENED, around.now)
    opened = replace(opened, pull=facts.pull.number, pending=(), waiting_since=around.now)
    return Step(opened, lesson=lesson(mission, "accepted") if step_yes.said_yes(mission, facts) else None)


_BY_EVENT: dict[Event, Callable[[Mission, Facts, Reading, Circumstances], Step]] = {
    Event.MERGEABLE: step_ends.merge,
    Event.BEHIND: step_ends.catch_up,
    Event.MERGED: step_ends.merged,
    Event.REFUSED: step_ends.refused_for_good,
    Event.DONE: step_ends.done,
    Event.PUBLISHED: content_steps.over,
    Event.APPROVED: step_yes.approved,
    Event.CHANGES_REQUESTED: _changes_requested,
    Event.STUCK: step_aside.stuck,
    Event.UNANSWERED: step_aside.parked,
    Event.GONE: step_ends.gone,
    Event.REVIVED: step_aside.revived,
    Event.PULL_OPENED: _pull_opened,
}


def _edited(mission: Mission, facts: Facts) -> bool:
    issue = facts.issue
    asked = mission.status is Status.DISCOVERED and mission.proposal_hash and issue is not None
    return bool(asked) and issue is not None and not stands(issue, mission)


def _ask_again(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """The text is someone else's now, so the planned change that stood in it is not what a yes would mean."""
    assert facts.issue is not None
    bound = about(mission, facts.issue.title, facts.issue.body)
    key, digest = key_of(mission.key, "comment", bound.proposal_sha256), bound.proposal_hash
    asked = facts.issue.updated_at + TICK  # by the forge's clock: ours may be fast, and an earlier yes is no answer
    after = replace(bound, proposal_at=asked, pending=(), waiting_since=around.now)
    comment = Comment(key, mission.issue, wording.ask_again(digest, key))
    return proposed(Action.ANSWER, mission, after, (comment,), "", None)
