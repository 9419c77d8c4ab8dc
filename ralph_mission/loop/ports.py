"""What a loop needs from the world, as Protocols. Errors cross as UserError, which names who must act."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Protocol

from ralph_mission.loop.model.spec import RunEvent, RunResult, RunSpec, RunWatch
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
from ralph_mission.values import dataclass


class LoopClock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The present, aware, UTC."""

    def sleep(self, seconds: float, until: Callable[[], bool]) -> None:
        """Wait at most `seconds`, or until `until` is true (checked at least twice a second)."""


class Agent(Protocol):
    """A coding agent. Each call is a fresh process without memory."""

    @property
    def name(self) -> str:
        """The name, as in `--agent`."""

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """Run a session. Ends its whole process group if `stopped` says so, or on an interrupt.

        Never raises for what the agent does: that is a `failure`.
        """


@dataclass(frozen=True, slots=True)
class SessionWork:
    """What a session changed since the mark, by content: committed or not, tracked or not.

    `messages`: its commit messages, oldest first. `foreign`: changes outside of files, already undone.
    """

    changes: tuple[PathChange, ...] = ()
    messages: tuple[str, ...] = ()
    foreign: tuple[PathChange, ...] = ()


class Workplace(Protocol):
    """The clone that sessions work in, and the branch that judged changes land on."""

    def begin_session(self) -> str:
        """Prepare the clone for a session: the branch's files, and the engine's lists. Returns the mark's name."""

    def changed(self, mark: str) -> SessionWork:
        """The differences from the mark, stored as they are read, so that later writes do not matter."""

    def undo(self, mark: str, paths: Sequence[str]) -> None:
        """Restore `paths` to the mark; for a moved file, the old one too."""

    def since(self, mark: str) -> NetChange:
        """The net change, landed or judged, since this or an earlier mark."""

    def verify(self) -> CheckResult:
        """Run the project's own checks on the judged state; what they change is undone."""

    def land(self, message: str, lists: bool, announce: Callable[[str], None] = lambda _: None) -> str:
        """Land the judged change on the branch as one commit; returns its id, or "" if there is nothing.

        `lists`: include the engine's lists. `announce` is called with the commit before the branch moves (with the
        current one if there is nothing). Raises UserError if something in the checkout is in the way.
        """

    def landed(self, commit: str) -> bool:
        """Whether the branch contains this commit; False if unknown."""

    def set_aside(self, mark: str) -> tuple[PathChange, ...]:
        """Save a dead session's work where a person finds it, and reset the files to the branch."""


class RunStore(Protocol):
    """The files of a loop. Every write is atomic and on disk when a call returns."""

    @property
    def run_dir(self) -> str:
        """The folder of this run's files."""

    def exclusive(self, spec: RunSpec) -> AbstractContextManager[None]:
        """A lock held while a loop runs in this checkout. Raises UserError if another loop holds it."""

    def resumed(self, spec: RunSpec) -> RunState | None:
        """The state of an earlier run of the same spec to continue, or None to start a new one."""

    def open(self, spec: RunSpec, now: datetime) -> RunState:
        """Start a new run; the previous one's files are archived."""

    def snapshot(self) -> RunSnapshot:
        """Everything a session may know. An unreadable file counts as last read, with a complaint."""

    def signal(self) -> StopSignal:
        """A person's request to the running loop."""

    def heard(self) -> bool:
        """Whether there is an unhandled signal or guidance."""

    def look(self) -> str:
        """A digest of what people and other programs may have changed (files, issues). Calls no model."""

    def read_events(self) -> tuple[LoopEvent, ...]:
        """The events agents emitted through files since the last call, oldest first."""

    def record(self, event: LoopEvent) -> None:
        """Append an event to the log."""

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """Mark guidance as given to a session."""

    def brief(self, prompt: str) -> None:
        """Store the prompt of the session that is about to start."""

    def stories(self, prd: Prd) -> None:
        """Write which stories pass, leaving the rest of the file as it is."""

    def judged(self, commit: str) -> None:
        """Record that the current stories were checked; once HEAD contains this commit, a kill cannot undo it."""

    def note(self, entry: str) -> None:
        """Append an iteration's result to progress.txt, repairing a truncated log first."""

    def restore(self) -> tuple[PathChange, ...]:
        """Restore what a session must not change: our own files, the log's past. Returns what was restored."""

    def keep(self, state: RunState, output: HatOutput | None) -> None:
        """Store the state and the handoff between sessions. With a mark: a session begins."""

    def put_back(self, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        """Restore stories and log to the start of the session that died, as its claims were not checked.

        If its judged commit has `landed`, restore them as judged.
        """

    def close(self, account: RunResult) -> None:
        """End the run; a cancelled one cannot be continued."""

    def tidy(self) -> None:
        """Between issues of a persistent loop: clear the scratchpad, archive finished tasks."""


class RunProgress(Protocol):
    """Shows progress to a person, and to whoever watches."""

    @property
    def watch(self) -> RunWatch:
        """The live record that others watch."""

    def agent(self, session: Session, event: RunEvent) -> None:
        """The agent of `session` wrote or did something."""

    def note(self, text: str) -> None:
        """Show a line."""

    def began(self, spec: RunSpec, state: RunState) -> None:
        """A run starts or continues."""

    def session(self, spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> None:
        """A session is about to start."""

    def output(self, spec: RunSpec, state: RunState, output: HatOutput) -> None:
        """A session is over."""

    def waiting(self, seconds: float, why: str) -> None:
        """The loop waits."""

    def paused(self, since: datetime | None) -> None:
        """A person paused the run; None: it continues."""

    def ended(self, spec: RunSpec, account: RunResult) -> None:
        """The run is over."""


@dataclass(frozen=True, slots=True)
class RunPorts:
    """Everything that is not a value."""

    agent: Agent
    workplace: Workplace
    store: RunStore
    clock: LoopClock
    progress: RunProgress
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Known secret values that are redacted in everything a session gets."""


class ArtifactStore(Protocol):
    """Files below `.ralph/` that a team keeps for people, for sessions and for itself, by name."""

    def read(self, name: str) -> str:
        """The file's text, or ""."""

    def write(self, name: str, text: str) -> None:
        """Write `text` atomically."""


@dataclass(frozen=True, slots=True)
class ParallelSession:
    """A parallel session, in its own clone of the last commit.

    `artifacts` are written below its `.ralph/` before it, and read after it. `name` is unique within a call.
    """

    name: str
    spec: RunSpec
    state: RunState
    snapshot: RunSnapshot
    hat: Hat
    artifacts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParallelResult:
    """The result of a job. `output` None: not started. With `conflicts`, nothing of it was taken over."""

    name: str
    output: HatOutput | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)
    conflicts: tuple[PathChange, ...] = ()


class SessionPool(Protocol):
    """Runs several sessions at once, isolated from each other."""

    def together(
        self, jobs: Sequence[ParallelSession], may_start: Callable[[SessionUsage], bool]
    ) -> tuple[ParallelResult, ...]:
        """Run `jobs`, and take over each one's changes, committed or not, in order: one `ParallelResult` for each.

        A job that conflicts with an earlier one, or with uncommitted changes here, is left out entirely; so is a failed
        one. Before each start `may_start` is called with the cost of finished ones. Raises UserError if the checkout
        cannot be copied. An interrupt ends every session, then passes through.
        """
