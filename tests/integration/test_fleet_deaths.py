"""A fleet whose gate, or a job of it, dies at any request: nothing happens twice, nobody is forgotten, and the money
that was booked before a start is never passed, whatever came of it.

Real are the gate with its plan, bookings and requests, and the cycle in one repository: GitHub's API, git and the model
that it pays. Beside it is a second repository whose cycles use up whatever they are allowed.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.forges.github.limits import GitHubRequester
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.thinkers.llm import LlmThinker
from ralph_mission.cli.fleet import ask_fleet, book
from ralph_mission.config.fleet import load_fleet
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import FleetStart, count_verdicts, parse_state, render_terms
from ralph_mission.mission.memory.text import render_memory
from ralph_mission.mission.model.memory import Header, Memory
from tests.fakes.fleet import FakeFleet, thread
from tests.fakes.model.server import KEY, ScriptedModel
from tests.helpers import NOON, git
from tests.integration.dying import dying
from tests.integration.hub import NAME, Hub, open_hub
from tests.integration.test_thinker import CONFIG, FILES, TYPO, ranking

CONTROL, OTHER = "acme/control", "harbour/pier"
USD, PULLS, MINUTES, JOB = 1.5, 2, 400, 45
FLEET = load_fleet(
    f"repositories: [installation]\njob_minutes: {JOB}\n"
    f"budget: {{usd: {USD}, pull_requests: {PULLS}, minutes: {MINUTES}}}\neach: {{usd: 1}}\n"
)
MOMENTS = 74  # before and after each request of a job
REQUESTS = ((GitHubRequester, "request"), (Git, "run"), (LlmThinker, "think"))  # what a job sends
REPOSITORY = {**FILES, **TYPO, "bugs.txt": "a.py:1: apples fall\nc.py:1: cows moo\n"}
PRICE = 0.0105  # of the scripted model's answer


@dataclass
class Fleet:
    """The control repository's scans, the jobs that come of them, and what both really cost."""

    gate: FakeFleet
    hub: Hub
    model: ScriptedModel
    runs: int = 0
    finished: int = 0
    minutes: int = 0
    others_usd: float = 0.0
    starts: list[str] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)

    def scan(self, now: datetime, gate_dies: tuple[int, bool] | None = None, job_dies: int = 0) -> None:
        """What the workflow does every quarter of an hour; its jobs end before the next scan."""
        self.hub.now = now
        self._tell_memory()
        if gate_dies:
            self.gate.break_at(*gate_dies)
        try:
            scanned, plan = ask_fleet(FLEET, now)
            plan = book(plan, scanned, now)
        except UserError:
            plan = None
        self.gate.break_at(10**9)
        for start in plan.starts if plan else ():
            self.starts.append(start.name)
            terms = render_terms(start, count_verdicts(scanned.headers))
            if start.name == NAME:
                self._cycle(terms, job_dies)
            else:
                self._use_all(start, now)
            self.check()

    @property
    def spent(self) -> float:
        """US dollars, in truth."""
        return PRICE * len(self.model.turns) + self.others_usd

    def check(self) -> None:
        """No budget is passed, by what really happened and by what is booked."""
        assert self.spent <= USD
        assert len(self.hub.pulls) + len(self.gate.repositories[OTHER].pulls) <= PULLS
        assert self.minutes <= MINUTES
        state = parse_state(self.gate.state[-1])
        assert sum(state.minutes.values()) + sum(one.minutes for one in state.bookings.values()) <= MINUTES

    def conclude(self) -> None:
        """Nobody was forgotten, nothing was done twice, and what was spent is what the fleet counts at least."""
        assert self.finished and self.gate.repositories[OTHER].cycles
        assert self.starts.count(OTHER) == 1
        titles = [one.title for one in self.hub.threads if "ralph:anchor" not in (one.body or "")]
        assert len(titles) == len(set(titles)) and len(self.hub.pulls) == 1
        memory = git(self.hub.fake.bare, "show", "ralph-memory:memory/ralph-log.md")
        assert float(re.findall(r"(?m)^spend_usd: (.+)$", memory)[0]) >= PRICE * len(self.model.turns) - 1e-9

    def _tell_memory(self) -> None:
        here, bare = self.gate.repositories[NAME], self.hub.fake.bare
        if "ralph-memory" in git(bare, "branch", "--list", "ralph-memory"):
            here.memory = git(bare, "show", "ralph-memory:memory/ralph-log.md")
            here.moved_at = datetime.fromisoformat(git(bare, "log", "-1", "--format=%cI", "ralph-memory"))
        here.pulls = [thread(one.number, "A fix", NOON) for one in self.hub.pulls]

    def _cycle(self, terms: str, dies: int) -> None:
        """A job: its run goes on until it ends, well or dead; those before it are over."""
        self.runs += 1
        hub = self.hub
        hub.fake.workflow_run(self.runs, "in_progress", repository=CONTROL)
        hub.runner = f"runner-{self.runs}"
        hub.actions |= {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": str(self.runs),
            "GITHUB_JOB": "cycle",
            "RUNNER_NAME": hub.runner,
            "RALPH_CONTROL_REPOSITORY": CONTROL,
            "RALPH_FLEET": terms,
        }
        before = self.finished
        with mock.patch.dict(os.environ, hub.environ), dying(dies, REQUESTS) as death:
            told, _ = hub.cycle(timedelta(0))
            assert told.outcome == "done"
            self.finished += 1
        self.moments = self.moments or death.moments
        self.minutes += 1 if self.finished > before else JOB
        hub.fake.workflow_run(self.runs, "completed", "success", repository=CONTROL)

    def _use_all(self, start: FleetStart, now: datetime) -> None:
        there = self.gate.repositories[OTHER]
        self.others_usd += start.usd_per_day or 0.0
        there.pulls = [thread(1, "A fix", now)] if start.pulls else []
        header = Header(
            next_due_at=now + timedelta(hours=24),
            cycle=1,
            last_cycle_at=now,
            today=now.date().isoformat(),
            spend_usd=start.usd_per_day or 0.0,
        )
        self.minutes += JOB
        self.gate.run_cycle(self.gate.mint(OTHER), OTHER, render_memory(Memory(header)), now + timedelta(minutes=JOB))


def play(folder: Path, gate_dies: tuple[int, bool] | None = None, job_dies: int = 0) -> Fleet:
    """A day of a fleet of two, in which the first gate, or the first job, dies at a moment."""
    with ExitStack() as stack:
        gate = stack.enter_context(FakeFleet(CONTROL))
        hub = stack.enter_context(open_hub(folder, REPOSITORY, CONFIG))
        model = stack.enter_context(ScriptedModel([ranking("misspelling")] * 9))
        token = hub.fake.token(permissions={"actions": "read"}, repository=CONTROL)
        hub.actions = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url, "RALPH_CONTROL_TOKEN": token}
        stack.enter_context(mock.patch.dict(os.environ, gate.environ))
        gate.add(NAME)
        gate.add(OTHER)
        gate.add("harbour/old", archived=True)
        fleet = Fleet(gate, hub, model)
        for hour in (0.0, 0.25, 2.0, 4.0, 10.0):  # a job is given up after 100 minutes, and rests for an hour
            fleet.scan(NOON + hour * timedelta(hours=1), *((gate_dies, job_dies) if not hour else ()))
            if fleet.finished and hour:
                break
        fleet.conclude()
        return fleet


def test_the_money_of_a_job_that_died_counts_and_the_next_one_takes_over(tmp_path: Path) -> None:
    fleet = play(tmp_path, job_dies=30)
    assert fleet.moments[-1] == "after LlmThinker.think(Brief)"  # it has cost something, and nothing is written yet
    assert len(fleet.model.turns) == 2


@pytest.mark.crash  # two or three cycles for each
@pytest.mark.parametrize("job_dies", range(MOMENTS + 1))
def test_a_job_killed_at_any_request_does_nothing_twice_and_passes_no_budget(tmp_path: Path, job_dies: int) -> None:
    moments = play(tmp_path, job_dies=job_dies).moments
    assert len(moments) >= job_dies  # other threads of the dead may still have read something
    assert job_dies or len(moments) == MOMENTS


@pytest.mark.crash  # a day of scans and cycles for each
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("request_number", range(1, 7))
def test_a_gate_killed_at_any_request_does_nothing_twice_and_passes_no_budget(
    tmp_path: Path, request_number: int, applied: bool
) -> None:
    play(tmp_path, gate_dies=(request_number, applied))
