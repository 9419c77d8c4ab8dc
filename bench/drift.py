"""Twelve hours of wakes in seconds: how long after its due time a cycle starts. `python -m bench.drift`.

Real repositories, the real gate, real cycles, a timer's real memory; only time and the network are played.
Nothing is fetched and nothing is kept. What must hold whatever happens is asserted by the test of the same name.
"""

from __future__ import annotations

import heapq
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.due import due_fast
from ralph_mission.adapters.wakers import Calls, objection, record_wake
from ralph_mission.app.cycle import build_app
from ralph_mission.cli.gate import LONGEST_WAIT
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.memory.text import peek
from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.ports import CyclePorts

START = datetime(2026, 5, 4, 0, 3, tzinfo=UTC)
SPAN = 12 * 3600.0  # seconds
SEEDS = 3  # times that each scenario is played
SETTINGS = "hands: {fixers: []}\nobservers:\n  code: {markers: {}}\n"
PAUSES = (900, 900, 900, 3600, 3600, 21600)  # seconds: high, medium and low urgency as a busy day mixes them
CAP = 48  # wakes in a day

Skew = Callable[[float], float]
"""By how many seconds a clock is wrong at a moment (seconds since the start)."""


def honest(_: float) -> float:
    """A clock that is right."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """What wakes the loop, and what goes wrong. Chances are between 0 and 1, times in seconds."""

    title: str
    ways: frozenset[str] = frozenset({"heartbeat"})
    lost: float = 0.0  # dispatches that never arrive
    dropped: float = 0.0  # beats of cron that never come
    late: float = 60.0  # the mean lateness of those that do
    doubled: float = 0.0  # beats that come twice
    forged: float = 0.0  # seconds between dispatches that nobody of ours has sent; 0: none
    rivals: str = ""  # a second runner for each wake: on this host | elsewhere (within the first's cycle) | behind it
    skews: tuple[Skew, ...] = (honest,)  # one for each runner; wakes take turns
    cap: int = CAP  # wakes in a day
    pauses: tuple[int, ...] = PAUSES  # one of them follows each cycle, in seconds
    sound: bool = True  # whether every clock is right, so that there is a bound to lateness


@dataclass(frozen=True, slots=True)
class Arrival:
    """One wake at one runner: what its clock said, what memory said, and whether a cycle came of it."""

    at: float  # true seconds since the start
    clock: datetime
    due_at: datetime | None
    generation: int
    outcome: str  # turned away | done | lost | not_due


@dataclass(slots=True)
class Day:
    """Twelve hours of one scenario. `run` plays them; `arrivals` is what happened."""

    scenario: Scenario
    repo: Path
    chance: random.Random
    arrivals: list[Arrival] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    sent: int = 0
    _header: Header | None = None
    _queue: list[tuple[float, int, str]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=count)

    def run(self) -> Day:
        """All of it."""
        self._plan()
        while self._queue:
            at, number, kind = heapq.heappop(self._queue)
            if kind == "look":
                self._look(at)
            else:
                self._arrive(at, self.scenario.skews[number % len(self.scenario.skews)], self.scenario.rivals)
        return self

    def header(self) -> Header:
        """What memory says now, read by git alone; kept until the next cycle."""
        if self._header is None:
            name = "refs/heads/ralph-memory:memory/ralph-log.md"
            content = Git.open(self.repo).blobs([name]).get(name)
            self._header = peek(content) if content else Header()
        return self._header

    # --- what is sent, and what becomes of it on its way

    def _plan(self) -> None:
        if "heartbeat" in self.scenario.ways:
            for beat in range(240, int(SPAN), 900):
                self._beat(beat)
        if "timer" in self.scenario.ways:
            for minute in range(0, int(SPAN), 60):
                self._at(minute, "look")
        at = self.scenario.forged
        while 0 < at < SPAN:
            self._at(at, "forged")
            at += self.chance.expovariate(1 / self.scenario.forged)

    def _beat(self, beat: int) -> None:
        if self.chance.random() >= self.scenario.dropped:
            self._at(beat + self.chance.expovariate(1 / self.scenario.late), "beat")
        if self.chance.random() < self.scenario.doubled:
            self._at(beat + self.chance.expovariate(1 / self.scenario.late), "beat")

    def _at(self, at: float, kind: str) -> None:
        if at < SPAN:
            heapq.heappush(self._queue, (at, next(self._number), kind))

    def _dispatch(self, at: float) -> None:
        self.sent += 1
        if self.chance.random() >= self.scenario.lost:
            self._at(at + self.chance.uniform(3, 40), "dispatch")

    def _look(self, at: float) -> None:
        """A timer's minute: the gate, and one wake for each due time."""
        now = START + timedelta(seconds=at)
        if due_fast(self.repo, now)[0] and not objection(self.calls, self.header(), now, self.scenario.cap):
            self.calls = record_wake(self.calls, self.header(), now)
            self._dispatch(at)

    # --- what a runner does with a wake

    def _arrive(self, at: float, skew: Skew, rivals: str) -> None:
        clock, header = START + timedelta(seconds=at + skew(at)), self.header()
        outcome, early = "turned away", (header.next_due_at or clock) - clock
        if timedelta() < early <= timedelta(seconds=LONGEST_WAIT):  # the action's gate waits
            at, clock = at + early.total_seconds(), clock + early
        if due_fast(self.repo, clock)[0]:
            pause = self.chance.choice(self.scenario.pauses)
            behind = rivals == "behind it"
            rival = (lambda: self._arrive(at, skew, "")) if rivals and not behind else None
            outcome = self._cycle(clock, pause, rival)
            if behind:  # past the gate before the first one's cycle, at work after it
                late = self._cycle(clock, pause, None)
                self.arrivals.append(Arrival(at, clock, header.next_due_at, header.generation, late))
        self.arrivals.append(Arrival(at, clock, header.next_due_at, header.generation, outcome))

    def _cycle(self, clock: datetime, pause: int, rival: Callable[[], None] | None) -> str:
        house = build_app(self.repo, now=clock)
        ports = replace(house.ports, recorder=_Meanwhile(rival))
        if self.scenario.rivals == "elsewhere" and rival is None:
            ports = replace(ports, store=_Elsewhere(ports.store))
        limits = replace(house.settings.limits, dispatches_per_day=self.scenario.cap)
        settings = replace(house.settings, limits=limits)
        outcome = _run(ports, settings, timedelta(seconds=pause), house.secrets)
        self._header = None
        return outcome


def _run(ports: CyclePorts, settings: CycleSettings, pause: timedelta, secrets: tuple[str, ...]) -> str:
    settings = replace(settings, rhythm=Rhythm(pause, pause, pause))
    return run_cycle(ports, settings, CycleRequest(trigger="dispatch"), secrets)[0].outcome


@dataclass(slots=True)
class _Meanwhile:
    """A recorder to whom something happens in the middle of the cycle, once."""

    action: Callable[[], None] | None

    def record(self, name: str, value: object) -> None:
        action, self.action = self.action, None
        if action:
            action()


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """A store on another machine: it shares the branch, and no lock."""

    store: Any

    def exclusive(self) -> AbstractContextManager[bool]:
        return nullcontext(True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def day(scenario: Scenario, seed: int, folder: Path) -> Day:
    """Twelve hours of `scenario` in a new repository below `folder`."""
    repo = folder / f"{seed}"
    repo.mkdir(parents=True)
    (repo / "ralph.yml").write_text(SETTINGS)
    who = ("-c", "user.name=Inge", "-c", "user.email=inge@slackwater.example", "-c", "commit.gpgSign=false")
    for command in ("init --quiet --initial-branch main", "add .", "commit --quiet --message Start"):
        subprocess.run(["git", *who, "-C", str(repo), *command.split()], check=True)
    return Day(scenario, repo, random.Random(seed)).run()


def drifts(day: Day) -> list[float]:
    """Seconds from due to started by the runner's own clock, of each cycle that had a due time."""
    return [(a.clock - a.due_at).total_seconds() for a in day.arrivals if a.outcome == "done" and a.due_at]


def silence(day: Day) -> float:
    """The longest true time without a cycle, in seconds. No pause is longer than six hours."""
    starts = [0.0, *(arrival.at for arrival in day.arrivals if arrival.outcome == "done"), SPAN]
    return max(later - earlier for earlier, later in pairwise(starts))


def _two_days_ahead_for_an_hour(at: float) -> float:
    return 48 * 3600.0 if 4 * 3600 < at < 5 * 3600 else 0.0


def _two_days_behind(_: float) -> float:
    return -48 * 3600.0


def _jumps_back(at: float) -> float:
    return -1800.0 if at > 6 * 3600 else 0.0


HEARTBEAT, TIMER = (frozenset({"heartbeat", *more}) for more in ((), ("timer",)))
SCENARIOS = (
    Scenario("timer", TIMER),
    Scenario("timer, a third of the dispatches lost", TIMER, lost=0.33),
    Scenario("heartbeat", HEARTBEAT),
    Scenario("heartbeat, dropped, doubled, an hour late", HEARTBEAT, dropped=0.3, doubled=0.3, late=3600.0),
    Scenario("timer alone: cron is switched off", frozenset({"timer"}), lost=0.33),
    Scenario("all ways at once, and forged dispatches", TIMER, doubled=0.3, forged=240.0),
    Scenario("two runners at once, on one host", TIMER, rivals="on this host"),
    Scenario("two runners at once, on two hosts", TIMER, rivals="elsewhere"),
    Scenario("two runners, one right behind the other", TIMER, rivals="behind it"),
    Scenario("one of two clocks 48 h behind", TIMER, skews=(honest, _two_days_behind), sound=False),
    Scenario("a clock that jumps back 30 min", TIMER, skews=(_jumps_back,), sound=False),
    Scenario("a clock 48 h ahead for an hour", TIMER, skews=(_two_days_ahead_for_an_hour,), sound=False),
)


def main(seeds: int = SEEDS) -> int:
    """Play every scenario and print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("what wakes, what goes wrong", title=f"drift: minutes from due to started; {seeds} x 12 h each")
    for column in ("cycles", "turned away", "lost", "sent", "median", "p95", "max", "longest gap"):
        table.add_column(column, justify="right")
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="ralph-drift-") as folder:
            days = [day(scenario, seed, Path(folder)) for seed in range(seeds)]
        table.add_row(scenario.title, *_row(days))
    Console(width=120).print(table)
    return 0


def _row(days: list[Day]) -> Iterator[str]:
    outcomes = [arrival.outcome for day in days for arrival in day.arrivals]
    yield from (str(outcomes.count(name)) for name in ("done", "turned away", "lost"))
    yield str(sum(day.sent for day in days))
    late = sorted(seconds / 60 for day in days for seconds in drifts(day))
    middle = (median(late), late[math.ceil(0.95 * len(late)) - 1], late[-1]) if late else ()
    yield from (f"{minutes:,.1f}" for minutes in middle)
    yield f"{max(map(silence, days)) / 3600:.1f} h"


if __name__ == "__main__":
    from bench.run import asked

    sys.exit(main(asked(__doc__, "seeds", SEEDS)))
