"""Watching, with a clock that only moves when somebody sleeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport, Outcome
from ralph_mission.mission.model.mission import Urgency, Usage
from ralph_mission.mission.operations.control import WatchSetup, watch_cycles
from tests.helpers import NOON

HOUR = timedelta(hours=1)
BROKEN = UserError("cannot reach the server", "try again", who="network")


class Enough(Exception):
    """The test has seen enough."""


@dataclass
class WatchedCycles:
    """A scripted world: `due_at` is what memory says, `cycles` what happens when one is run."""

    due_at: datetime | None = NOON
    pause: timedelta = HOUR
    sleeps_left: int = 200
    now_: datetime = NOON
    outcomes: list[Outcome | UserError] = field(default_factory=list)
    ran: list[datetime] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    on_sleep: Callable[[WatchedCycles], None] = lambda _: None

    def now(self) -> datetime:
        return self.now_

    def sleep(self, seconds: float) -> None:
        if len(self.slept) == self.sleeps_left:
            raise Enough
        self.slept.append(seconds)
        self.now_ += timedelta(seconds=seconds)
        self.on_sleep(self)

    def gate(self) -> tuple[bool, datetime | None, str]:
        due = self.due_at is None or self.now_ >= self.due_at
        return due, self.due_at, "due" if due else f"not due until {self.due_at:%H:%M}"

    def cycle(self) -> CycleReport:
        outcome = self.outcomes.pop(0) if self.outcomes else "done"
        if isinstance(outcome, UserError):
            raise outcome
        if outcome == "done":
            self.ran.append(self.now_)
            self.due_at = self.now_ + self.pause
        return CycleReport(
            1,
            len(self.ran),
            "c",
            outcome,
            "watch",
            False,
            self.now_,
            self.now_,
            (),
            (),
            (),
            (),
            (),
            Urgency.LOW,
            self.due_at,
            Usage(),
        )

    def watch(self, once: bool = False) -> WatchedCycles:
        watcher = WatchSetup(self, self.sleep, self.gate, self.cycle, self.said.append)
        if once:
            watch_cycles(watcher, once)
        else:
            with pytest.raises(Enough):
                watch_cycles(watcher)
        return self


def test_cycles_run_when_memory_says_so_to_the_second():
    stage = WatchedCycles(pause=timedelta(minutes=17, seconds=3)).watch()
    gaps = {later - earlier for earlier, later in zip(stage.ran, stage.ran[1:], strict=False)}
    assert len(stage.ran) > 5
    assert gaps == {timedelta(minutes=17, seconds=3)}


def test_what_a_person_said_is_acted_on_before_the_next_cycle_is_due():
    stage, said = WatchedCycles(due_at=NOON + 6 * HOUR), []

    def answer():
        said.append(stage.now_)
        return stage.cycle() if len(said) == 3 else None

    with pytest.raises(Enough):
        watch_cycles(WatchSetup(stage, stage.sleep, stage.gate, stage.cycle, stage.said.append, answer))
    assert stage.ran[0] == said[2] < NOON + HOUR


def test_memory_is_read_again_at_least_once_a_minute():
    stage = WatchedCycles(due_at=NOON + 6 * HOUR).watch()
    assert max(stage.slept) <= 60


def test_a_time_that_somebody_else_moved_counts_within_a_minute():
    def sooner(stage: WatchedCycles) -> None:
        if len(stage.slept) == 3:
            stage.due_at = stage.now_

    stage = WatchedCycles(due_at=NOON + 6 * HOUR, on_sleep=sooner, sleeps_left=5).watch()
    assert stage.ran == [NOON + timedelta(minutes=3)]


def test_work_that_is_always_due_does_not_spin():
    stage = WatchedCycles(pause=timedelta(0), sleeps_left=10).watch()
    assert stage.slept == [60.0] * 10


@pytest.mark.parametrize("outcome", ["lost", "paused", "not_due"])
def test_a_cycle_that_did_not_start_is_tried_again_after_a_minute_and_told_once(outcome):
    stage = WatchedCycles(outcomes=[outcome] * 5, sleeps_left=6).watch()
    assert stage.slept[:5] == [60.0] * 5
    assert len([line for line in stage.said if line.startswith("no cycle")]) == 1
    assert stage.ran == [NOON + timedelta(minutes=5)]


def test_each_cycle_is_one_line_that_says_when_the_next_is():
    stage = WatchedCycles(due_at=None, sleeps_left=1).watch()
    assert stage.said == ["cycle 1: 0 effects; urgency low; next 2026-05-04 13:00 UTC"]


def test_waiting_is_said_once():
    stage = WatchedCycles(due_at=NOON + HOUR, sleeps_left=30).watch()
    assert stage.said == ["not due until 13:00"]


def test_failures_back_off_to_an_hour_and_never_end_it():
    stage = WatchedCycles(outcomes=[BROKEN] * 9, sleeps_left=10).watch()
    assert [seconds / 60 for seconds in stage.slept[:9]] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(stage.ran) == 1
    assert stage.said[0] == "cannot reach the server; try again; trying again in 1 min"


def test_a_success_makes_the_next_failure_the_first():
    stage = WatchedCycles(outcomes=[BROKEN, BROKEN, "done", BROKEN], pause=timedelta(minutes=1), sleeps_left=4).watch()
    assert stage.slept == [60.0, 120.0, 60.0, 60.0]


def test_a_gate_that_fails_backs_off_too():
    stage = WatchedCycles(sleeps_left=2)
    answers = [BROKEN, BROKEN]

    def gate() -> tuple[bool, datetime | None, str]:
        raise answers.pop()

    with pytest.raises(Enough):
        watch_cycles(
            WatchSetup(stage, stage.sleep, lambda: gate() if answers else stage.gate(), stage.cycle, stage.said.append)
        )
    assert stage.slept == [60.0, 120.0]


def test_a_mistake_in_the_settings_ends_it():
    wrong = UserError("ralph.yml line 1: unknown key", "fix it", usage=True)
    with pytest.raises(UserError, match="unknown key"):
        watch_until_raised(WatchedCycles(outcomes=["done", wrong]))


def watch_until_raised(stage: WatchedCycles) -> None:
    watch_cycles(WatchSetup(stage, stage.sleep, stage.gate, stage.cycle, stage.said.append))


def test_an_interrupt_within_a_cycle_goes_through():
    stage = WatchedCycles()

    def cycle() -> CycleReport:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch_cycles(WatchSetup(stage, stage.sleep, stage.gate, cycle, stage.said.append))


def test_once_waits_for_one_cycle_and_ends():
    stage = WatchedCycles(due_at=NOON + HOUR, outcomes=["lost", "done"]).watch(once=True)
    assert stage.ran == [NOON + HOUR + timedelta(minutes=1)]


def test_once_fails_when_the_cycle_fails():
    with pytest.raises(UserError, match="cannot reach"):
        WatchedCycles(outcomes=[BROKEN]).watch(once=True)


def test_a_clock_that_jumps_back_only_makes_it_wait():
    def back(stage: WatchedCycles) -> None:
        if len(stage.slept) == 2:
            stage.now_ -= timedelta(hours=48)

    stage = WatchedCycles(due_at=NOON + timedelta(minutes=10), on_sleep=back, sleeps_left=100).watch()
    assert stage.ran == []
    assert min(stage.slept) >= 1
