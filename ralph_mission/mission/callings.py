"""Which of our pulls the review is still to be woken for, and whether today has a wake left for it. Pure.

A head is called for once; what GitHub refused is called for again, a few times. The wakes are those of the loop's
own day: one count for whoever sends them (`schedule.granted`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import schedule
from ralph_mission.mission.belonging import BRANCHES
from ralph_mission.mission.ledger import CallRecord, Record, key_of
from ralph_mission.mission.memory import Header
from ralph_mission.mission.threads import Pull

TRIES = 3  # of a call that is refused


def call_key(pull: Pull) -> str:
    """The key of the call for a pull at its head."""
    return key_of("call-review", str(pull.number), pull.head_sha)


def our_open_pulls(pulls: Iterable[Pull], us: int) -> tuple[Pull, ...]:
    """Open pulls that our account opened from a branch of ours, the oldest first."""
    return tuple(
        pull for pull in pulls if pull.state == "open" and pull.author.id == us and pull.head.startswith(BRANCHES)
    )


def pulls_to_call(pulls: Iterable[Pull], records: Mapping[str, Record]) -> tuple[Pull, ...]:
    """Those whose head nobody was called for yet."""
    return tuple(pull for pull in pulls if _may_call(records.get(call_key(pull))))


def record_call(pull: Pull, records: Mapping[str, Record], now: datetime) -> CallRecord:
    """The record of one more call; it stands on the memory branch before the call is made."""
    before = records.get(call_key(pull))
    tries = before.tries if isinstance(before, CallRecord) else 0
    return CallRecord(call_key(pull), pull.number, pull.head_sha, tries + 1, now)


def count_wake(header: Header, now: datetime, limit: int) -> Header | None:
    """The header with one more wake of today; None when the day's share is used up. `limit`: wakes in a day."""
    today = schedule.day_of(header, now)
    dispatches, granted = schedule.count_granted_wakes(header, today, limit)
    if not granted:
        return None
    spent = header.spend_usd if header.today == today else 0.0
    wake = schedule.may_wake(header, today)  # of the present due time: as before
    return replace(header, today=today, dispatches=dispatches, wake=wake, spend_usd=spent)


def mark_refused(records: Iterable[CallRecord], keys: Collection[str]) -> tuple[CallRecord, ...]:
    """The records of the calls with these keys, which GitHub did not accept."""
    return tuple(replace(record, refused=True) for record in records if record.key in keys)


def _may_call(record: Record | None) -> bool:
    return not isinstance(record, CallRecord) or (record.refused and record.tries < TRIES)
