"""Cycles and a timer wake the loop at once and without end: together they keep to one cap a day."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from ralph_mission.adapters.wakers.ways import Calls, objection, record_wake
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.memory import Header, Rhythm
from ralph_mission.mission.model.mission import Urgency
from tests.helpers import NOON

RHYTHM = Rhythm(*[timedelta(minutes=15)] * 3)


@dataclass
class Loop:
    """What memory says, what the timer noted, and every wake that was sent, by day."""

    limit: int
    header: Header = field(default_factory=Header)
    calls: Calls = field(default_factory=Calls)
    sent: Counter[str] = field(default_factory=Counter)

    def cycle(self, now: datetime, ready: bool) -> None:
        """One that ends now; `ready`: with work that need not wait."""
        day = f"{now:%Y-%m-%d}"
        dispatches, wake = schedule.count_granted_wakes(self.header, day, self.limit)
        header = replace(self.header, today=day, dispatches=dispatches, wake=wake, last_cycle_at=now)
        self.header = schedule.plan_next(header, Urgency.HIGH, RHYTHM, now, at_once=ready and wake)
        self.sent[day] += ready and wake

    def timer(self, now: datetime) -> bool:
        """Its minute."""
        due = schedule.is_due(self.header.next_due_at, now, RHYTHM.longest)
        if due and not objection(self.calls, self.header, now, self.limit):
            self.calls = record_wake(self.calls, self.header, now)
            self.sent[f"{now:%Y-%m-%d}"] += 1
            return True
        return False


def play(limit: int, seed: int, lost: float, days: int = 3) -> Loop:
    """Every minute the timer looks; a wake that is not lost is a cycle a minute later; cron comes now and then."""
    chance, loop = random.Random(seed), Loop(limit)
    arrives = None
    for minute in range(days * 24 * 60):
        now = NOON + timedelta(minutes=minute)
        woke = loop.timer(now)
        if woke and chance.random() >= lost:
            arrives = minute + 1
        if arrives == minute or chance.random() < 0.02:
            arrives = None
            loop.cycle(now, chance.random() < 0.5)
            if loop.header.next_due_at == loop.header.last_cycle_at and chance.random() >= lost:
                arrives = minute + 1
    return loop


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 48])
@pytest.mark.parametrize("lost", [0.0, 0.4, 1.0])
def test_no_day_has_more_wakes_than_the_cap_whoever_sends_them(limit, lost):
    for seed in range(5):
        loop = play(limit, seed, lost)
        assert max(loop.sent.values()) <= limit


@pytest.mark.parametrize("limit", [2, 7, 48])
def test_every_day_has_some(limit):
    loop = play(limit, 1, lost=0.0)
    assert len(loop.sent) == 4
    assert all(loop.sent.values())


def test_a_loop_that_sleeps_over_midnight_with_nothing_left_is_woken_on_the_next_day():
    """A timer alone, and no cron: otherwise nobody would ever begin the new day."""
    loop = Loop(1)
    loop.cycle(NOON, ready=True)
    loop.cycle(NOON + timedelta(minutes=1), ready=True)
    assert not loop.timer(NOON + timedelta(hours=11))
    assert loop.timer(NOON + timedelta(hours=13))
