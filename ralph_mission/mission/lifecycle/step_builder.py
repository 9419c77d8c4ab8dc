"""Builds a mission's next step: its new state, the effects, the lesson."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.table import advance
from ralph_mission.mission.model.cycle import (
    Interpretation,
    Lesson,
    MissionEvent,
    MissionFacts,
    MissionStep,
    StepContext,
)
from ralph_mission.mission.model.effects import CloseIssue, ClosePull, Comment, EditComment, Effect
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.mission import Action, Mission, Status, update_mission
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals import wording
from ralph_mission.values import dataclass

TICK = timedelta(milliseconds=1)  # the resolution of a forge's timestamps


def count_wait(mission: Mission) -> Mission:
    """Count one more cycle without progress, if progress is up to us."""
    working = mission.status in (Status.PLANNED, Status.EXECUTING, Status.FIXING)
    return update_mission(mission, stalled_cycles=mission.progress.stalled_cycles + 1) if working else mission


def wait_step(mission: Mission) -> MissionStep:
    """Nothing is sent."""
    return MissionStep(count_wait(mission))


@dataclass(frozen=True, slots=True)
class StepBuilder:
    """`before`: the current mission. `after`: once all `effects` are done. Each method returns an extended builder."""

    before: Mission
    context: StepContext
    after: Mission
    effects: tuple[Effect, ...] = ()
    lesson: Lesson | None = None

    def advance(self, event: MissionEvent) -> StepBuilder:
        """Apply an event of the table. Raises ValueError if the table has no such transition."""
        return replace(self, after=advance(self.after, event, self.context.now))

    def change(self, **fields: Any) -> StepBuilder:
        """Change fields of the mission."""
        return replace(self, after=update_mission(self.after, **fields))

    def clear_failures(self) -> StepBuilder:
        """Forget earlier failures."""
        return self.change(failure="", failure_reason=None, failures=0)

    def tell(self, line: str, next_step: str) -> StepBuilder:
        """Add a line to its story, and what comes next."""
        return replace(self, after=add_to_story(self.after, self.context, line, next_step))

    def finish(self, outcome: str, learning: str) -> StepBuilder:
        """End the mission."""
        return self.change(outcome=outcome, learning=learning, finished_at=self.context.now)

    def send(self, *effects: Effect) -> StepBuilder:
        """Add effects, in this order."""
        return replace(self, effects=(*self.effects, *effects))

    def send_story(self, extra: str = "") -> StepBuilder:
        """Send our standing comment with the story so far, and `extra` below it."""
        return self.send(story_comment(self.after, self.context, extra))

    def close_issue(self, issue: Issue | None, reason: str) -> StepBuilder:
        """Close the mission's issue if it is open."""
        if issue is None or issue.state != "open" or not self.before.issue:
            return self
        return self.send(CloseIssue(key_of(self.before.key, "close_issue"), self.before.issue, reason))

    def tell_merged(self, issue: Issue | None) -> StepBuilder:
        """Tell the issue about the merge. A mission without an issue needs nothing: the merge says it."""
        return self.send_story().close_issue(issue, "completed") if self.before.issue else self

    def close_pull(self, pull: Pull | None, why: str) -> StepBuilder:
        """Close the open pull request of a mission that ended, with a comment why (without an issue, the story says
        it). Our branch is deleted with it."""
        if pull is None or pull.state == "merged":
            return self
        step = self.drop_branch(pull)
        if pull.state == "closed" or not self.before.issue:
            return step
        key = key_of(self.before.key, "comment", "close_pull")
        return step.send(Comment(key, pull.number, wording.nobody_merges(why, key)))

    def drop_branch(self, pull: Pull) -> StepBuilder:
        """Close an open pull request, and delete its branch unless it has somebody else's commits."""
        head = self.before.head_sha if pull.head_sha == self.before.head_sha else ""
        if pull.state != "open" and not head:
            return self
        return self.send(ClosePull(key_of(self.before.key, "close_pull"), pull.number, head))

    def teach(self, verdict: str, reason: str = "") -> StepBuilder:
        """Learn from a person's verdict on the mission."""
        return replace(self, lesson=lesson(self.before, verdict, reason))

    def propose(self, action: Action, approver: str = "", **fields: Any) -> MissionStep:
        """The finished step; `fields` override those of its proposal."""
        key = key_of(self.before.key, action, *(effect.key for effect in self.effects))
        usual = Proposal(
            key,
            action,
            self.before.kind,
            self.before.title,
            self.effects,
            before=self.before,
            interim=self.before,
            after=self.after,
            approver=approver,
        )
        return MissionStep(count_wait(self.before), replace(usual, **fields), self.lesson)


def build_step(mission: Mission, context: StepContext) -> StepBuilder:
    """An empty builder for this mission's next step."""
    return StepBuilder(mission, context, mission)


def add_to_story(mission: Mission, context: StepContext, line: str, next_step: str) -> Mission:
    """Add a line to the mission's story."""
    story = (*mission.story, f"cycle {context.cycle}: {line}")
    return replace(mission, story=story, last_action=line, next_step=next_step)


def story_comment(after: Mission, context: StepContext, extra: str = "") -> Comment | EditComment:
    """The effect for our one standing comment: created once, then edited. Each text is an effect of its own.

    A deleted comment gets a successor.
    """
    line = ownership.of_remark(after.key)
    if not after.comment:
        fresh = ownership.next_key(line, context.records)
        return Comment(fresh, after.thread, wording.story(after, fresh, extra))
    body = wording.story(after, ownership.last_key(line, context.records), extra)
    return EditComment(key_of(after.key, "edit_comment", body), after.thread, after.comment, body)


def tell_once(mission: Mission, context: StepContext, line: str, next_step: str) -> MissionStep:
    """Add a line to the story, unless it is there already; the mission keeps waiting for a person."""
    stays = replace(mission, next_step=next_step)
    if any(earlier.endswith(line) for earlier in mission.story):
        return MissionStep(stays)
    step = build_step(mission, context).tell(line, next_step).send_story().propose(Action.ANSWER)
    return replace(step, mission=stays)


def lesson(mission: Mission, verdict: str, reason: str = "") -> Lesson:
    """The lesson from a person's verdict on this mission."""
    return Lesson(mission.id, mission.kind, mission.members, verdict, reason)


def deny_step(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """A denied decision, so that whoever approved can see which rule was in the way."""
    action, rules = Action.FINISH if facts.pull else Action.OPEN_FIX, reading.verdict.rules
    who, key = wording.person_name(reading.verdict.actor), key_of(mission.key, "refused", *rules)
    return build_step(mission, context).propose(action, who, key=key, objections=rules)
