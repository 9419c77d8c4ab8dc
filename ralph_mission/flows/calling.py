"""Waking the review: each head that we proposed is called for once, within the wakes of a day.

What the workflow's own token opens starts no other workflow, so the one that reviews is asked for by a dispatch. The
call stands in memory before it is sent; whoever died between the two loses one call, and any push makes another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ralph_mission.flows.strokes import BRIEF, Busy, Open, Sleep, Stroke, land, stroke
from ralph_mission.mission import acting, callings
from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.ledger import Batch, CallRecord, Record
from ralph_mission.mission.memory import Header
from ralph_mission.mission.model import Pull
from ralph_mission.trouble import Lost

Call = Callable[[int], Receipt]
"""Asks for the review of a pull by its number; `failed` names why. Never raises Trouble."""


@dataclass(frozen=True, slots=True)
class Called:
    """The pulls that the review was woken for, and why not for the others. `refusal`: what GitHub refused, and why."""

    pulls: tuple[int, ...] = ()
    reason: str = ""
    refusal: str = ""


def call(opened: Open, sleep: Sleep, send: Call) -> Called:
    """Wake the review of every pull of ours whose head nobody was called for. Raises Trouble."""
    try:
        return stroke(opened, sleep, partial(_call, send), BRIEF)
    except Busy as busy:
        return Called(reason=f"{busy.what}; the next cycle wakes it")


def _call(send: Call, this: Stroke) -> Called:
    if this.past is None or acting.stopped(this.ports):
        return Called(reason="paused" if this.past else "nothing was proposed yet")
    forge = this.ports.forge
    pulls = callings.ours(forge.pulls(), forge.identity().id)
    known = this.house.store.records([callings.call_key(pull) for pull in pulls], this.past)
    waiting = callings.uncalled(pulls, known)
    header, granted = _granted(this, waiting)
    left = f"today's wakes are used up, {len(waiting) - len(granted)} wait" if len(granted) < len(waiting) else ""
    if not granted:
        return Called(reason=left or "no pull waits for its review to be woken")
    records = [callings.called(pull, known, this.now) for pull in granted]
    this = _written(this, header, records, f"ralph: wakes the review of {len(records)}")
    return _sent(this, records, send, left)


def _granted(this: Stroke, waiting: Sequence[Pull]) -> tuple[Header, list[Pull]]:
    """The pulls that today has a wake for, and the header that counts them."""
    header, granted = this.memory.header, list[Pull]()
    for pull in waiting:
        more = callings.counted(header, this.now, this.house.charter.limits.dispatches_per_day)
        if more is None:
            break
        header = more
        granted.append(pull)
    return header, granted


def _sent(this: Stroke, records: Sequence[CallRecord], send: Call, left: str) -> Called:
    receipts = {record.key: send(record.pull) for record in records}
    failed = [key for key, receipt in receipts.items() if receipt.status == "failed"]
    if failed:
        _note(this, callings.refused(records, failed))
    woken = tuple(record.pull for record in records if record.key not in failed)
    return Called(woken, left, receipts[failed[0]].detail if failed else "")


def _note(this: Stroke, records: Sequence[CallRecord]) -> None:
    try:
        _written(this, this.memory.header, records, f"ralph: {len(records)} reviews could not be woken")
    except Lost:
        return  # somebody wrote memory meanwhile: then these calls count as made, and a push makes others


def _written(this: Stroke, header: Header, records: Sequence[Record], subject: str) -> Stroke:
    return land(this, Batch(replace(this.memory, header=header), this.state, tuple(records), subject))
