"""A cast for stories of several hats: who plays what, and a crew that plays apart in memory, one after another."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ralph_mission.loop import session as playing
from ralph_mission.loop.model.spec import LoopPreset, RunLimits, RunSpec
from ralph_mission.loop.model.state import (
    AgentTurn,
    Guidance,
    HatOutput,
    PathChange,
    Session,
    SessionCommit,
    SessionUsage,
)
from ralph_mission.loop.ports import ParallelResult, ParallelSession, RunPorts
from tests.loop.fakes import FakeClock, FakeProgress, FakeStore, FakeWorkplace

Scene = Callable[[Session, FakeWorkplace, dict[str, str]], AgentTurn | None]
"""What somebody does in one session: to the files, to the papers; what it says."""


def says(
    topic: str,
    payload: object = "",
    writes: Mapping[str, str] | None = None,
    plan: str = "",
    usd: float | None = None,
    failure: str = "",
    text: str = "",
) -> Scene:
    """A session that writes files and perhaps a plan, and ends with one event (none when the topic is "")."""
    said = payload if isinstance(payload, str) else json.dumps(payload)

    def scene(session: Session, workplace: FakeWorkplace, artifacts: dict[str, str]) -> AgentTurn:
        for path, content in (writes or {}).items():
            workplace.write(path, content)
        if plan:
            artifacts["plan.md"] = plan
        words = f'{text}<event topic="{topic}">{said}</event>' if topic else text
        return AgentTurn(words, failure, "it crashed" if failure else "", usage=SessionUsage(1, 1, 1, usd))

    return scene


CRASH = says("", failure="exit")


class Cast:
    """Who plays what. A name is a job's or a hat's; its scenes go in order and no further."""

    name = "cast"

    def __init__(self, **scenes: Sequence[Scene]) -> None:
        self.scenes = {name.replace("_", "-"): list(given) for name, given in scenes.items()}
        self.sessions: list[Session] = []
        self.names: list[str] = []

    def played(self, name: str, session: Session, workplace: FakeWorkplace, artifacts: dict[str, str]) -> AgentTurn:
        key = name if name in self.scenes else session.hat.name
        assert self.scenes.get(key), f"{key} has no scene left in session {session.iteration}"
        self.sessions.append(session)
        self.names.append(key)
        return self.scenes[key].pop(0)(session, workplace, artifacts) or AgentTurn()

    def of(self, key: str) -> list[Session]:
        """The sessions of one name."""
        return [session for name, session in zip(self.names, self.sessions, strict=True) if name == key]


@dataclass
class Player:
    """One member of the cast in one place."""

    cast: Cast
    workplace: FakeWorkplace
    artifacts: dict[str, str]
    job: str = ""
    name: str = "cast"

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        assert not stopped(), "nobody starts what is to stop"
        return self.cast.played(self.job, session, self.workplace, self.artifacts)


class StoreWithoutGuidance(FakeStore):
    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """The run's own desk does."""


@dataclass
class World:
    """A run's ports, its papers and its crew."""

    cast: Cast
    workplace: FakeWorkplace = field(default_factory=lambda: FakeWorkplace({"README": "r"}))
    store: FakeStore = field(default_factory=FakeStore)
    clock: FakeClock = field(default_factory=FakeClock)
    progress: FakeProgress = field(default_factory=FakeProgress)
    pages: dict[str, str] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)

    @property
    def ports(self) -> RunPorts:
        return RunPorts(
            Player(self.cast, self.workplace, self.pages), self.workplace, self.store, self.clock, self.progress
        )

    def read(self, name: str) -> str:
        return self.pages.get(name, "")

    def write(self, name: str, text: str) -> None:
        self.pages[name] = text

    # --- the crew --------------------------------------------------------------------

    def together(
        self, jobs: Sequence[ParallelSession], may_start: Callable[[SessionUsage], bool]
    ) -> tuple[ParallelResult, ...]:
        assert jobs and len({job.name for job in jobs}) == len(jobs)
        self.batches.append([job.name for job in jobs])
        base, taken = dict(self.workplace.files), dict[str, str]()
        used, dones = SessionUsage(), list[ParallelResult]()
        played = []
        for job in jobs:
            if not may_start(used):
                played.append((ParallelResult(job.name), base))
                continue
            done, files = self._apart(job, base)
            assert done.output is not None
            used = used + done.output.usage
            played.append((done, files))
        for done, files in played:
            dones.append(self._merged(done, base, files, taken))
        return tuple(dones)

    def _apart(self, job: ParallelSession, base: dict[str, str]) -> tuple[ParallelResult, dict[str, str]]:
        place, artifacts = FakeWorkplace(base), dict(job.artifacts)
        store = StoreWithoutGuidance(asked=self.store.asked)
        ports = replace(self.ports, agent=Player(self.cast, place, artifacts, job.name), workplace=place, store=store)
        with store.exclusive(job.spec):
            output = playing.play_session(job.spec, job.state, job.snapshot, job.hat, ports)
        return ParallelResult(job.name, output, {name: artifacts[name] for name in job.artifacts}), place.files

    def _merged(
        self, done: ParallelResult, base: dict[str, str], files: dict[str, str], taken: dict[str, str]
    ) -> ParallelResult:
        if done.output is None or done.output.failure:
            return done
        paths = sorted(path for path in base.keys() | files.keys() if base.get(path) != files.get(path))
        if met := [path for path in paths if path in taken]:
            return replace(
                done, conflicts=tuple(PathChange(path, "conflict", f"{taken[path]} had it first") for path in met)
            )
        for path in paths:
            taken[path] = done.name
            if path in files:
                self.workplace.files[path] = self.workplace.head[path] = files[path]
            else:
                self.workplace.files.pop(path)
        if paths:
            self.workplace.history.append(SessionCommit(f"{len(self.workplace.history) + 1:07x}", done.name))
        return done


def spec(**limits: object) -> RunSpec:
    return RunSpec("Build the shop.", LoopPreset("hats", RunLimits(**limits)))  # type: ignore[arg-type]  # fields of Limits


def played(outputs: Sequence[HatOutput]) -> list[str]:
    """Who played, in order."""
    return [output.hat for output in outputs]
