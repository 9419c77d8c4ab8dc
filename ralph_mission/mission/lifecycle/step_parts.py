"""What steps are made of: the nouns, and the pieces that several of them share."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.model.cycle import Interpretation, Lesson, MissionFacts, MissionStep, StepContext
from ralph_mission.mission.model.effects import CloseIssue, ClosePull, Comment, EditComment, Effect
from ralph_mission.mission.model.forge import Pull
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.mission import Action, Mission, Status
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals import wording

TICK = timedelta(milliseconds=1)  # the finest that a forge's times are told in


def count_wait(mission: Mission) -> Mission:
    """One more cycle without progress, where progress would be ours to make."""
    working = mission.status in (Status.PLANNED, Status.EXECUTING, Status.FIXING)
    return replace(mission, stalled_cycles=mission.stalled_cycles + 1) if working else mission


def propose_step(
    action: Action, before: Mission, after: Mission, effects: tuple[Effect, ...], who: str, lesson: Lesson | None
) -> MissionStep:
    """A step that sends `effects`, and leads to `after` once they are done."""
    key = key_of(before.key, action, *(effect.key for effect in effects))
    proposal = Proposal(
        key, action, before.kind, before.title, effects, before=before, interim=before, after=after, approver=who
    )
    return MissionStep(count_wait(before), proposal, lesson)


def add_to_story(mission: Mission, around: StepContext, line: str, next_step: str) -> Mission:
    """The mission with one more line in its story."""
    story = (*mission.story, f"cycle {around.cycle}: {line}")
    return replace(mission, story=story, last_action=line, next_step=next_step)


def finish_mission(mission: Mission, around: StepContext, outcome: str, learning: str) -> Mission:
    """The mission at its end."""
    return replace(mission, outcome=outcome, learning=learning, finished_at=around.now)


def story_comment(after: Mission, around: StepContext, extra: str = "") -> Comment | EditComment:
    """Our one standing remark: made once, then edited. Another text is another deed, whatever was said before.

    One that somebody deleted gets a successor. `extra` stands below the story.
    """
    line = ownership.of_remark(after.key)
    if not after.comment:
        fresh = ownership.next_key(line, around.records)
        return Comment(fresh, after.issue, wording.story(after, fresh, extra))
    body = wording.story(after, ownership.last_key(line, around.records), extra)
    return EditComment(key_of(after.key, "edit_comment", body), after.issue, after.comment, body)


def close_issue(mission: Mission, facts: MissionFacts, reason: str) -> tuple[CloseIssue, ...]:
    """Closes the mission's issue where it is still open."""
    still_open = facts.issue is not None and facts.issue.state == "open"
    return (CloseIssue(key_of(mission.key, "close_issue"), mission.issue, reason),) if still_open else ()


def close_pull(mission: Mission, pull: Pull | None, why: str) -> tuple[ClosePull | Comment, ...]:
    """Closes what is still open of a mission that ended elsewhere, and says there why."""
    if pull is None or pull.state != "open":
        return ()
    key = key_of(mission.key, "comment", "close_pull")
    word = Comment(key, pull.number, wording.nobody_merges(why, key))
    return ClosePull(key_of(mission.key, "close_pull"), pull.number), word


def lesson(mission: Mission, verdict: str, reason: str = "") -> Lesson:
    """What a person taught by a verdict on this mission."""
    return Lesson(mission.id, mission.kind, mission.members, verdict, reason)


def deny_step(mission: Mission, facts: MissionFacts, reading: Interpretation) -> MissionStep:
    """Shown as a denied decision, so that whoever said yes can see which rule it ran into."""
    action = Action.FINISH if facts.pull else Action.OPEN_FIX
    proposal = Proposal(
        key_of(mission.key, "refused", *reading.opinion.rules),
        action,
        mission.kind,
        mission.title,
        before=mission,
        interim=mission,
        after=mission,
        approver=wording.person_name(reading.opinion.actor),
        objections=reading.opinion.rules,
    )
    return MissionStep(count_wait(mission), proposal)
