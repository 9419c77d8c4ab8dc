"""What a loop needs from the world, as Protocols. Errors cross as UserError, which names who must act."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Protocol

from ralph_mission.loop.model.spec import RunResult, RunSpec
from ralph_mission.loop.model.state import (
    AgentTurn,
    CheckResult,
    Guidance,
    Hat,
    HatOutput,
    LoopEvent,
    NetChange,
    PathChange,
    Prd,
    RunSnapshot,
    RunState,
    Session,
    SessionUsage,
    StopSignal,
)
from ralph_mission.loop.model.watch import RunEvent, RunWatch
from ralph_mission.values import dataclass


class LoopClock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The present, aware, UTC."""
        ...

    def sleep(self, seconds: float, until: Callable[[], bool]) -> None:
        """Wait, at most `seconds`; leave as soon as `until` says so (asked at least twice a second)."""
        ...


class Agent(Protocol):
    """A coding agent. Each call is a fresh process without memory of the last."""

    @property
    def name(self) -> str:
        """As in `--agent`."""
        ...

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """Run one session to its end. Ends its whole process group when `stopped` says so or on an interrupt.

        Never raises for what the agent does: that is a `failure`.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionWork:
    """What a session really did since the mark, by content: committed or not, tracked or not.

    `messages` are what it said of its own commits, oldest first. `foreign` are changes that are no files' and are
    undone already.
    """

    changes: tuple[PathChange, ...] = ()
    messages: tuple[str, ...] = ()
    foreign: tuple[PathChange, ...] = ()


class Workplace(Protocol):
    """The clone that sessions work in, and the branch on which lands what was judged there."""

    def begin_session(self) -> str:
        """Make the clone ready for a session: what the branch holds, and the engine's lists. Gives the mark's name."""
        ...

    def changed(self, mark: str) -> SessionWork:
        """What differs from the mark. It is stored as it was seen: what is written there later changes nothing."""
        ...

    def undo(self, mark: str, paths: Sequence[str]) -> None:
        """Put `paths` back as they were at the mark; of a file that was moved, the old one too."""
        ...

    def since(self, mark: str) -> NetChange:
        """What stands now, landed or judged, that this or an earlier mark did not have."""
        ...

    def verify(self) -> CheckResult:
        """Run the project's own checks on what was judged; what they change is put back."""
        ...

    def land(self, message: str, lists: bool, announce: Callable[[str], None] = lambda _: None) -> str:
        """Bring what was judged to the branch as one commit; gives its id, "" when there is nothing.

        `lists`: the engine's lists are part of it. `announce` is told the commit before the branch moves (where it
        stands, when there is nothing). Raises UserError when something in the checkout stands in the way.
        """
        ...

    def landed(self, commit: str) -> bool:
        """Whether the branch has this commit behind it; False when nobody can tell."""
        ...

    def set_aside(self, mark: str) -> tuple[PathChange, ...]:
        """Put what a session that died left where a person finds it; the files are as the branch has them."""
        ...


class RunStore(Protocol):
    """The files a loop lives by. What is written is on disk, whole or not at all, when a call returns."""

    @property
    def run_dir(self) -> str:
        """Where this run's files are."""
        ...

    def exclusive(self, spec: RunSpec) -> AbstractContextManager[None]:
        """Held while a loop runs in this checkout. Raises UserError when another one of any mode does."""
        ...

    def resumed(self, spec: RunSpec) -> RunState | None:
        """The state a run of the same spec left, when it is to be continued; None starts a new one."""
        ...

    def open(self, spec: RunSpec, now: datetime) -> RunState:
        """A new run: what the previous one left is archived."""
        ...

    def snapshot(self) -> RunSnapshot:
        """Everything a session may know. What cannot be read is as it last could be, with a complaint."""
        ...

    def signal(self) -> StopSignal:
        """What a person asks of the running loop."""
        ...

    def heard(self) -> bool:
        """Whether a person has said something (a signal, guidance) that nobody has dealt with."""
        ...

    def look(self) -> str:
        """What people and other programs may have changed (files, issues): equal texts, nothing new. Asks no model."""
        ...

    def said(self) -> tuple[LoopEvent, ...]:
        """The events agents said through files since the last call, oldest first."""
        ...

    def record(self, event: LoopEvent) -> None:
        """Append one to the event log."""
        ...

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """These were given to a session: not given again."""
        ...

    def brief(self, prompt: str) -> None:
        """Keep the prompt of the session that is about to start."""
        ...

    def stories(self, prd: Prd) -> None:
        """Write which stories pass, where the file was found, leaving the rest of it as it is."""
        ...

    def judged(self, commit: str) -> None:
        """What stands in the stories now was checked; once HEAD has this commit behind it, no kill takes it back."""
        ...

    def note(self, entry: str) -> None:
        """Append to progress.txt what an iteration did or failed at; a log that was cut short is made whole first."""
        ...

    def restore(self) -> tuple[PathChange, ...]:
        """Put back what a session may not take away: our own files, the log's past. Gives what was fixed."""
        ...

    def keep(self, state: RunState, output: HatOutput | None) -> None:
        """The state between two sessions and the handoff of it. With a mark in it: the session begins."""
        ...

    def put_back(self, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        """The stories and their log as when the session began that died: what it claimed nobody has checked.

        As they were judged where the commit of what was judged has `landed`.
        """
        ...

    def close(self, account: RunResult) -> None:
        """The run is over, nobody else works here yet; a cancelled one is not continued."""
        ...

    def tidy(self) -> None:
        """Between two issues of a persistent loop: scratchpad cleared, tasks archived; those that are open stay."""
        ...


class RunProgress(Protocol):
    """Tells a person what happens, and whoever watches."""

    @property
    def watch(self) -> RunWatch:
        """Who watches from elsewhere."""
        ...

    def agent(self, session: Session, event: RunEvent) -> None:
        """The agent of `session` said or did something just now."""
        ...

    def note(self, text: str) -> None:
        """A line of its own."""
        ...

    def began(self, spec: RunSpec, state: RunState) -> None:
        """A run starts, or goes on."""
        ...

    def session(self, spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> None:
        """A session is about to start."""
        ...

    def output(self, spec: RunSpec, state: RunState, output: HatOutput) -> None:
        """A session is over."""
        ...

    def waiting(self, seconds: float, why: str) -> None:
        """Nothing happens for a while."""
        ...

    def held(self, since: datetime | None) -> None:
        """A person has paused the run; None: it goes on."""
        ...

    def ended(self, spec: RunSpec, account: RunResult) -> None:
        """The run is over."""
        ...


@dataclass(frozen=True, slots=True)
class RunPorts:
    """Everything that is not a value."""

    agent: Agent
    workplace: Workplace
    store: RunStore
    clock: LoopClock
    progress: RunProgress
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Known values that no session is told, whatever wrote them into what it is told."""


class ArtifactStore(Protocol):
    """Files below `.ralph/` that a story keeps for people, for sessions and for itself, by name."""

    def read(self, name: str) -> str:
        """What stands there, "" when there is none."""
        ...

    def write(self, name: str, text: str) -> None:
        """Put `text` there, whole or not at all."""
        ...


@dataclass(frozen=True, slots=True)
class ParallelSession:
    """One session that is played apart, in a clone of its own which starts from the last commit here.

    `papers` are laid below its `.ralph/` before it, and read again after it. `name` is unique among jobs of a call.
    """

    name: str
    spec: RunSpec
    state: RunState
    snapshot: RunSnapshot
    hat: Hat
    artifacts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParallelResult:
    """What came of a job. `output` None: it was not started. With `conflicts` nothing of it was taken over."""

    name: str
    output: HatOutput | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)
    conflicts: tuple[PathChange, ...] = ()


class SessionPool(Protocol):
    """Plays several sessions at the same time, none of which sees another one's work."""

    def together(
        self, jobs: Sequence[ParallelSession], may_start: Callable[[SessionUsage], bool]
    ) -> tuple[ParallelResult, ...]:
        """Play `jobs`, and take over what each changed and committed or not, in their order: one `ParallelResult` for
        each.

        A job whose changes meet an earlier one's, or what stands uncommitted here, is left out as a whole; so is one
        that failed, which harms no other. Before each start `may_start` is asked with what the finished ones took.
        Raises UserError when the checkout cannot be copied. An interrupt ends every session, then passes through.
        """
        ...
