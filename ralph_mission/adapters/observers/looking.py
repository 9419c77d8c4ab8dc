"""Shared results of observers: too soon, unavailable, unusual growth."""

from __future__ import annotations

from datetime import datetime, timedelta

from ralph_mission.adapters.observers.text import one_line
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.words import stamp

PUNCTUAL = 0.9  # of `every`, as a cycle may be a little early
MILESTONES = tuple(int(base * ten) for ten in (10, 100, 1_000, 10_000, 100_000, 1_000_000) for base in (1, 2.5, 5))
JUMP, JUMP_SHARE = 10, 0.1  # since the last observation: at least so many, and such a share


def unavailable(name: str, problem: UserError, cursor: str) -> Observation:
    """A failed observation, with the reason and what helps."""
    return Observation(name, "unavailable", detail=one_line(f"{problem.what}; {problem.next_step}", 300), cursor=cursor)


def too_soon(name: str, last: datetime | None, every: timedelta, context: ObservationContext) -> Observation | None:
    """A skipped observation, as the last one was less than `every` ago."""
    if last is None or not last <= context.now < last + every * PUNCTUAL:
        return None
    detail = f"looked at {stamp(last)}; not again so soon"
    return Observation(name, "skipped", detail=detail, cursor=context.cursor)


def milestone(before: int, now: int) -> int:
    """The highest round number that was passed, or 0."""
    return max((mark for mark in MILESTONES if before < mark <= now), default=0)


def is_jump(before: int, now: int) -> bool:
    """Whether it grew more than on an ordinary day."""
    return now - before >= max(JUMP, JUMP_SHARE * before)
