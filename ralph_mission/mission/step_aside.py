"""The steps by which a mission is set aside, and brought back: escalated, parked, revived, let go."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission import offering, wording
from ralph_mission.mission.effects import Comment, Effect, Label
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.lifecycle import ESCALATED_FOR, Interpretation, MissionEvent, MissionFacts, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.step_parts import (
    MissionStep,
    StepContext,
    add_to_story,
    close_pull,
    finish_mission,
    propose_step,
    story_comment,
)

CLAIM_IT = (
    "A person looks: if it is Ralph's after all, set the label `ralph:mission` on the issue anew; "
    "if not, memory was tampered with: `ralph memory verify`."
)


def escalate_stuck(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """It cannot go on by itself."""
    return escalate(mission, mission, facts, reading, around, reading.words)


def escalate(
    mission: Mission, at: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext, why: str
) -> MissionStep:
    """A person is asked to decide, where it stands: in the mission's story, by a remark and by labels."""
    actor = reading.opinion.actor
    who = wording.person_name(actor) if actor and reading.event is MissionEvent.CHANGES_REQUESTED else ""
    after = _mark_seen(advance(at, MissionEvent.STUCK, around.now), facts)
    line = f"escalated: {f'{who} ' if who else ''}{why}"
    choices = "mend that, edit the text," if mission.action is Action.PUBLISH else "push to the branch, merge,"
    after = add_to_story(after, around, line, f"A person decides: {choices} close, or take the label off.")
    words = reading.words if who else ""
    slot = f"escalated {mission.rounds} {len(mission.story)}"
    key = key_of(mission.key, "comment", slot)
    body = wording.story(after, key, wording.escalation(around.owners, words, who))
    label = Label(key_of(mission.key, "label", slot), mission.issue, add=("ralph:escalated",), assign=around.owners)
    on_pull = _on_pull(mission, facts, slot, add=("ralph:escalated",))
    effects: tuple[Effect, ...] = (Comment(key, mission.issue, body), label, *on_pull)
    step_ = propose_step(Action.ANSWER, mission, after, effects, "", None)
    assert step_.proposal is not None
    proposal = replace(step_.proposal, pings=around.owners, objections=())
    return replace(step_, proposal=proposal)


def park(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """Nobody answered: its slot is free until somebody wants it again."""
    after = _mark_seen(advance(mission, MissionEvent.UNANSWERED, around.now), facts)
    after = add_to_story(
        after, around, f"parked: {reading.words}", "Set the label `ralph:mission` again to bring it back."
    )
    after = replace(after, outcome="parked")
    label = Label(key_of(mission.key, "label", f"parked {len(mission.story)}"), mission.issue, add=("ralph:parked",))
    return propose_step(Action.ANSWER, mission, after, (story_comment(after, around), label), "", None)


def revive(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A person brought it back: it begins where it can."""
    assert reading.event is not None
    after = advance(mission, reading.event, around.now)
    if after.status is Status.DISCOVERED and not _asks(mission):
        after = advance(after, MissionEvent.APPROVED, around.now)
    after = replace(after, outcome="", failure="", failures=0, turns=0, waiting_since=around.now)
    if after.status is Status.IN_REVIEW and facts.pull:
        after = after if facts.pull.head_sha == after.head_sha else offering.void_offer(after)
        after = replace(after, head_sha=facts.pull.head_sha)  # a person looked at it; it is merged only as approved
    after = add_to_story(after, around, "brought back by a person", "Waiting for a person's answer.")
    slot, ours = f"revived {len(mission.story)}", ("ralph:parked", "ralph:escalated")
    label = Label(key_of(mission.key, "label", slot), mission.issue, remove=ours)
    effects: tuple[Effect, ...] = (story_comment(after, around), label, *_on_pull(mission, facts, slot, remove=ours))
    return propose_step(Action.ANSWER, mission, after, effects, "", None)


def _asks(mission: Mission) -> bool:
    """Whether there is a text that a person can say yes to. Else bringing it back is all the yes there can be."""
    return bool(mission.proposal_hash) or mission.action is Action.PUBLISH


def _mark_seen(mission: Mission, facts: MissionFacts) -> Mission:
    """The mission with how far it was looked at: only what people say after that brings it back."""
    heard = max(filter(None, (mission.heard_at, facts.heard_at)), default=None)
    return replace(mission, seen_at=facts.seen_at, heard_at=heard)


def _on_pull(
    mission: Mission, facts: MissionFacts, slot: str, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> tuple[Label, ...]:
    """The same labels on the pull that waits: whoever looks there sees how it stands, and its text links the issue."""
    pull = facts.pull
    if pull is None or pull.state != "open" or not (add or pull.labels & set(remove)):
        return ()
    return (Label(key_of(mission.key, "label", slot, "pull"), pull.number, add=add, remove=remove),)


def kept_away(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """What memory says of it the forge does not bear out: nothing is sent, nothing learned, and a person is asked.

    A person's own mission ends with the label; any other gives its slot back after a week.
    """
    if mission.kind == "human" and not facts.ours:
        return _let_go(mission, facts, around)
    if mission.status is Status.PARKED:
        return MissionStep(mission)
    if mission.status is Status.ESCALATED:
        over = around.now - mission.changed_at >= ESCALATED_FOR
        return MissionStep(
            replace(advance(mission, MissionEvent.UNANSWERED, around.now), outcome="parked") if over else mission
        )
    stuck = _mark_seen(advance(mission, MissionEvent.STUCK, around.now), facts)
    return MissionStep(add_to_story(stuck, around, f"nothing is written: {facts.foreign}", CLAIM_IT))


def _let_go(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """The label is off: the issue is only its author's again, and of ours the open pull is left."""
    line = "no longer labelled `ralph:mission`"
    gone = add_to_story(advance(mission, MissionEvent.GONE, around.now), around, line, "Nothing.")
    gone = finish_mission(gone, around, "let go", "the label was taken off")
    effects = close_pull(mission, facts.left, f"the issue #{mission.issue} is {line}")
    return propose_step(Action.FINISH, mission, gone, effects, "", None) if effects else MissionStep(gone)
