"""The single place through which all effects leave.

Before each effect, the kill switch and `paused` are read again, its record is looked up so that it is never carried out
twice, and the numbers it needs are filled in. An error never proves that something did not happen: for an effect
without a natural key, doubt is `unknown`, and unknown is never sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.model.cycle import MissionFacts
from ralph_mission.mission.model.effects import (
    Comment,
    Effect,
    Fate,
    MergePull,
    PostReview,
    Publish,
    Receipt,
    at_most_once,
    kind_of,
    resolve,
    skip_effect,
)
from ralph_mission.mission.model.ledger import (
    EffectRecord,
    OpenState,
    Record,
    may_be_done,
    may_redo,
    numbers,
    refers_to,
)
from ralph_mission.mission.model.mission import FailureReason, Mission
from ralph_mission.mission.model.proposal import Decision, Proposal
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.mission.publishing import posting
from ralph_mission.safety.text import truncate
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class AppliedEffect:
    """An effect and its receipt."""

    effect: Effect
    receipt: Receipt

    @property
    def stops(self) -> bool:
        """Whether nothing may follow it. A comment in doubt is reported, never sent again, and stops nothing; nor does
        one failing network stop another."""
        if isinstance(self.effect, Publish):
            return False
        if self.receipt.status == "unknown" and isinstance(self.effect, Comment | PostReview):
            return False
        return self.receipt.status in ("failed", "unknown")


@dataclass(frozen=True, slots=True)
class ExecutedDecision:
    """An allowed decision and its effects so far; `cut` if the kill switch stopped it before the end."""

    decision: Decision
    applied: tuple[AppliedEffect, ...]
    cut: bool = False

    @property
    def complete(self) -> bool:
        """Whether all of it is done (or, when staged, would be), as far as it ever will be."""
        return not self.cut and not any(item.stops for item in self.applied)


ApprovalCheck = Callable[[Mission], MissionFacts]
"""What the forge says about a mission right now, plus what owners wrote about it in a chat. Raises UserError."""


def execute_decisions(
    ports: CyclePorts, decisions: Sequence[Decision], records: Mapping[str, Record], recheck: ApprovalCheck
) -> tuple[ExecutedDecision, ...]:
    """Carry out allowed decisions in order; a stop ends all that follow. `recheck` reads approvals again."""
    known = dict(records)
    acts: list[ExecutedDecision] = []
    for decision in decisions:
        if acts and acts[-1].cut:
            acts.append(ExecutedDecision(decision, (), cut=True))
            continue
        ports.progress.note(f"{decision.proposal.action}: {decision.proposal.title}")
        acts.append(_carry_out(ports, decision, known, recheck))
    return tuple(acts)


def stage_decisions(ports: CyclePorts, decisions: Iterable[Decision]) -> tuple[ExecutedDecision, ...]:
    """What would be done, with receipts that say nothing was. Posts are written where a person can read them."""
    return tuple(
        ExecutedDecision(
            decision, tuple(AppliedEffect(effect, _stage(ports, effect)) for effect in decision.proposal.effects)
        )
        for decision in decisions
    )


def _stage(ports: CyclePorts, effect: Effect) -> Receipt:
    return ports.publisher.stage(effect) if isinstance(effect, Publish) else Receipt(effect.key, "staged")


def not_attempted(acts: Iterable[ExecutedDecision]) -> tuple[Receipt, ...]:
    """Effects that the kill switch held back: certainly not done, so they may be decided again."""
    return tuple(
        skip_effect(effect.key, "stopped by the kill switch")
        for act in acts
        if act.cut
        for effect in act.decision.proposal.effects[len(act.applied) :]
    )


def _carry_out(
    ports: CyclePorts, decision: Decision, known: dict[str, Record], recheck: ApprovalCheck
) -> ExecutedDecision:
    applied: list[AppliedEffect] = []
    for effect in decision.proposal.effects:
        if is_stopped(ports):
            return ExecutedDecision(decision, tuple(applied), cut=True)
        stopped_by = next((item for item in applied if item.stops), None)
        if why := _unapproved_post(ports, recheck, decision.proposal, effect, known.get(effect.key)):
            receipt = skip_effect(effect.key, why)
        else:
            receipt = _not_attempted(effect, stopped_by) if stopped_by else send(ports, effect, known)
        applied.append(AppliedEffect(effect, receipt))
    return ExecutedDecision(decision, tuple(applied))


def _unapproved_post(
    ports: CyclePorts, recheck: ApprovalCheck, proposal: Proposal, effect: Effect, record: Record | None
) -> str:
    """Why an approved post must not be sent after all, or "" (a merge is checked again by the forge).

    What was read of its issue may be minutes old, so the approval is read again: it may have been withdrawn, or the
    text edited.
    """
    mission = proposal.before
    if not isinstance(effect, Publish) or mission is None or may_be_done(record):
        return ""
    try:
        ports.forge.forget_lists()
        facts = recheck(mission)
    except UserError as problem:
        return f"its issue cannot be read: {problem.what}"
    if facts.issue is None or facts.issue.state != "open" or not approval.stands(facts.issue, mission):
        return "its issue was changed meanwhile"
    return "" if posting.said_yes(mission, facts) else "its approval was withdrawn"


def send(ports: CyclePorts, effect: Effect, known: dict[str, Record]) -> Receipt:
    """Carry out one effect unless it was done before, and add its receipt to `known`."""
    record = known.get(effect.key)
    if isinstance(record, EffectRecord) and may_be_done(record) and record.receipt:
        return record.receipt
    try:
        ready = resolve(effect, numbers(known.values()))
    except KeyError:
        return skip_effect(effect.key, "the issue it belongs to was not opened")
    receipt = perform_effect(ports, ready)
    if isinstance(record, EffectRecord):
        known[effect.key] = _with(record, receipt)
    return receipt


def _with(record: EffectRecord, receipt: Receipt) -> EffectRecord:
    return replace(record, state=receipt.status, receipt=receipt)


def perform_effect(ports: CyclePorts, effect: Effect) -> Receipt:
    """Have the forge or a network carry out one effect. Fails if memory alone names its approver."""
    if isinstance(effect, MergePull) and not effect.approver:  # only memory says so, and memory grants nothing
        return Receipt(effect.key, "failed", detail="approval-author")
    try:
        if not isinstance(effect, Publish):
            return ports.forge.perform(effect)
        receipt = ports.publisher.publish(effect)
        return replace(receipt, at=ports.clock.now())  # not the cycle's time: it may have begun on another day
    except Exception as error:  # whatever it is, the cycle must still record what it knows
        problem = error.what if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        status: Fate = "unknown" if at_most_once(effect) else "failed"
        at = ports.clock.now() if isinstance(effect, Publish) else None
        return Receipt(effect.key, status, detail=truncate(problem, 300), at=at)


def _find(ports: CyclePorts, effect: Effect) -> Receipt | None:
    """The effect's receipt if it is already there. Networks cannot be asked."""
    return ports.publisher.find(effect) if isinstance(effect, Publish) else ports.forge.find(effect)


def _not_attempted(effect: Effect, earlier: AppliedEffect) -> Receipt:
    why = earlier.receipt.detail or f"{earlier.receipt.status} before it"
    return skip_effect(effect.key, why)


def is_stopped(ports: CyclePorts) -> bool:
    """Whether the kill switch is on, or memory says paused, right now."""
    return ports.switch() or ports.store.paused()


def reconcile(ports: CyclePorts, state: OpenState, records: Mapping[str, Record]) -> tuple[AppliedEffect, ...]:
    """Settle what a dead runner intended: adopted, not made, or unknown.

    Effects of a mission are looked for but never carried out here. People may have changed their minds since, so
    whatever is missing is left to the mission's next step, which is judged again.
    """
    known = dict(records)
    found = [_found_late(ports, record, known) for record in _in_state("unknown", state.unknown, records)]
    applied = (_taken_over(ports, record, known) for record in _in_state("intended", state.effects, records))
    return tuple(item for item in (*found, *applied) if item)


def _in_state(state: str, keys: Iterable[str], records: Mapping[str, Record]) -> tuple[EffectRecord, ...]:
    """The records of effects in a state, in their order."""
    found = (records.get(key) for key in keys)
    return tuple(record for record in found if isinstance(record, EffectRecord) and record.state == state)


def _found_late(ports: CyclePorts, record: EffectRecord, known: dict[str, Record]) -> AppliedEffect | None:
    """Lists can be minutes late. What never shows up is left to a person."""
    effect = record.effect
    if effect is None:  # recovered memory had only a stranger's word for it
        return None
    try:
        receipt = _find(ports, resolve(effect, numbers(known.values())))
    except KeyError:
        return None
    if receipt is None:
        return None
    known[record.key] = _with(record, receipt)
    ports.progress.note(f"{kind_of(effect)} that was in doubt: {receipt.status}")
    return AppliedEffect(effect, receipt)


def _taken_over(ports: CyclePorts, record: EffectRecord, known: dict[str, Record]) -> AppliedEffect | None:
    effect = record.effect
    assert effect is not None
    receipt = look_up_effect(ports, record, effect, known)
    if receipt is None:
        return None
    known[record.key] = _with(record, receipt)
    outcome = "not done, so decided again" if receipt.not_attempted else receipt.status
    ports.progress.note(f"{kind_of(effect)} of an earlier run: {outcome}")
    return AppliedEffect(effect, receipt)


def look_up_effect(ports: CyclePorts, record: EffectRecord, effect: Effect, known: dict[str, Record]) -> Receipt | None:
    """Ask the forge or network whether an effect was carried out; None if it cannot tell."""
    if refers_to(effect) and refers_to(effect) not in numbers(known.values()):
        return skip_effect(effect.key, "the issue it belongs to was not opened")
    ready = resolve(effect, numbers(known.values()))
    found = _find(ports, ready)
    if found is not None:
        return found
    if _was_to_follow_a_merge(record, known):
        return skip_effect(effect.key, "the merge it reports was not done")
    if not may_redo(effect, ports.forge.lists_at_once):
        return Receipt(effect.key, "unknown", detail="it was recorded, and it is unknown whether it was sent")
    reason = FailureReason.QUEUED if isinstance(effect, MergePull) else FailureReason.NOT_ATTEMPTED
    return skip_effect(effect.key, "its run ended before", reason)


def _was_to_follow_a_merge(record: EffectRecord, known: Mapping[str, Record]) -> bool:
    """Whether the same action's merge certainly did not happen; then nothing after it was sent either."""
    return any(
        isinstance(other, EffectRecord)
        and other.action_key == record.action_key
        and isinstance(other.effect, MergePull)
        and other.state == "failed"
        for other in known.values()
    )
