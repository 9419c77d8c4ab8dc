"""The one place that all effects pass on their way out.

Before each effect the kill switch and `paused` are asked again, its record is looked up so
that the same deed is never done twice, and the numbers it needs are filled in. An error
never decides that something did not happen: for an effect without a natural key, doubt is
`unknown`, and unknown is never sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ralph_mission.mission import belonging, rules, succession
from ralph_mission.mission.effects import (
    AT_MOST_ONCE,
    Comment,
    EditComment,
    Effect,
    Fate,
    MergePull,
    OpenIssue,
    Receipt,
    kind_of,
    resolve,
)
from ralph_mission.mission.ledger import (
    NOT_ATTEMPTED,
    EffectRecord,
    OpenState,
    Record,
    is_settled,
    may_redo,
    monitor_key,
    numbers,
    refers_to,
)
from ralph_mission.mission.ports import Ports
from ralph_mission.mission.proposal import Decision
from ralph_mission.trouble import Missing, Trouble


@dataclass(frozen=True, slots=True)
class Deed:
    """An effect and what came of it."""

    effect: Effect
    receipt: Receipt

    @property
    def stops(self) -> bool:
        """Whether nothing may follow it. A remark in doubt is told to a person, never sent again, and stops nothing."""
        if self.receipt.status == "unknown" and isinstance(self.effect, Comment):
            return False
        return self.receipt.status in ("failed", "unknown")


@dataclass(frozen=True, slots=True)
class Act:
    """An allowed decision and its deeds so far; `cut` when the kill switch stopped it half-way or kept it back."""

    decision: Decision
    deeds: tuple[Deed, ...]
    cut: bool = False

    @property
    def complete(self) -> bool:
        """Whether everything that was to be done is done (or, staged, would be), as far as it ever will be."""
        return not self.cut and not any(deed.stops for deed in self.deeds)


def act(ports: Ports, decisions: Sequence[Decision], records: Mapping[str, Record]) -> tuple[Act, ...]:
    """Carry out allowed decisions in order; a stop ends all that follow."""
    known = dict(records)
    acts: list[Act] = []
    for decision in decisions:
        if acts and acts[-1].cut:
            acts.append(Act(decision, (), cut=True))
            continue
        ports.voice.note(f"{decision.proposal.action}: {decision.proposal.title}")
        acts.append(_carry_out(ports, decision, known))
    return tuple(acts)


def not_attempted(acts: Iterable[Act]) -> tuple[Receipt, ...]:
    """What the kill switch kept from being sent: certainly not done, so it may be decided upon again."""
    return tuple(
        Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}stopped by the kill switch")
        for act in acts
        if act.cut
        for effect in act.decision.proposal.effects[len(act.deeds) :]
    )


def _carry_out(ports: Ports, decision: Decision, known: dict[str, Record]) -> Act:
    deeds: list[Deed] = []
    for effect in decision.proposal.effects:
        if stopped(ports):
            return Act(decision, tuple(deeds), cut=True)
        stopped_by = next((deed for deed in deeds if deed.stops), None)
        receipt = _not_attempted(effect, stopped_by) if stopped_by else send(ports, effect, known)
        deeds.append(Deed(effect, receipt))
    return Act(decision, tuple(deeds))


def send(ports: Ports, effect: Effect, known: dict[str, Record]) -> Receipt:
    """Do one effect unless it was done before; remember its receipt in `known`."""
    record = known.get(effect.key)
    if isinstance(record, EffectRecord) and is_settled(record) and record.receipt:
        return record.receipt
    try:
        ready = resolve(effect, numbers(known.values()))
    except KeyError:
        return Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}the issue it belongs to was not opened")
    receipt = _perform(ports, ready)
    if isinstance(record, EffectRecord):
        known[effect.key] = _with(record, receipt)
    return receipt


def _with(record: EffectRecord, receipt: Receipt) -> EffectRecord:
    return replace(record, state=receipt.status, receipt=receipt)


def _perform(ports: Ports, effect: Effect) -> Receipt:
    if isinstance(effect, MergePull) and not effect.approver:  # only memory could say so, and it grants nothing
        return Receipt(effect.key, "failed", detail="approval-author")
    try:
        return ports.forge.perform(effect)
    except Exception as error:  # whatever it is, the cycle must still write down what it knows
        said = error.what if isinstance(error, Trouble) else f"{type(error).__name__}: {error}"
        status: Fate = "unknown" if isinstance(effect, AT_MOST_ONCE) else "failed"
        return Receipt(effect.key, status, detail=said[:300])


def _not_attempted(effect: Effect, earlier: Deed) -> Receipt:
    why = earlier.receipt.detail.removeprefix(NOT_ATTEMPTED) or f"{earlier.receipt.status} before it"
    return Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}{why}")


def stopped(ports: Ports) -> bool:
    """Whether the kill switch is thrown or memory says paused, now."""
    return ports.switch() or ports.store.paused()


def reconcile(
    ports: Ports, state: OpenState, records: Mapping[str, Record], secrets: tuple[str, ...] = ()
) -> tuple[Deed, ...]:
    """What a dead runner intended and did not settle: adopted, not made, or unknown.

    What belongs to a mission is looked for and never done here: people may have changed their minds
    since, so whatever is missing is left to the mission's next step, which is judged anew. Only what
    nobody decides about (a monitoring issue) is made up for, where that is safe: its text is judged again, since
    memory may have been written by others in between. A stop leaves it open.
    """
    known = dict(records)
    found = [_found_late(ports, record, known) for record in doubtful(state.unknown, records)]
    deeds = (_taken_over(ports, record, known, secrets) for record in unsettled(state.effects, records))
    return tuple(deed for deed in (*found, *deeds) if deed)


def doubtful(keys: Iterable[str], records: Mapping[str, Record]) -> tuple[EffectRecord, ...]:
    """The records of effects of which nobody could tell whether they were sent."""
    found = (records.get(key) for key in keys)
    return tuple(record for record in found if isinstance(record, EffectRecord) and record.state == "unknown")


def _found_late(ports: Ports, record: EffectRecord, known: dict[str, Record]) -> Deed | None:
    """A list may show what was made only minutes later; what it never shows is left to a person."""
    effect = record.effect
    if effect is None:  # memory was recovered from a stranger's word that there was one
        return None
    try:
        receipt = ports.forge.find(resolve(effect, numbers(known.values())))
    except KeyError:
        return None
    if receipt is None:
        return None
    known[record.key] = _with(record, receipt)
    ports.voice.note(f"{kind_of(effect)} that was in doubt: {receipt.status}")
    return Deed(effect, receipt)


def unsettled(keys: Iterable[str], records: Mapping[str, Record]) -> tuple[EffectRecord, ...]:
    """The records of effects that were intended, in the order they were."""
    found = (records.get(key) for key in keys)
    return tuple(record for record in found if isinstance(record, EffectRecord) and record.state == "intended")


def _taken_over(ports: Ports, record: EffectRecord, known: dict[str, Record], secrets: tuple[str, ...]) -> Deed | None:
    effect = record.effect
    assert effect is not None
    receipt = _look_up(ports, record, effect, known, secrets)
    if receipt is None:
        return None
    known[record.key] = _with(record, receipt)
    said = "not done, so decided anew" if receipt.detail.startswith(NOT_ATTEMPTED) else receipt.status
    ports.voice.note(f"{kind_of(effect)} of an earlier run: {said}")
    return Deed(effect, receipt)


def _look_up(
    ports: Ports, record: EffectRecord, effect: Effect, known: dict[str, Record], secrets: tuple[str, ...]
) -> Receipt | None:
    if refers_to(effect) and refers_to(effect) not in numbers(known.values()):
        return Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}the issue it belongs to was not opened")
    ready = resolve(effect, numbers(known.values()))
    found = ports.forge.find(ready)
    if found is not None:
        return found
    if _was_to_follow_a_merge(record, known):
        return Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}the merge it tells of was not done")
    if not may_redo(effect, ports.forge.lists_at_once):
        return Receipt(effect.key, "unknown", detail="it was intended, and nobody can tell whether it was sent")
    if record.mission or not isinstance(effect, OpenIssue | EditComment):
        return Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}its run ended before")
    if rules.ill_worded(ready, secrets) or not _about_a_list(ports, record, ready, known):
        return Receipt(effect.key, "failed", detail=f"{NOT_ATTEMPTED}no rule would let it pass now")
    return None if stopped(ports) else _perform(ports, ready)


def _about_a_list(ports: Ports, record: EffectRecord, effect: Effect, known: Mapping[str, Record]) -> bool:
    """Whether it opens or rewrites the monitoring issue of its kind and nothing else, whatever memory says."""
    if isinstance(effect, OpenIssue):
        return effect.key == succession.upcoming(succession.of_list(record.kind), known)
    if not isinstance(effect, EditComment) or effect.comment:
        return False
    try:
        issue = ports.forge.issue(effect.issue)
    except Missing:
        return False
    return belonging.is_list(issue, monitor_key(record.kind), ports.forge.identity().id)


def _was_to_follow_a_merge(record: EffectRecord, known: Mapping[str, Record]) -> bool:
    """Whether the same action's merge certainly never happened: nothing that comes after it was sent either."""
    return any(
        isinstance(other, EffectRecord)
        and other.action_key == record.action_key
        and isinstance(other.effect, MergePull)
        and other.state == "failed"
        for other in known.values()
    )
