"""A fleet of 1,000 repositories for 14 simulated days: `python -m bench.fleet`. It writes to tools/trust/measured.md.

The gate is the real one (`ralph fleet due` with its requests over loopback), and so are wake times, plan and budgets;
GitHub is the suite's fake, jobs take simulated minutes, and time is an argument. Every fourth scan two gates overlap.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import quantiles
from unittest.mock import patch

from bench.run import RALPH, asked
from ralph_mission.cli.fleet import ask_fleet, book, read_fleet
from ralph_mission.cli.gate import LONGEST_WAIT
from ralph_mission.config.fleet import FleetConfig
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import FleetPlan, FleetStart
from ralph_mission.mission.memory.front_matter import join
from ralph_mission.mission.memory.schedule import plan_next
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Urgency
from tests.fakes.fleet import FakeFleet, Refused, thread

REPOSITORIES, DAYS, BUSY, BROKEN = 1000, 14, 0.05, 0.02
START = datetime(2026, 5, 4, tzinfo=UTC)
SCAN = timedelta(minutes=15)
PARALLEL, JOB_MINUTES = 60, 45
BUDGET = {"usd": 60, "pull_requests": 40, "minutes": 40_000}
EACH = {"usd": 5, "pull_requests": 2, "minutes": 900}
IDLE, WAITING, ACTING = (
    10,
    13,
    25,
)  # requests of a cycle without a kept clone, so that all of them count (tools/trust/measured.md)
HOSTED = 0.006  # USD a minute of GitHub's Linux runner with two cores, in a private repository (list price of 2026)
TODAY = 100  # jobs a repository's own workflow starts in a day (docs/clock.md)
GROWTH = (10, 100, 1000, 10_000)
PAGE = Path(__file__).resolve().parent.parent / "tools" / "trust" / "measured.md"
MARK = "<!-- python -m bench.fleet writes what follows -->"
END = "<!-- to here -->"
SETTINGS = (
    f"repositories: [installation]\nparallel: {PARALLEL}\njob_minutes: {JOB_MINUTES}\n"
    f"budget: {json.dumps(BUDGET)}\neach: {json.dumps(EACH)}\n"
)


@dataclass
class World:
    """The fleet, its runners, and what was measured."""

    fake: FakeFleet
    config: FleetConfig
    rng: Random
    headers: dict[str, Header] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    ends: list[tuple[datetime, int, FleetStart, datetime]] = field(default_factory=list)
    runners: list[datetime] = field(default_factory=lambda: [START] * PARALLEL)
    late: list[float] = field(default_factory=list)  # minutes
    spoken: dict[str, datetime] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)  # requests, by hour
    points: Counter[str] = field(default_factory=Counter)
    days: defaultdict[str, defaultdict[str, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    jobs: int = 0
    twice: int = 0
    killed: int = 0
    gates_killed: int = 0
    lost: int = 0
    early: int = 0
    at_work: set[str] = field(default_factory=set)


def play(days: int, repositories: int = REPOSITORIES) -> World:
    """So many days of a fleet."""
    with FakeFleet() as fake, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "fleet.yml").write_text(SETTINGS)
        world = World(fake, read_fleet(Path(folder)), Random(24))
        _populate(world, repositories)
        with patch.dict(os.environ, fake.environ):
            for number in range(days * 96):
                now = START + number * SCAN + timedelta(seconds=world.rng.randrange(120))
                _end_jobs(world, now)
                _speak(world, now)
                for start in _scan(world, now, overlap=number % 4 == 3):
                    _run(world, start, now)
            _end_jobs(world, START + timedelta(days=days))
    return world


def _populate(world: World, repositories: int) -> None:
    names = [f"acme/r{number:05}" for number in range(repositories)]
    marked = world.rng.sample(names, int(repositories * (BUSY + BROKEN)))
    world.busy, world.broken = set(marked[: int(repositories * BUSY)]), set(marked[int(repositories * BUSY) :])
    for name in names:
        due = START + timedelta(seconds=world.rng.randrange(6 * 3600))
        header = Header(next_due_at=due, cycle=1, last_cycle_at=due - timedelta(hours=6), today="2026-05-03")
        world.headers[name] = header
        world.fake.add(name, memory=join(header, _BODY), moved_at=due - timedelta(hours=6))
    for number, name in enumerate(sorted(world.broken)):
        repository = world.fake.repositories[name]
        repository.archived, repository.forbidden = number % 4 == 0, number % 4 == 1


_BODY = "# Ralph Loop Memory\n\n" + "- something that was observed, in a line as long as they usually are there\n" * 20


def _speak(world: World, now: datetime) -> None:
    """People say something, where something is under way more often than elsewhere."""
    for name in world.headers:
        if world.rng.random() < (0.5 if name in world.busy else 0.02) / 96 and name not in world.broken:
            world.fake.repositories[name].issues = [thread(7, "A question", now)]
            world.spoken[name] = now


def _scan(world: World, now: datetime, overlap: bool) -> list[FleetStart]:
    """What one gate starts, or two at the same time, of which one may die at any request."""
    fake = world.fake
    hour = now.strftime("%d %H")
    fake.left = fake.limit - world.used[hour]
    before, points = len(fake.requests), fake.points
    faulty = world.rng.random() < 0.01
    if faulty:
        fake.break_at(world.rng.randrange(1, 13), applied=world.rng.random() < 0.5)
    started: list[FleetStart] = []
    try:
        asked_by = [ask_fleet(world.config, now) for _ in range(2 if overlap else 1)]
        plans: list[FleetPlan] = [book(plan, scan, now) for scan, plan in asked_by]
        world.lost += sum(not plan.starts for plan in plans[1:])
        started = [start for plan in plans for start in plan.starts]
        if not (overlap or faulty):  # a lost answer is asked for once more
            world.requests.append(len(fake.requests) - before)
    except UserError:
        world.gates_killed += 1
    fake.break_at(10**9)
    world.used[hour] += len(fake.requests) - before
    world.points[hour] += fake.points - points
    return started


def _run(world: World, start: FleetStart, now: datetime) -> None:
    """A job of the matrix: waits for a runner, then takes its minutes."""
    queued = now + timedelta(seconds=world.rng.randrange(20, 60))
    begin = max(queued, heapq.heappop(world.runners))
    due = world.headers[start.name].next_due_at
    if not start.spoke and due is not None and begin < due <= begin + timedelta(seconds=LONGEST_WAIT):
        begin = due  # the job's own gate waits
    world.jobs += 1
    world.twice += start.name in world.at_work
    world.at_work.add(start.name)
    minutes = world.rng.uniform(2, 4) if start.name not in world.busy else world.rng.uniform(3, 15)
    if start.name in world.broken:
        minutes = 1.0
    end = begin + timedelta(minutes=minutes)
    heapq.heappush(world.runners, end)
    heapq.heappush(world.ends, (end, world.jobs, start, begin))


def _end_jobs(world: World, now: datetime) -> None:
    while world.ends and world.ends[0][0] <= now:
        end, _, start, begin = heapq.heappop(world.ends)
        world.at_work.discard(start.name)
        day = world.days[end.date().isoformat()]
        day["jobs"] += 1
        day["minutes"] += int((end - begin).total_seconds() // 60) + 1
        world.used[end.strftime("%d %H")] += 1  # the token
        try:
            token = world.fake.mint(start.name)
            if start.name in world.broken:
                raise Refused(500, "the cycle fails before it writes anything")
            if world.rng.random() < 0.01:
                world.killed += 1
                _die(world, token, start, end)
                continue
            _cycle(world, token, start, begin, end)
        except Refused:
            continue


def _die(world: World, token: str, start: FleetStart, end: datetime) -> None:
    """A job that is killed: in a busy repository after it reserved all its money in memory, and spent it."""
    header, today = world.headers[start.name], end.date().isoformat()
    spent = header.spend_usd if header.today == today else 0.0
    if start.name in world.busy and (start.usd_per_day or 0.0) > spent:
        world.days[today]["usd"] += (start.usd_per_day or 0.0) - spent
        header = replace(header, today=today, spend_usd=start.usd_per_day or 0.0)
        world.headers[start.name] = header
        world.fake.run_cycle(token, start.name, join(header, _BODY), end, IDLE)
        world.fake.repositories[start.name].cycles.pop()  # it is none


def _cycle(world: World, token: str, start: FleetStart, begin: datetime, end: datetime) -> None:
    """One cycle as memory tells of it afterwards: its urgency, its money, when the next one is due."""
    name, before = start.name, world.headers[start.name]
    busy, today = name in world.busy, end.date().isoformat()
    if not start.spoke and before.next_due_at is not None and begin < before.next_due_at:
        world.early += 1
        return
    steering = start.spoke and before.next_due_at is not None and before.next_due_at > begin
    since = world.spoken.pop(name, None) if start.spoke else before.next_due_at
    if since is not None:
        world.late.append(max(0.0, (begin - since).total_seconds() / 60))
    spent = before.spend_usd if before.today == today else 0.0
    cost = min(world.rng.uniform(0, 1.5), max(0.0, (start.usd_per_day or 0.0) - spent)) if busy else 0.0
    header = replace(before, cycle=before.cycle + 1, last_cycle_at=begin, today=today, spend_usd=round(spent + cost, 4))
    if not steering:
        chance = world.rng.random()
        urgency = Urgency.HIGH if chance < 0.25 else Urgency.MEDIUM if chance < 0.8 else Urgency.LOW
        urgency = urgency if busy else Urgency.MEDIUM if chance < 0.05 else Urgency.LOW
        header = plan_next(header, urgency, Rhythm(), begin)
    day, repository = world.days[today], world.fake.repositories[name]
    day["usd"] += header.spend_usd - spent
    requests = WAITING if busy else IDLE
    if busy and start.pulls and world.rng.random() < 0.1:
        requests = ACTING
        repository.pulls = [thread(world.jobs, "A fix", end), *repository.pulls][:10]
        day["pulls"] += 1
    world.headers[name] = header
    world.used[end.strftime("%d %H")] += requests
    world.fake.run_cycle(token, name, join(header, _BODY), end, requests)


# --- growth of one scan ---------------------------------------------------------------


def grow() -> Iterator[tuple[int, float, float, int, float]]:
    """Repositories, seconds, processor seconds, requests and megabytes of `ralph fleet due`, as a process."""
    for number in GROWTH:
        with FakeFleet() as fake, tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "fleet.yml").write_text(SETTINGS)
            later = START + timedelta(days=9999)
            memory = join(Header(next_due_at=later, cycle=1, last_cycle_at=later), _BODY)
            for at in range(number):
                fake.add(f"acme/r{at:05}", memory=memory, moved_at=START)
            line = [sys.executable, "-c", _MEASURED, str(RALPH), "fleet", "due", "--repo", folder]
            line += ["--now", later.isoformat()]
            began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            environment = {**os.environ, **fake.environ, "GITHUB_ACTIONS": ""}
            done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            kilobytes = int(done.stdout.splitlines()[-1])
            yield number, time.monotonic() - began, processor, len(fake.requests), kilobytes / 1024


_MEASURED = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


# --- the tables -----------------------------------------------------------------------


def describe(world: World, days: int) -> list[str]:
    """What is to be shown, as a table."""
    count = len(world.headers)
    cuts = quantiles(world.late, n=100)
    hours, points = max(world.used.values()), max(world.points.values())
    most = {name: max(day[name] for day in world.days.values()) for name in ("usd", "pulls", "minutes")}
    served = [one for one in world.fake.repositories.values() if one.name not in world.broken]
    gaps = [_longest_gap(one.cycles, days) for one in served]
    jobs = world.jobs / days
    minutes = sum(day["minutes"] for day in world.days.values()) / days
    extra = max(0.0, minutes - jobs) * 30 * HOSTED  # what cycles take beyond their first minute, in both
    gate, before = 96 * 30 * HOSTED, count * TODAY * 30 * HOSTED
    share = hours / world.fake.limit
    rows = [
        ("requests of a scan (the first of all: one more)", f"{max(world.requests[1:])} at most", "12"),
        ("busiest hour, scans and cycles: share of the app's 12,500 requests", f"{share:.1%}", "20 %"),
        ("busiest hour: share of its 12,500 GraphQL points", f"{points / 12_500:.1%}", ""),
        ("lateness, median", f"{cuts[49]:.0f} min", ""),
        ("lateness, 95 %", f"{cuts[94]:.0f} min", ""),
        ("longest a working repository went without a cycle", f"{max(gaps):.1f} h", ""),
        ("repositories forgotten", f"{sum(not one.cycles for one in served)} of {len(served)}", "0"),
        ("jobs that came too early for nothing", f"{world.early}", "0"),
        ("started while under way", f"{world.twice}", "0"),
        ("dearest day: models", f"{most['usd']:.2f} USD", f"{BUDGET['usd']} USD"),
        ("dearest day: pull requests unasked", f"{most['pulls']:.0f}", f"{BUDGET['pull_requests']}"),
        ("dearest day: runner minutes", f"{most['minutes']:,.0f}", f"{BUDGET['minutes']:,}"),
        ("jobs started a day", f"{jobs:,.0f} and 96 gates", f"{count * TODAY:,} without a fleet"),
        (
            "a month on GitHub's runners at list prices",
            f"{gate + minutes * 30 * HOSTED:,.0f} USD, {gate:,.0f} of them for the gate",
            f"{before + extra:,.0f} USD without a fleet",
        ),
    ]
    broken = (
        f"{world.killed} jobs and {world.gates_killed} gates were killed on the way, {world.lost} gates came second"
    )
    head = f"{count:,} repositories, {days} days, {len(world.busy)} busy, {len(world.broken)} broken; {broken}."
    return [head, "", "| What | Measured | Bound |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]


def _longest_gap(cycles: list[datetime], days: int) -> float:
    moments = [START, *cycles, START + timedelta(days=days)]
    return max((b - a).total_seconds() / 3600 for a, b in pairwise(moments))


def describe_growth(rows: list[tuple[int, float, float, int, float]]) -> list[str]:
    """One scan, with nobody due."""
    lines = [f"| {n:,} | {s:.1f} | {c:.1f} | {r} | {m:.0f} |" for n, s, c, r, m in rows]
    return ["| repositories | seconds | of a processor | requests | MB |", "|---|---|---|---|---|", *lines]


def write(tables: list[str]) -> None:
    """Put them into the document, between two marks."""
    text = PAGE.read_text()
    made = "\n".join([MARK, "", *tables, "", END])
    old = re.search(rf"{re.escape(MARK)}.*?{re.escape(END)}", text, re.DOTALL)
    PAGE.write_text(text.replace(old[0], made) if old else f"{text.rstrip()}\n\n{made}\n")


def main(days: int = DAYS) -> int:
    """Play, measure, and write both tables."""
    tables = describe(play(days), days)
    print("\n".join(tables), flush=True)
    growth = describe_growth(list(grow()))
    print("\n".join(growth), flush=True)
    if days >= DAYS:
        write([*tables, "", "One scan, by the number of repositories, on a busy machine:", "", *growth])
    return 0


if __name__ == "__main__":
    sys.exit(main(asked(__doc__, "days", DAYS)))
