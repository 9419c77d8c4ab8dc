"""Histories of workflow runs on the fake GitHub, with the commits behind them, and what the observer says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.ci import build
from ralph_mission.config.observers import CiSettings
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.forges.github_world import GitHubWorld, github

CI, NIGHTLY, DOCS = ".github/workflows/ci.yml", ".github/workflows/nightly.yml", ".github/workflows/docs.yml"
TEXT = "on:\n  push:\n  schedule: [{cron: '3 3 * * *'}]\n  repository_dispatch:\njobs: {}\n"
STEPS = (("Set up", "success"), ("Run pytest", "failure"))
LOG = (
    b"2026-05-04T12:00:00.0000000Z ##[group]Run pip install .\n2026-05-04T12:00:00.1Z error: nothing of importance\n"
    b"2026-05-04T12:00:01.0000000Z ##[group]Run pytest\n2026-05-04T12:00:01.1Z \x1b[36;1mpytest\x1b[0m\n"
    b"2026-05-04T12:00:01.2Z ##[endgroup]\n2026-05-04T12:00:02.0Z tests/test_errors.py .F\n"
    b"2026-05-04T12:00:02.1Z E       assert 1 == 2\n2026-05-04T12:00:02.2Z FAILED tests/test_errors.py::test_sum\n"
    b"2026-05-04T12:00:03.0Z ##[error]Process completed with exit code 1.\n2026-05-04T12:00:04.0Z Cleaning up\n"
)


@dataclass
class CiWorld:
    """Every run comes an hour after the one before. `cursor` is what the observer remembers between looks."""

    hub: GitHubWorld
    cursor: str = ""
    settings: CiSettings = field(default_factory=CiSettings)
    runs: int = 0
    commits: int = 0
    cache: Path | None = None

    def push(
        self,
        conclusion: str | None = "success",
        *,
        commits: int = 1,
        path: str = CI,
        by: str = "mara",
        files: Mapping[str, bytes | None] | None = None,
        **rest: object,
    ) -> str:
        """So many commits pushed at once, and the run for the last one. Returns that commit."""
        sha = self.commit(commits, by, files)
        self.run(conclusion, "push", path, **rest)
        return sha

    def commit(self, commits: int = 1, by: str = "mara", files: Mapping[str, bytes | None] | None = None) -> str:
        """Commits without a run."""
        sha = ""
        for _ in range(commits):
            self.commits += 1
            change = files or {"src/code.py": f"{self.commits}\n".encode()}
            sha = self.hub.fake.person(by).push("main", change, message=f"Change {self.commits}")
        return sha

    def run(
        self,
        conclusion: str | None,
        event: str = "push",
        path: str = CI,
        *,
        jobs: Sequence[tuple[str, str]] = (("test", "Run pytest"),),
        id: int = 0,
        attempt: int = 1,
        **rest: object,
    ) -> int:
        """One more run for the newest commit, or (`id`) one more attempt of a run. `conclusion` None: it goes on."""
        self.hub.fake.clock.advance(3_600)
        self.runs += not id
        number = id or 1000 + self.runs
        status = "completed" if conclusion else "in_progress"
        started = self.hub.fake.clock.present()
        kept = {"head_sha": self.hub.fake.world.runs[id].head_sha} if id else {}
        self.hub.fake.workflow_run(
            number, status, conclusion, event, path=path, attempt=attempt, run_started_at=started, **kept | rest
        )
        if conclusion in ("failure", "timed_out"):
            for name, step in jobs:
                steps = (("Set up", "success"), (step, "failure"))
                self.hub.fake.workflow_job(number, name, "failure", steps, LOG, attempt=attempt)
        return number

    def again(self, run: int, conclusion: str, **rest: object) -> None:
        """Somebody has a run done once more."""
        known = self.hub.fake.world.runs[run]
        self.run(conclusion, known.event, known.path, id=run, attempt=known.attempt + 1, **rest)

    def nightly(self, conclusion: str, path: str = NIGHTLY, **rest: object) -> int:
        """A run by schedule."""
        return self.run(conclusion, "schedule", path, **rest)

    def look(self, days: float = 0) -> Observation:
        """What a cycle sees now, or in so many days."""
        forge, git = self.hub.connected(), Git.open(self.hub.clone)
        now = self.hub.fake.clock.present() + timedelta(days=days, minutes=5)
        context = ObservationContext(forge.default_branch(), now, None, self.cursor, str(self.hub.clone))
        seen = build(self.settings, forge, git, self.cache).observe(context)
        if seen.status == "ok":
            self.cursor = seen.cursor
        forge.close()
        return seen

    def red(self, days: float = 0) -> list[Signal]:
        """The broken builds among it."""
        return [signal for signal in self.look(days).signals if signal.kind == "broken-build"]


@contextmanager
def ci_world(folder: Path) -> Iterator[CiWorld]:
    """A repository whose workflows stand on the default branch."""
    with github(folder) as hub:
        hub.push("main", {path: TEXT.encode() for path in (CI, NIGHTLY, DOCS)})
        yield CiWorld(hub, cache=folder / "cache")
