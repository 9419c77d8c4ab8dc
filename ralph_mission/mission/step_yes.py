"""The steps after a yes: what was planned, or did not get through, is sent while the yes still stands."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission import announced, coding, content_steps, offering, wording
from ralph_mission.mission.approval import on_issue
from ralph_mission.mission.effects import OpenPull, PushBranch
from ralph_mission.mission.ledger import EffectRecord, key_of
from ralph_mission.mission.lifecycle import Interpretation, MissionEvent, MissionFacts, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.proposal import Proposal
from ralph_mission.mission.step_parts import (
    MissionStep,
    StepContext,
    add_to_story,
    count_wait,
    lesson,
    propose_step,
    story_comment,
)

UNNAMED = "the change kept for it is not named in this issue and is not sent"
BY_HAND = "No fixer can do this: do it by hand, then close the issue as completed."


def start_approved(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A yes, to a proposal, an offer or a text: what it is to is released."""
    who = wording.person_name(reading.opinion.actor)
    if mission.action is Action.PUBLISH:
        return content_steps.release_posts(mission, facts, around, who)
    if mission.offered_until:
        return offering.push_offer(mission, facts, around, who)
    planned = advance(mission, MissionEvent.APPROVED, around.now)
    if not mission.pending or not (facts.announced or facts.offered):  # our issue names no change to say yes to
        unnamed = f"; {UNNAMED}" if mission.pending else ""
        then = coding.WAITS_FOR_AGENT if facts.coder else BY_HAND
        after = replace(add_to_story(planned, around, f"approved by {who}{unnamed}", then), pending=())
        return propose_step(
            Action.ANSWER, mission, after, (story_comment(after, around),), who, lesson(mission, "accepted")
        )
    executing = advance(planned, MissionEvent.STARTED, around.now)
    executing = add_to_story(
        executing, around, f"approved by {who}; the branch is pushed for review", "Review the pull."
    )
    return _carried_out(mission, executing, facts, around, who)


def resume(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """What did not get through, sent now; where a person was asked, only while the yes still stands."""
    started = advance(mission, MissionEvent.STARTED, around.now) if mission.status is Status.PLANNED else mission
    if not mission.proposal_hash:
        if facts.coder and not facts.announced:  # we died before we could name it: what was made is still there
            return MissionStep(replace(count_wait(mission), pending=()))
        return _carried_out(mission, started, facts, around, "")
    who = said_yes(mission, facts)
    if not who:
        return MissionStep(count_wait(mission))
    return _carried_out(mission, started, facts, around, who)


def said_yes(mission: Mission, facts: MissionFacts) -> str:
    """Whose yes to a proposal stands now, "" when there is none."""
    if facts.issue is None or not mission.proposal_hash:
        return ""
    said = on_issue(facts.issue, mission, facts.authorised, facts.offered_at, facts.yes, facts.edited_at)
    return wording.person_name(said.actor) if said.state == "approved" else ""


def _carried_out(
    mission: Mission, executing: Mission, facts: MissionFacts, around: StepContext, who: str
) -> MissionStep:
    """The effects that were planned or did not get through, sent now.

    A branch and a pull, and nothing else that memory may hold: it grants nothing, a merge least of all. Nor any
    other branch and pull than the mission's issue names: nobody was shown those, so nobody's yes is to them.
    """
    records = [around.records.get(key) for key in mission.pending]
    kept = [record for record in records if isinstance(record, EffectRecord)]
    effects = tuple(record.effect for record in kept if isinstance(record.effect, PushBranch | OpenPull))
    named = facts.announced | facts.offered if who else facts.announced
    shown = all(announced.change_digest(effect) in named for effect in effects)
    strange = not shown or any(record.mission != mission.id for record in kept)
    who = "" if strange else who
    after = replace(advance(executing, MissionEvent.PULL_OPENED, around.now), pending=(), waiting_since=around.now)
    proposal = Proposal(
        key_of(mission.key, "carry-out"),
        Action.OPEN_FIX,
        mission.kind,
        mission.title,
        effects,
        before=mission,
        interim=executing,
        after=after,
        approved=bool(who),
        approver=who,
        objections=("approval-content",) if strange else (),
        wished=not facts.unasked,
    )
    return MissionStep(count_wait(mission), proposal, lesson(mission, "accepted") if who else None)
