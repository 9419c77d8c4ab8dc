"""Waking the review: each head that we proposed is called for once, within the wakes of a day.

What the workflow's own token opens starts no other workflow, so the one that reviews is asked for by a dispatch. The
call stands in memory before it is sent; whoever died between the two loses one call, and any push makes another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ralph_mission.errors import Lost
from ralph_mission.mission import execute
from ralph_mission.mission.memory.model import Header
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.ledger import CallRecord, MemoryBatch, Record
from ralph_mission.mission.model.threads import Pull
from ralph_mission.mission.reviews import review
from ralph_mission.mission.transaction import BRIEF, Busy, Open, Sleep, Transaction, commit_transaction, run_transaction

Call = Callable[[int], Receipt]
"""Asks for the review of a pull by its number; `failed` names why. Never raises UserError."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """The pulls that the review was woken for, and why not for the others. `refusal`: what GitHub refused, and why."""

    pulls: tuple[int, ...] = ()
    reason: str = ""
    refusal: str = ""


def call_due_reviews(opened: Open, sleep: Sleep, send: Call) -> CallReport:
    """Wake the review of every pull of ours whose head nobody was called for. Raises UserError."""
    try:
        return run_transaction(opened, sleep, partial(_call, send), BRIEF)
    except Busy as busy:
        return CallReport(reason=f"{busy.what}; the next cycle wakes it")


def _call(send: Call, this: Transaction) -> CallReport:
    if this.past is None or execute.is_stopped(this.ports):
        return CallReport(reason="paused" if this.past else "nothing was proposed yet")
    forge = this.ports.forge
    pulls = review.our_open_pulls(forge.pulls(), forge.identity().id)
    known = this.house.store.records([review.call_key(pull) for pull in pulls], this.past)
    waiting = review.pulls_to_call(pulls, known)
    header, granted = _grant_calls(this, waiting)
    left = f"today's wakes are used up, {len(waiting) - len(granted)} wait" if len(granted) < len(waiting) else ""
    if not granted:
        return CallReport(reason=left or "no pull waits for its review to be woken")
    records = [review.record_call(pull, known, this.now) for pull in granted]
    this = _write_calls(this, header, records, f"ralph: wakes the review of {len(records)}")
    return _send_calls(this, records, send, left)


def _grant_calls(this: Transaction, waiting: Sequence[Pull]) -> tuple[Header, list[Pull]]:
    """The pulls that today has a wake for, and the header that counts them."""
    header, granted = this.memory.header, list[Pull]()
    for pull in waiting:
        more = review.count_wake(header, this.now, this.house.charter.limits.dispatches_per_day)
        if more is None:
            break
        header = more
        granted.append(pull)
    return header, granted


def _send_calls(this: Transaction, records: Sequence[CallRecord], send: Call, left: str) -> CallReport:
    receipts = {record.key: send(record.pull) for record in records}
    failed = [key for key, receipt in receipts.items() if receipt.status == "failed"]
    if failed:
        _note(this, review.mark_refused(records, failed))
    woken = tuple(record.pull for record in records if record.key not in failed)
    return CallReport(woken, left, receipts[failed[0]].detail if failed else "")


def _note(this: Transaction, records: Sequence[CallRecord]) -> None:
    try:
        _write_calls(this, this.memory.header, records, f"ralph: {len(records)} reviews could not be woken")
    except Lost:
        return  # somebody wrote memory meanwhile: then these calls count as made, and a push makes others


def _write_calls(this: Transaction, header: Header, records: Sequence[Record], subject: str) -> Transaction:
    return commit_transaction(
        this, MemoryBatch(replace(this.memory, header=header), this.state, tuple(records), subject)
    )
