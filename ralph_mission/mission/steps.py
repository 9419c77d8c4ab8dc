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
from ralph_mission.mission.lifecycle import Interpretation, MissionEvent, MissionFacts, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.step_parts import (
    TICK,
    MissionStep,
    StepContext,
    add_to_story,
    count_wait,
    deny_step,
    lesson,
    propose_step,
    story_comment,
)


def next_step(
    mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext
) -> tuple[MissionStep, ...]:
    """What follows from this reading: usually one step; a refused yes and a new question are two."""
    if facts.foreign:
        return (step_aside.kept_away(mission, facts, around),)
    refused = (deny_step(mission, facts, reading),) if reading.opinion.rules else ()
    if reading.event is not None:
        return (*refused, _BY_EVENT[reading.event](mission, facts, reading, around))
    if mission.action is Action.PUBLISH:
        return (*refused, _publish(mission, facts, around))
    if _was_edited(mission, facts):
        return (*refused, _ask_again(mission, facts, around))
    if mission.status in (Status.PLANNED, Status.EXECUTING) and mission.pending:
        return (step_yes.resume(mission, facts, around),)
    if mission.status is Status.FIXING and facts.coder and mission.pending:
        return (*refused, offering.resume_offer(mission, facts, around) or coded.retry_answer(mission))
    if facts.coder and coding.is_review_answered(mission, facts):
        return (*refused, coded.close_answered_review(mission, around))
    if made := around.made.get(mission.id):
        return (*refused, coded.follow(mission, facts, made, around))
    return refused or (_waiting(mission, facts, around),)


def _publish(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    if why := content_steps.refused_everywhere(mission, facts, around):
        return step_aside.escalate(mission, mission, facts, Interpretation(MissionEvent.STUCK), around, why)
    return content_steps.follow(mission, facts, around)


def _waiting(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """Nothing happened. An agent that cannot be told what to do says so: in the mission's story, once."""
    untold = facts.coder and mission.status in coding.WAITS and facts.issue and coding.why_not(mission, facts)
    if not untold:
        return MissionStep(count_wait(mission))
    line = f"no agent takes it: {untold}"
    stays = replace(mission, next_step=f"N{line[1:]}.")
    if any(said.endswith(line) for said in mission.story):
        return MissionStep(stays)
    after = add_to_story(mission, around, line, stays.next_step)
    step = propose_step(Action.ANSWER, mission, after, (story_comment(after, around),), "", None)
    return replace(step, mission=stays)  # it waits for a person, and not for us


def _changes_requested(
    mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext
) -> MissionStep:
    mission = offering.void_offer(mission)
    fixing = replace(advance(mission, MissionEvent.CHANGES_REQUESTED, around.now), answered_before=mission.answered_at)
    if facts.coder and mission.rounds < coding.ROUNDS:
        who = wording.person_name(reading.opinion.actor)
        after = add_to_story(fixing, around, f"{who} asked for changes", coding.WAITS_FOR_AGENT)
        return propose_step(Action.ANSWER, mission, after, (story_comment(after, around),), "", None)
    if facts.coder:
        words = f"asked for changes again after {mission.rounds} answers"
        return step_aside.escalate(mission, fixing, facts, reading, around, words)
    return step_aside.escalate(mission, fixing, facts, reading, around, "asked for changes that no fixer can make")


def _pull_opened(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    if mission.status is not Status.EXECUTING:
        return step_aside.revive(mission, facts, reading, around)
    assert facts.pull is not None
    opened = advance(mission, MissionEvent.PULL_OPENED, around.now)
    opened = replace(opened, pull=facts.pull.number, pending=(), waiting_since=around.now)
    return MissionStep(opened, lesson=lesson(mission, "accepted") if step_yes.said_yes(mission, facts) else None)


_BY_EVENT: dict[MissionEvent, Callable[[Mission, MissionFacts, Interpretation, StepContext], MissionStep]] = {
    MissionEvent.MERGEABLE: step_ends.merge,
    MissionEvent.BEHIND: step_ends.catch_up,
    MissionEvent.MERGED: step_ends.close_merged,
    MissionEvent.REFUSED: step_ends.refused_for_good,
    MissionEvent.DONE: step_ends.close_done,
    MissionEvent.PUBLISHED: content_steps.over,
    MissionEvent.APPROVED: step_yes.start_approved,
    MissionEvent.CHANGES_REQUESTED: _changes_requested,
    MissionEvent.STUCK: step_aside.escalate_stuck,
    MissionEvent.UNANSWERED: step_aside.park,
    MissionEvent.GONE: step_ends.close_gone,
    MissionEvent.REVIVED: step_aside.revive,
    MissionEvent.PULL_OPENED: _pull_opened,
}


def _was_edited(mission: Mission, facts: MissionFacts) -> bool:
    issue = facts.issue
    asked = mission.status is Status.DISCOVERED and mission.proposal_hash and issue is not None
    return bool(asked) and issue is not None and not stands(issue, mission)


def _ask_again(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """The text is someone else's now, so the planned change that stood in it is not what a yes would mean."""
    assert facts.issue is not None
    bound = about(mission, facts.issue.title, facts.issue.body)
    key, digest = key_of(mission.key, "comment", bound.proposal_sha256), bound.proposal_hash
    asked = facts.issue.updated_at + TICK  # by the forge's clock: ours may be fast, and an earlier yes is no answer
    after = replace(bound, proposal_at=asked, pending=(), waiting_since=around.now)
    comment = Comment(key, mission.issue, wording.ask_again(digest, key))
    return propose_step(Action.ANSWER, mission, after, (comment,), "", None)
