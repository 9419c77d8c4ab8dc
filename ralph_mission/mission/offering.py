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
from ralph_mission.mission.commissions import Made
from ralph_mission.mission.effects import Comment, Effect, Label, PushBranch
from ralph_mission.mission.ledger import EffectRecord, key_of
from ralph_mission.mission.lifecycle import Event, Facts, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.step_parts import Circumstances, Step, proposed, story, told
from ralph_mission.safety.patch import Patch


def shown(
    mission: Mission, facts: Facts, patch: Patch, planned: Sequence[Change], rules: Sequence[str], digest: str = ""
) -> tuple[Effect, ...]:
    """The remark that shows a change. A label that stands there was a yes to something else, and comes off.

    `digest` is that of the issue's text, where a yes is to that too; without one the change answers a review.
    """
    assert facts.issue is not None
    key, named = change_remark(mission, map(announced.digest, planned)), announced.line(planned, asked=True)
    answers = 0 if digest else mission.pull
    said = Comment(key, mission.issue, coding_text.offer(patch, rules, named, digest, key, answers))
    if APPROVED not in facts.issue.labels:
        return (said,)
    return Label(key_of(mission.key, "label", f"offered {key}"), mission.issue, remove=(APPROVED,)), said


def answer(
    begun: Mission, facts: Facts, made: Made, push: PushBranch, rules: Sequence[str], around: Circumstances
) -> Step:
    """The answer to a review is shown, and a yes to it asked for. It counts as a round, or there was no end to them."""
    assert made.patch is not None
    after = replace(
        advance(begun, Event.OFFERED, around.now), pending=(push.key,), rounds=begun.rounds + 1,
        offered_until=made.answered_at or coding.answered_until(facts), waiting_since=around.now, failure="",
        failures=0, turns=0,
    )  # fmt: skip  # one value
    line = f"an agent answered the review with a change that needs a yes ({', '.join(rules)})"
    after = told(after, around, line, "Say yes or no to the change that the issue shows.")
    effects = shown(begun, facts, made.patch, (push,), rules)
    step = proposed(Action.ANSWER, begun, after, (*effects, story(after, around)), "", None)
    assert step.proposal is not None
    return replace(step, proposal=replace(step.proposal, planned=(push,)))


def released(mission: Mission, facts: Facts, around: Circumstances, who: str) -> Step:
    """The push of an answer that `who` said yes to: of exactly what was shown, on top of what was reviewed."""
    strange = not _shown(mission, facts, around)
    interim = replace(mission, answered_at=mission.offered_until or mission.answered_at, offered_until=None)
    interim = advance(interim, Event.APPROVED, around.now) if interim.status is not Status.FIXING else interim
    after = revised(interim, f"approved by {who}; the answer to the review is pushed", around)
    effects = (*_kept(mission, around), story(after, around))
    step = proposed(Action.REVISE, mission, after, effects, "" if strange else who, None)
    assert step.proposal is not None
    proposal = replace(step.proposal, interim=interim, approved=not strange)
    return replace(step, proposal=replace(proposal, objections=("approval-content",) if strange else ()))


def resumed(mission: Mission, facts: Facts, around: Circumstances) -> Step | None:
    """The same push again, where it did not get through and the yes still stands; None where none does."""
    issue, pull = facts.issue, facts.pull
    if issue is None or pull is None or pull.head_sha != mission.head_sha:
        return None
    if not _shown(mission, facts, around) or approval.on_pull(pull, mission, facts.authorised).state == "changes":
        return None
    said = approval.on_offer(issue, mission, facts.authorised, facts.offered_at)
    return released(mission, facts, around, wording.person(said.actor)) if said.state == "approved" else None


def void(mission: Mission) -> Mission:
    """The mission without an answer on offer: a yes to it does nothing any more, and the review is still to answer."""
    return replace(mission, pending=(), offered_until=None) if mission.offered_until else mission


def revised(mission: Mission, line: str, around: Circumstances) -> Mission:
    """The mission once a review is answered."""
    after = replace(
        advance(mission, Event.REVISED, around.now), pending=(), waiting_since=around.now, failure="", failures=0,
        turns=0,
    )  # fmt: skip  # one value
    return told(after, around, f"{line} (round {after.rounds} of {coding.ROUNDS})", "Review the pull once more.")


def _shown(mission: Mission, facts: Facts, around: Circumstances) -> bool:
    """Whether what is kept of it is what was shown, on top of what stands there."""
    pushes = _kept(mission, around)
    return bool(pushes) and all(announced.digest(p) in facts.offered and p.onto == mission.head_sha for p in pushes)


def _kept(mission: Mission, around: Circumstances) -> tuple[PushBranch, ...]:
    """What memory keeps of it: pushes to the mission's own branch, and nothing else that may stand there."""
    records = [around.records.get(key) for key in mission.pending]
    own = [record for record in records if isinstance(record, EffectRecord) and record.mission == mission.id]
    effects = [record.effect for record in own]
    return tuple(e for e in effects if isinstance(e, PushBranch) and e.branch == mission.branch)
