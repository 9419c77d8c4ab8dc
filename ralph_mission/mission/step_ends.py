"""The steps by which a mission ends: merged, refused, done by a person, gone."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission import offering, wording
from ralph_mission.mission.effects import Label, MergePull, PushBranch
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.lifecycle import Interpretation, MissionEvent, MissionFacts, advance
from ralph_mission.mission.model import Action, Mission
from ralph_mission.mission.step_parts import (
    MissionStep,
    StepContext,
    add_to_story,
    close_issue,
    close_pull,
    deny_step,
    finish_mission,
    lesson,
    propose_step,
    story_comment,
)


def merge(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A pull that was approved at its head is merged there; its issue is closed."""
    assert facts.pull is not None
    if facts.pull.base != around.default.name:  # the yes was to another merge than this would be
        refused = replace(reading.opinion, state="refused", rules=("approval-content",))
        return deny_step(mission, facts, replace(reading, opinion=refused))
    who = wording.person_name(reading.opinion.actor)
    merge = MergePull(
        key_of(mission.key, "merge_pull", mission.head_sha),
        facts.pull.number,
        mission.head_sha,
        around.merge_method,
        wording.merge_message(mission, who),
        facts.pull.base,
        reading.opinion.actor.id if reading.opinion.actor else 0,
    )
    after = _close_accepted(mission, around, who)
    effects = (merge, story_comment(after, around), *close_issue(mission, facts, "completed"))
    return propose_step(Action.FINISH, mission, after, effects, who, lesson(mission, "accepted"))


def catch_up(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """The base is merged into the branch, never the branch rebased; what then stands there is reviewed anew."""
    base = around.default
    key = key_of(mission.key, "push_branch", mission.head_sha, base.sha)
    push = PushBranch(
        key,
        mission.branch,
        base.sha,
        wording.catch_up_message(mission, base),
        around.now,
        (),
        onto=mission.head_sha,
        issue=mission.issue,
    )
    after = replace(offering.void_offer(mission), failure="", failures=0, waiting_since=around.now)
    after = add_to_story(after, around, f"merged {base.name} in, which it was behind of", "Review the pull once more.")
    return propose_step(Action.REVISE, mission, after, (push, story_comment(after, around)), "", None)


def _close_accepted(mission: Mission, around: StepContext, who: str) -> Mission:
    line = f"approved by {who} at `{mission.head_sha[:8]}` and merged"
    after = add_to_story(advance(mission, MissionEvent.MERGED, around.now), around, line, "Nothing is left to do.")
    return finish_mission(after, around, "merged", f"{who} accepted it")


def close_merged(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A person merged it, or we did in a run that ended before it could tell."""
    who = wording.person_name(reading.opinion.actor)
    if facts.pull and facts.pull.merged_by and facts.pull.merged_by.is_bot:
        after = _close_accepted(mission, around, who)  # by us, in a run that ended before it could tell
    else:
        after = add_to_story(
            advance(mission, MissionEvent.MERGED, around.now), around, f"merged by {who}", "Nothing is left to do."
        )
        after = finish_mission(after, around, "merged", f"{who} merged it")
    effects = (story_comment(after, around), *close_issue(mission, facts, "completed"))
    return propose_step(Action.FINISH, mission, after, effects, who, lesson(mission, "accepted"))


def refused_for_good(
    mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext
) -> MissionStep:
    """A person's no: everything of it is closed, and it is learned."""
    who = wording.person_name(reading.opinion.actor)
    reason = wording.plain(reading.words, 200)
    after = advance(mission, MissionEvent.REFUSED, around.now)
    after = add_to_story(
        after, around, f"{who} said no{f': {reason}' if reason else ''}", "Nothing. It will not come back."
    )
    after = finish_mission(after, around, "rejected", f"{who} said no" + (f": {reason}" if reason else ""))
    label = Label(key_of(mission.key, "label", "rejected"), mission.issue, add=("ralph:rejected",))
    said = close_pull(mission, facts.pull, f"{who} said no to #{mission.issue}{f': {reason}' if reason else ''}")
    effects = (*said, story_comment(after, around), label, *close_issue(mission, facts, "not_planned"))
    return propose_step(Action.FINISH, mission, after, effects, who, lesson(mission, "rejected", reason))


def close_gone(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """Nobody said no, so nothing is learned; what is left of it is cleared away."""
    after = add_to_story(advance(mission, MissionEvent.GONE, around.now), around, reading.words, "Nothing.")
    after = finish_mission(after, around, "rejected", reading.words)
    return propose_step(Action.FINISH, mission, after, close_pull(mission, facts.pull, reading.words), "", None)


def close_done(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A person did it by hand."""
    who = wording.person_name(reading.opinion.actor)
    after = add_to_story(
        advance(mission, MissionEvent.DONE, around.now), around, f"done by {who}", "Nothing is left to do."
    )
    after = finish_mission(after, around, "done by a person", f"{who} did it")
    said = close_pull(mission, facts.pull, f"the issue #{mission.issue} was completed by {who}")
    return propose_step(
        Action.FINISH, mission, after, (*said, story_comment(after, around)), who, lesson(mission, "accepted")
    )
