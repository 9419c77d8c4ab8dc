"""What must hold in every state and at every step, whatever happened before. Each law tells what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ralph_mission.mission.model.effects import Effect, at_most_once, resolve
from ralph_mission.mission.model.ledger import EffectRecord, may_be_done, numbers, refers_to
from tests.protocol.world import Sent, State, Step, World

MOST_BEGUN, MOST_OPEN = 3, 4  # the fifth thread of a week is kept for what is grave


def wrong_in(world: World, state: State) -> Iterator[str]:
    """What is wrong with a state."""
    yield from _twice(world, state)
    yield from _too_many(world, state)
    yield from _forgotten(world, state)
    if not (state.crashes or state.doubts) and world.open_state(state).unknown:
        yield "something is in doubt, though nothing went wrong"


def _twice(world: World, state: State) -> Iterator[str]:
    for key, times in Counter(world.server(state).keys).items():
        if times > 1:
            yield f"there {times} times: {key}"


def _too_many(world: World, state: State) -> Iterator[str]:
    begun = sum(mission.status.begun for mission in world.open_state(state).missions)
    if begun > MOST_BEGUN:
        yield f"work on {begun} missions is under way"
    ours = [i for i in world.server(state).issues if "ralph:mission" in i.labels and i.state == "open"]
    if len(ours) > MOST_OPEN:
        yield f"{len(ours)} missions are open on the server"


def _forgotten(world: World, state: State) -> Iterator[str]:
    records = world.history.commits[state.head].records.values() if state.head else ()
    intended = (record.key for record in records if isinstance(record, EffectRecord) and record.state == "intended")
    for key in intended:
        if key not in world.open_state(state).effects:
            yield f"intended, and on nobody's list: {key}"


def wrong_at(world: World, before: State, step: Step) -> Iterator[str]:
    """What is wrong with a step from one state to the next."""
    if step.sent is not None:
        yield from _unlawful(world, before, step.sent)
    if step.committed:
        yield from _not_forward(world, before, step.after)


def _unlawful(world: World, state: State, sent: Sent) -> Iterator[str]:
    effect: Effect = sent.ask.arguments[0]
    records = world.history.commits[state.head].records if state.head else {}
    record, opened = records.get(effect.key), world.open_state(state)
    if not isinstance(record, EffectRecord) or effect.key not in opened.effects or not _same(record, effect, records):
        yield f"sent without an intent: {sent.ask}"
    if may_be_done(record):
        yield f"sent though it is settled: {sent.ask}"
    alone = world.config.setting.lists_at_once  # one clone, whose lock lets one cycle in
    if at_most_once(effect) and not alone and (opened.claim is None or opened.claim.holder != sent.holder):
        yield f"sent by somebody who has no claim: {sent.ask}"
    if state.grace is not None and state.grace[sent.runner] <= 0:
        yield f"sent after a stop: {sent.ask}"


def _same(record: EffectRecord, effect: Effect, records: dict) -> bool:
    """Whether it is what was intended; a number that memory does not have yet is taken from what is sent."""
    if record.effect is None:
        return False
    known = numbers(records.values())
    if needed := refers_to(record.effect):
        known = {needed: getattr(effect, "issue", 0), **known}
    return resolve(record.effect, known) == effect


def _not_forward(world: World, before: State, after: State) -> Iterator[str]:
    made = world.history.commits[after.head]
    if made.parent != before.head:
        yield "memory moved from another commit than the one it was at"
    was = world.history.commits[before.head].memory.header.serial if before.head else 0
    if made.memory.header.serial != was + 1:
        yield f"memory went from serial {was} to {made.memory.header.serial}"
