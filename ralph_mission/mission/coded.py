"""What becomes of what an agent made for a mission: a pull, a question, the answer to a review, or another try. Pure.

A change that no rule speaks against goes into a pull for review. One that is too large, or on a protected path, is
shown on the mission's issue, and the branch is pushed after a yes. What no yes could lift needs a person's own hands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ralph_mission.mission import announced, coding, coding_text, offering, withheld
from ralph_mission.mission.approval import about
from ralph_mission.mission.belonging import change_remark, facts_of
from ralph_mission.mission.coding import WAITS_FOR_AGENT
from ralph_mission.mission.commissions import CodingResult
from ralph_mission.mission.effects import Comment, Effect, OpenPull, PushBranch
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.lifecycle import MissionEvent, MissionFacts, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.overlap import touched_by
from ralph_mission.mission.proposal import Proposal
from ralph_mission.mission.step_parts import (
    MissionStep,
    StepContext,
    add_to_story,
    count_wait,
    propose_step,
    story_comment,
)
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import Patch, deltas, patch_ids


def follow(mission: Mission, facts: MissionFacts, made: CodingResult, around: StepContext) -> MissionStep:
    """What follows from the work of this cycle."""
    if made.outcome == "held":
        return MissionStep(replace(mission, next_step=f"An agent goes on with it when it may: {made.reason}."))
    begun = advance(mission, MissionEvent.STARTED, around.now) if mission.status is Status.PLANNED else mission
    begun = replace(begun, guided_at=made.guided_at or begun.guided_at)
    if made.outcome == "goes on":
        return _goes_on(begun, made, around)
    if made.outcome == "failed" or made.patch is None or not made.patch.changes:
        return _record_failure(mission, begun, made, around)
    return _send_change(mission, begun, facts, made, made.patch, around)


def _goes_on(begun: Mission, made: CodingResult, around: StepContext) -> MissionStep:
    stalled = 0 if made.progressed else begun.stalled_cycles + 1
    after = add_to_story(begun, around, f"{_effort(made)}, not finished ({made.reason})", WAITS_FOR_AGENT)
    after = replace(after, stalled_cycles=stalled, turns=begun.turns + 1)
    return propose_step(Action.ANSWER, after, after, (story_comment(after, around),), "", None)


def _record_failure(mission: Mission, begun: Mission, made: CodingResult, around: StepContext) -> MissionStep:
    """Three tries that came to nothing are one too many, whatever each of them said."""
    reason = made.reason if made.outcome == "failed" else "it was declared done, and no file was changed"
    after = add_to_story(begun, around, f"{_effort(made)}, came to nothing: {reason}", WAITS_FOR_AGENT)
    after = replace(after, failure=reason, failures=begun.failures + 1)
    return propose_step(Action.ANSWER, after, after, (story_comment(after, around),), "", None)


def _effort(made: CodingResult) -> str:
    spent = f", ${made.usage.cost_usd:.2f}" if made.usage.cost_usd else ""
    return f"an agent worked on it ({made.sessions} session{'s' * (made.sessions != 1)}{spent})"


def _send_change(
    mission: Mission, begun: Mission, facts: MissionFacts, made: CodingResult, patch: Patch, around: StepContext
) -> MissionStep:
    why = inspect(patch, max_lines=around.limits.auto_pr_lines, recent=around.recent)
    rules = tuple(dict.fromkeys(objection.rule for objection in why))
    if reason := withheld.why_not(patch, why):
        return _record_failure(mission, begun, replace(made, outcome="failed", reason=reason), around)
    if begun.status is Status.FIXING:
        return _answer(begun, facts, made, patch, rules, around)
    push, pull = change(begun, made, patch, around)
    if rules:
        return _offer_change(begun, facts, patch, (push, pull), rules, around)
    named = announced.announcement_line((push, pull), asked=False)
    remark = _remark(mission, (push, pull))
    said = Comment(remark, mission.issue, coding_text.announcement(patch, named, remark))
    interim = replace(begun, pending=(push.key, pull.key), failure="", failures=0, stalled_cycles=0, turns=0)
    interim = add_to_story(interim, around, f"{_effort(made)}; its change is in a pull", "Review the pull.")
    after = replace(advance(interim, MissionEvent.PULL_OPENED, around.now), pending=(), waiting_since=around.now)
    return _step(mission, interim, after, (said, push, pull), patch, wished=not facts.unasked)


def _step(
    mission: Mission, interim: Mission, after: Mission, effects: Sequence[Effect], patch: Patch, wished: bool
) -> MissionStep:
    key = key_of(mission.key, "carry-out", *(effect.key for effect in effects))
    proposal = Proposal(
        key, Action.OPEN_FIX, mission.kind, mission.title, tuple(effects), patch=patch, before=mission,
        interim=interim, after=after, wished=wished,
    )  # fmt: skip  # one value
    return MissionStep(count_wait(mission), proposal)


def change(mission: Mission, made: CodingResult, patch: Patch, around: StepContext) -> tuple[PushBranch, OpenPull]:
    """The branch and the pull of a change. Their keys are the change's: another one is another deed."""
    same = tuple(sorted(patch_ids(patch)))
    branch = mission.branch or coding.branch(mission)
    push = PushBranch(
        key_of(mission.key, "push_branch", patch.base, *same), branch, patch.base,
        coding_text.commit_text(mission, 0, patch), around.now, deltas(patch), issue=mission.issue,
    )  # fmt: skip  # one effect
    key = key_of(mission.key, "open_pull")
    facts = facts_of(mission) | {"issue": str(mission.issue)}
    body = coding_text.pull_text(mission, patch, made.words, made.learned, key, facts)
    return push, OpenPull(
        key, mission.title, body, branch, around.default.name, mission.issue, ("ralph:mission",), same,
        touched_by(patch),
    )  # fmt: skip  # one effect


def _remark(mission: Mission, effects: Sequence[PushBranch | OpenPull]) -> str:
    return change_remark(mission, [announced.change_digest(effect) for effect in effects])


def _offer_change(
    begun: Mission,
    facts: MissionFacts,
    patch: Patch,
    planned: tuple[PushBranch, OpenPull],
    rules: tuple[str, ...],
    around: StepContext,
) -> MissionStep:
    """The change is shown, and a yes to it asked for; an earlier yes was to the wish, not to this."""
    issue = facts.issue
    assert issue is not None
    bound = about(begun, issue.title, issue.body)
    after = replace(
        advance(bound, MissionEvent.OFFERED, around.now), pending=tuple(effect.key for effect in planned),
        waiting_since=around.now, failure="", failures=0,
        turns=0,
    )  # fmt: skip  # one value
    after = add_to_story(
        after, around, f"an agent made a change that needs a yes ({', '.join(rules)})", "Say yes or no to it."
    )
    effects = offering.offer_effects(begun, facts, patch, planned, rules, bound.proposal_hash)
    step = propose_step(Action.ANSWER, begun, after, (*effects, story_comment(after, around)), "", None)
    assert step.proposal is not None
    return replace(step, proposal=replace(step.proposal, planned=planned))


def _answer(
    begun: Mission, facts: MissionFacts, made: CodingResult, patch: Patch, rules: tuple[str, ...], around: StepContext
) -> MissionStep:
    """A push on top of what was reviewed, or a question first where a rule speaks against it."""
    same = sorted(patch_ids(patch))
    push = PushBranch(
        key_of(begun.key, "push_branch", begun.head_sha, *same), begun.branch, begun.base_sha,
        coding_text.commit_text(begun, begun.rounds + 1, patch), around.now, deltas(patch), onto=begun.head_sha,
        issue=begun.issue,
    )  # fmt: skip  # one effect
    if rules:
        return offering.offer_answer(begun, facts, made, push, rules, around)
    interim = replace(begun, rounds=begun.rounds + 1, answered_at=made.answered_at, pending=(push.key,))
    after = offering.mark_revised(interim, f"{_effort(made)} and answered the review", around)
    step = propose_step(Action.REVISE, begun, after, (push, story_comment(after, around)), "", None)
    assert step.proposal is not None
    return replace(step, proposal=replace(step.proposal, patch=patch, interim=interim))


def close_answered_review(mission: Mission, around: StepContext) -> MissionStep:
    """What follows when the push of an answer was found after a crash, or when the review was taken back."""
    after = offering.mark_revised(mission, "nothing is left of the review to answer", around)
    return propose_step(Action.ANSWER, mission, after, (story_comment(after, around),), "", None)


def retry_answer(mission: Mission) -> MissionStep:
    """What follows when it did not get through: what was made is still there, and is sent anew."""
    before = mission.answered_before
    return MissionStep(replace(count_wait(mission), pending=(), rounds=max(0, mission.rounds - 1), answered_at=before))
