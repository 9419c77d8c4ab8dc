"""Which issues are at work, told by the forge when memory is rebuilt: those that our own account labelled so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.approval import standing_label
from ralph_mission.mission.ledger import OpenState, Record, WorkRecord, work_key
from ralph_mission.mission.ports import Forge
from ralph_mission.mission.work import OPEN
from ralph_mission.mission.work_terms import WORKING


def at_work(
    records: Mapping[str, Record], state: OpenState, forge: Forge, now: datetime, take_over: bool
) -> tuple[WorkRecord, ...]:
    """The records of work that is not at its end. With `take_over` nobody's: the next run brings it there."""
    numbers = sorted({*state.working, *_labelled_by_us(forge)})
    found = (_open(records.get(work_key(number)), number, now) for number in numbers)
    return tuple(replace(record, holder="") if take_over else record for record in found)


def _labelled_by_us(forge: Forge) -> Iterator[int]:
    us = forge.identity().id
    for issue in forge.issues("open", (WORKING,)):
        label = standing_label(forge.issue(issue.number), WORKING)
        if label is not None and label.actor.id == us:
            yield issue.number


def _open(known: Record | None, number: int, now: datetime) -> WorkRecord:
    """What was known of it; where nothing was, one try is counted, and nobody has it."""
    if not isinstance(known, WorkRecord):
        return WorkRecord(work_key(number), number, "", "", "working", 1, "", now)
    return known if known.state in OPEN else replace(known, state="working")
