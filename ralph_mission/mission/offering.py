"""A change of an agent's that is shown, and pushed after a yes and not before. Pure.

The remark on the mission's issue names the change by its digest, and a yes is to that digest. The answer to a review
is on offer while its pull is in review (`Mission.offered_until`): a newer review or another head makes it void.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ralph_mission.mission import announced, approval, coding, coding_text, wording
from ralph_mission.mission.announced import Change
from ralph_mission.mission.approval import APPROVED
from ralph_mission.mission.belonging import change_remark
from ralph_mission.mission.commissions import CodingResult
from ralph_mission.mission.effects import Comment, Effect, Label, PushBranch
from ralph_mission.mission.ledger import EffectRecord, key_of
from ralph_mission.mission.lifecycle import MissionEvent, MissionFacts, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.step_parts import MissionStep, StepContext, add_to_story, propose_step, story_comment
from ralph_mission.safety.patch import Patch


def offer_effects(
    mission: Mission,
    facts: MissionFacts,
    patch: Patch,
    planned: Sequence[Change],
    rules: Sequence[str],
    digest: str = "",
) -> tuple[Effect, ...]:
    """The remark that shows a change. A label that stands there was a yes to something else, and comes off.

    `digest` is that of the issue's text, where a yes is to that too; without one the change answers a review.
    """
    assert facts.issue is not None
    key, named = (
        change_remark(mission, map(announced.change_digest, planned)),
        announced.announcement_line(planned, asked=True),
    )
    answers = 0 if digest else mission.pull
    said = Comment(key, mission.issue, coding_text.offer(patch, rules, named, digest, key, answers))
    if APPROVED not in facts.issue.labels:
        return (said,)
    return Label(key_of(mission.key, "label", f"offered {key}"), mission.issue, remove=(APPROVED,)), said


def offer_answer(
    begun: Mission, facts: MissionFacts, made: CodingResult, push: PushBranch, rules: Sequence[str], around: StepContext
) -> MissionStep:
    """The answer to a review is shown, and a yes to it asked for. It counts as a round, or there was no end to them."""
    assert made.patch is not None
    after = replace(
        advance(begun, MissionEvent.OFFERED, around.now), pending=(push.key,), rounds=begun.rounds + 1,
        offered_until=made.answered_at or coding.answered_until(facts), waiting_since=around.now, failure="",
        failures=0, turns=0,
    )  # fmt: skip  # one value
    line = f"an agent answered the review with a change that needs a yes ({', '.join(rules)})"
    after = add_to_story(after, around, line, "Say yes or no to the change that the issue shows.")
    effects = offer_effects(begun, facts, made.patch, (push,), rules)
    step = propose_step(Action.ANSWER, begun, after, (*effects, story_comment(after, around)), "", None)
    assert step.proposal is not None
    return replace(step, proposal=replace(step.proposal, planned=(push,)))


def push_offer(mission: Mission, facts: MissionFacts, around: StepContext, who: str) -> MissionStep:
    """The push of an answer that `who` said yes to: of exactly what was shown, on top of what was reviewed."""
    strange = not _matches_offer(mission, facts, around)
    interim = replace(mission, answered_at=mission.offered_until or mission.answered_at, offered_until=None)
    interim = advance(interim, MissionEvent.APPROVED, around.now) if interim.status is not Status.FIXING else interim
    after = mark_revised(interim, f"approved by {who}; the answer to the review is pushed", around)
    effects = (*_kept_pushes(mission, around), story_comment(after, around))
    step = propose_step(Action.REVISE, mission, after, effects, "" if strange else who, None)
    assert step.proposal is not None
    proposal = replace(step.proposal, interim=interim, approved=not strange)
    return replace(step, proposal=replace(proposal, objections=("approval-content",) if strange else ()))


def resume_offer(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep | None:
    """The same push again, where it did not get through and the yes still stands; None where none does."""
    issue, pull = facts.issue, facts.pull
    if issue is None or pull is None or pull.head_sha != mission.head_sha:
        return None
    if (
        not _matches_offer(mission, facts, around)
        or approval.on_pull(pull, mission, facts.authorised).state == "changes"
    ):
        return None
    said = approval.on_offer(issue, mission, facts.authorised, facts.offered_at)
    return push_offer(mission, facts, around, wording.person_name(said.actor)) if said.state == "approved" else None


def void_offer(mission: Mission) -> Mission:
    """The mission without an answer on offer: a yes to it does nothing any more, and the review is still to answer."""
    return replace(mission, pending=(), offered_until=None) if mission.offered_until else mission


def mark_revised(mission: Mission, line: str, around: StepContext) -> Mission:
    """The mission once a review is answered."""
    after = replace(
        advance(mission, MissionEvent.REVISED, around.now),
        pending=(),
        waiting_since=around.now,
        failure="",
        failures=0,
        turns=0,
    )
    return add_to_story(
        after, around, f"{line} (round {after.rounds} of {coding.ROUNDS})", "Review the pull once more."
    )


def _matches_offer(mission: Mission, facts: MissionFacts, around: StepContext) -> bool:
    """Whether what is kept of it is what was shown, on top of what stands there."""
    pushes = _kept_pushes(mission, around)
    return bool(pushes) and all(
        announced.change_digest(p) in facts.offered and p.onto == mission.head_sha for p in pushes
    )


def _kept_pushes(mission: Mission, around: StepContext) -> tuple[PushBranch, ...]:
    """What memory keeps of it: pushes to the mission's own branch, and nothing else that may stand there."""
    records = [around.records.get(key) for key in mission.pending]
    own = [record for record in records if isinstance(record, EffectRecord) and record.mission == mission.id]
    effects = [record.effect for record in own]
    return tuple(e for e in effects if isinstance(e, PushBranch) and e.branch == mission.branch)
