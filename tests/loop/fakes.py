"""The loop's ports in memory. They refuse what the real ones could not have been asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import UNWATCHED, RunEvent, RunResult, RunSpec, RunWatch
from ralph_mission.loop.model.state import (
    OPEN,
    AgentTurn,
    CheckoutState,
    CheckResult,
    Guidance,
    HatOutput,
    LoopEvent,
    LoopTask,
    NetChange,
    PathChange,
    Prd,
    RunPaths,
    RunSnapshot,
    RunState,
    Session,
    SessionCommit,
    StopSignal,
)
from ralph_mission.loop.ports import RunPorts, SessionWork

START_OF_TIME = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Played = AgentTurn | BaseException | Callable[[Session], AgentTurn | None]
"""A turn; what an interrupt raises; or what the agent does to the other fakes before it answers (None: nothing)."""


class FakeClock:
    """Time stands still; a sleep jumps, unless what it waits for is there already."""

    def __init__(self, now: datetime = START_OF_TIME) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    def pass_by(self, seconds: float) -> None:
        """What an agent does that takes long."""
        self.time += timedelta(seconds=seconds)

    def sleep(self, seconds: float, until: Callable[[], bool]) -> None:
        assert seconds >= 0, f"cannot sleep {seconds} s"
        self.slept.append(seconds)
        if not until():
            self.pass_by(seconds)


class PlannedAgent:
    """Plays the turns it was given, in order. More sessions than that are refused, unless the last is for ever."""

    name = "planned"

    def __init__(self, *turns: Played, forever: bool = False) -> None:
        self.turns, self.forever = list(turns), forever
        self.sessions: list[Session] = []
        self.stopped: list[bool] = []

    @property
    def hats(self) -> list[str]:
        """Who was called, in order."""
        return [session.hat.name for session in self.sessions]

    @property
    def prompts(self) -> list[str]:
        """What each was told."""
        return [session.prompt for session in self.sessions]

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        self.sessions.append(session)
        self.stopped.append(stopped())
        number = len(self.sessions)
        assert self.forever or number <= len(self.turns), f"session {number} ({session.hat.name}) was not planned"
        turn = self.turns[min(number, len(self.turns)) - 1]
        if isinstance(turn, BaseException):
            raise turn
        return turn if isinstance(turn, AgentTurn) else (turn(session) or AgentTurn())


class FakeWorkplace:
    """A checkout as two mappings: the files, and the files of the last commit."""

    def __init__(self, files: dict[str, str] | None = None, *checks: CheckResult) -> None:
        self.files = dict(files or {})
        self.head = dict(self.files)
        self.history: list[SessionCommit] = []
        self.checks = list(checks)
        self.verified = 0
        self.foreign: tuple[PathChange, ...] = ()
        self.messages: tuple[str, ...] = ()
        self.aside: dict[str, str] = {}
        self._marks: dict[str, tuple[dict[str, str], int]] = {}

    def write(self, path: str, text: str = "new") -> None:
        """What a session does to a file."""
        self.files[path] = text

    def delete(self, path: str) -> None:
        """What a session does to a file; it has to be there."""
        del self.files[path]

    def begin_session(self) -> str:
        name = f"mark-{len(self._marks) + 1}"
        self._marks[name] = (dict(self.files), len(self.history))
        return name

    def changed(self, mark: str) -> SessionWork:
        before, _ = self._at(mark)
        foreign, self.foreign = self.foreign, ()
        return SessionWork(_changes(before, self.files), self.messages, foreign)

    def since(self, mark: str) -> NetChange:
        before, _ = self._at(mark)
        paths = tuple(change.path for change in _changes(before, self.files))
        return NetChange(paths, tuple(path for path in paths if "test" in path and path in self.files))

    def undo(self, mark: str, paths: Sequence[str]) -> None:
        before, _ = self._at(mark)
        for path in paths:
            assert self.files.get(path) != before.get(path), f"{path} has not changed since {mark}"
            for files in (self.files, self.head):
                _put(files, path, before.get(path))

    def verify(self) -> CheckResult:
        """The next of the checks; the last of them for ever; without any nothing has run."""
        self.verified += 1
        return self.checks[min(self.verified, len(self.checks)) - 1] if self.checks else CheckResult()

    def landed(self, commit: str) -> bool:
        return any(made.hash == commit for made in self.history)

    def land(self, message: str, lists: bool, announce: Callable[[str], None] = lambda _: None) -> str:
        if self.files == self.head:
            return ""
        self.head = dict(self.files)
        made = SessionCommit(f"{len(self.history) + 1:07x}", message)
        announce(made.hash)
        self.history.append(made)
        return made.hash

    def set_aside(self, mark: str) -> tuple[PathChange, ...]:
        self._at(mark)
        left = _changes(self.head, self.files)
        self.aside |= {change.path: self.files.get(change.path, "") for change in left}
        self.files = dict(self.head)
        return tuple(replace(change, reverted="kept aside") for change in left)

    def remember(self, mark: str) -> str:
        """A mark that an earlier process made."""
        self._marks[mark] = (dict(self.files), len(self.history))
        return mark

    def _at(self, mark: str) -> tuple[dict[str, str], int]:
        assert mark in self._marks, f"no such mark: {mark!r}"
        return self._marks[mark]


def _changes(before: dict[str, str], after: dict[str, str]) -> tuple[PathChange, ...]:
    how = {
        path: "added" if path not in before else "deleted" if path not in after else "modified"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }
    return tuple(PathChange(path, word) for path, word in how.items())


def _put(files: dict[str, str], path: str, content: str | None) -> None:
    if content is None:
        files.pop(path, None)
    else:
        files[path] = content


@dataclass
class FakeStore:
    """The files a loop lives by, as attributes. Nothing but `exclusive` may be asked of it before it is held."""

    prd: Prd | None = None
    tasks: tuple[LoopTask, ...] = ()
    memories: str = ""
    tree: CheckoutState = field(default_factory=CheckoutState)
    words: list[Guidance] = field(default_factory=list)
    asked: StopSignal = ""
    left: RunState | None = None
    taken: bool = False
    saying: list[LoopEvent] = field(default_factory=list)
    mended: tuple[PathChange, ...] = ()
    run_dir: str = "/shop/.ralph/loop"
    held: bool = False
    prompts: list[str] = field(default_factory=list)
    events: list[LoopEvent] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    kept: list[tuple[RunState, HatOutput | None]] = field(default_factory=list)
    tidied: int = 0
    news: Callable[[], str] = str
    looks: int = 0
    given: list[Guidance] = field(default_factory=list)
    claimed: tuple[PathChange, ...] = ()
    closed: RunResult | None = None
    paths: RunPaths = field(default_factory=RunPaths)

    @contextmanager
    def exclusive(self, spec: RunSpec) -> Iterator[None]:
        if self.taken:
            raise UserError("another loop runs in this checkout", "wait for it, or: ralph agent cancel")
        self.held = True
        try:
            yield
        finally:
            self.held = False

    def resumed(self, spec: RunSpec) -> RunState | None:
        self._needs_hold()
        return self.left

    def open(self, spec: RunSpec, now: datetime) -> RunState:
        self._needs_hold()
        assert self.left is None, "a run that is to be continued is not opened anew"
        return RunState("run-1", spec.objective, now)

    def snapshot(self) -> RunSnapshot:
        self._needs_hold()
        return RunSnapshot(self.prd, self.tasks, self.memories, guidance=tuple(self.words), tree=self.tree,
                     paths=self.paths)  # fmt: skip  # one value

    def signal(self) -> StopSignal:
        return self.asked

    def look(self) -> str:
        self.looks += 1
        return f"{self.news()} {self.tasks}"

    def heard(self) -> bool:
        return bool(self.asked or self.words)

    def read_events(self) -> tuple[LoopEvent, ...]:
        self._needs_hold()
        said, self.saying = tuple(self.saying), []
        return said

    def record(self, event: LoopEvent) -> None:
        self._needs_hold()
        assert event.at is not None, f"{event.topic} has no time"
        self.events.append(event)

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        for word in guidance:
            assert word in self.words, f"nobody said {word.id}"
            self.words.remove(word)
            self.given.append(word)

    def brief(self, prompt: str) -> None:
        self._needs_hold()
        self.prompts.append(prompt)

    def stories(self, prd: Prd) -> None:
        self._needs_hold()
        self.prd = prd

    def judged(self, commit: str) -> None:
        self._needs_hold()

    def note(self, entry: str) -> None:
        self._needs_hold()
        assert entry.strip(), "nothing is noted"
        self.entries.append(entry)

    def restore(self) -> tuple[PathChange, ...]:
        self._needs_hold()
        mended, self.mended = self.mended, ()
        return mended

    def keep(self, state: RunState, output: HatOutput | None) -> None:
        self._needs_hold()
        assert output is None or output.iteration == state.iteration, "a record of another session"
        self.kept.append((state, output))

    def put_back(self, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        self._needs_hold()
        return self.claimed

    def close(self, account: RunResult) -> None:
        self._needs_hold()
        assert self.closed is None, "a run ends once"
        self.closed = account

    def tidy(self) -> None:
        self._needs_hold()
        self.tidied += 1
        self.tasks = self.tasks if any(task.status in OPEN for task in self.tasks) else ()

    def passes(self, *names: str) -> None:
        """What a session writes into prd.json: these stories pass."""
        assert self.prd is not None, "there are no stories"
        known = {story.id for story in self.prd.stories}
        assert known.issuperset(names), f"no such story: {set(names) - known}"
        flipped = tuple(replace(story, passes=story.passes or story.id in names) for story in self.prd.stories)
        self.prd = replace(self.prd, stories=flipped)

    def _needs_hold(self) -> None:
        assert self.held, "nobody holds this checkout"


@dataclass
class FakeProgress:
    """Records what a person is told."""

    told: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    account: RunResult | None = None
    watch: RunWatch = UNWATCHED

    def agent(self, session: Session, event: RunEvent) -> None:
        self.told.append(f"agent {event.text}")

    def paused(self, since: datetime | None) -> None:
        self.told.append("paused" if since else "resumed")

    def note(self, text: str) -> None:
        self.notes.append(text)

    def began(self, spec: RunSpec, state: RunState) -> None:
        self.told.append(f"began {state.iteration}")

    def session(self, spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> None:
        self.told.append(f"session {state.iteration + 1} {hat}".rstrip())

    def output(self, spec: RunSpec, state: RunState, output: HatOutput) -> None:
        self.told.append(f"output {output.iteration} {output.hat}")

    def waiting(self, seconds: float, why: str) -> None:
        self.waits.append(seconds)

    def ended(self, spec: RunSpec, account: RunResult) -> None:
        assert self.account is None, "a run ends once"
        self.account = account
        self.told.append(f"ended {account.ending.reason}")


@dataclass
class FakeWorld:
    """All five, and what `run` takes."""

    agent: PlannedAgent
    workplace: FakeWorkplace = field(default_factory=FakeWorkplace)
    store: FakeStore = field(default_factory=FakeStore)
    clock: FakeClock = field(default_factory=FakeClock)
    progress: FakeProgress = field(default_factory=FakeProgress)

    @property
    def ports(self) -> RunPorts:
        return RunPorts(self.agent, self.workplace, self.store, self.clock, self.progress)
