"""The values a loop works with, frozen. Times are aware UTC, durations seconds, money USD."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple

from ralph_mission.values import dataclass

TaskStatus = Literal["pending", "ready", "active", "done", "failed"]


class LoopTask(NamedTuple):
    """A unit of work with prerequisites. `ready`: all of `needs` are done."""

    id: str
    title: str
    status: TaskStatus = "pending"
    needs: tuple[str, ...] = ()
    owner: str = ""
    priority: int = 3
    description: str = ""


Severity = Literal["critical", "major", "minor"]
StopSignal = Literal["", "stop", "cancel", "restart"]


@dataclass(frozen=True, slots=True)
class ReviewIssue:
    """An issue a reviewer found. Without a severity it counts as critical."""

    message: str
    file: str = ""
    line: int = 0
    kind: str = ""
    severity: Severity = "critical"


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """An event that routes to the next hat. `hat` emitted it in `iteration`; the engine's own have hat ""."""

    topic: str
    payload: str = ""
    issues: tuple[ReviewIssue, ...] = ()
    hat: str = ""
    iteration: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Guidance:
    """A person's guidance for the next session: given once, then acknowledged."""

    id: str
    text: str
    at: datetime


Failure = Literal["", "exit", "timeout", "rate_limit", "server", "auth", "missing", "event"]
"""Why a turn failed: exit code, our time limit, the provider's limit or fault, an unknown key, no such program, not
exactly one event."""
OPEN: frozenset[TaskStatus] = frozenset({"pending", "ready", "active"})

START, RESUME, CONVERGED = "loop.start", "task.resume", "loop.converged"
VERDICT, VERIFICATION_FAILED, PLANNED = "review.verdict", "verification.failed", "plan.complete"


@dataclass(frozen=True, slots=True)
class Hat:
    """The role of a session: what triggers it, what it may emit and write, its instructions.

    `triggers` are topics (`build.*` matches what starts with `build.`). `write_allowed`: None is everywhere, empty is
    nowhere; both are globs, and denials win. `default_publishes`: emitted for a session that emits nothing. Without a
    model or an `agent` the run's is used. `no_agent_settings`: it must not write agent configuration.
    """

    name: str
    triggers: tuple[str, ...] = ()
    publishes: tuple[str, ...] = ()
    default_publishes: str = ""
    description: str = ""
    instructions: str = ""
    write_allowed: tuple[str, ...] | None = None
    write_denied: tuple[str, ...] = ()
    tools_denied: tuple[str, ...] = ()
    commands_denied: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    model: str = ""
    max_tokens: int = 0
    payload: tuple[str, ...] = ()
    no_agent_settings: bool = False
    agent: str = ""


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """What sessions used. `cost_usd` is None if unknown; otherwise it excludes `unpriced` sessions.

    `turns`: answers of the model, as far as agents report them.
    """

    sessions: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    unpriced: int = 0
    turns: int = 0

    @property
    def untold(self) -> int:
        """Sessions without a reported cost; with any, the known cost is a lower bound."""
        return self.sessions if self.cost_usd is None else self.unpriced

    def __add__(self, other: SessionUsage) -> SessionUsage:
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return SessionUsage(
            self.sessions + other.sessions,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(known) if known else None,
            self.seconds + other.seconds,
            self.untold + other.untold if known else 0,
            self.turns + other.turns,
        )


@dataclass(frozen=True, slots=True)
class UserStory:
    """A user story; the lowest priority number goes first. `needs`: stories that have to pass before."""

    id: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: int = 0
    passes: bool = False
    notes: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prd:
    """The stories of a project, in the file's order."""

    project: str = ""
    branch: str = ""
    description: str = ""
    stories: tuple[UserStory, ...] = ()

    @property
    def todo(self) -> tuple[UserStory, ...]:
        """The stories that do not pass yet: lowest priority number first, ties as in the file."""
        return tuple(sorted((story for story in self.stories if not story.passes), key=lambda story: story.priority))

    @property
    def ready(self) -> tuple[UserStory, ...]:
        """Those of `todo` that wait for none of it; all of it where they only wait for each other."""
        todo = self.todo
        open_ids = {story.id for story in todo}
        return tuple(story for story in todo if open_ids.isdisjoint({*story.needs} - {story.id})) or todo


@dataclass(frozen=True, slots=True)
class ProgressNotes:
    """The content of `progress.txt`: patterns, learnings (oldest first), the last passed story."""

    patterns: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    last_completed: str = ""


@dataclass(frozen=True, slots=True)
class SessionCommit:
    """A commit in the history."""

    hash: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """The state of the checkout; `commits`: newest first, at most five. `readable` False: git did not answer."""

    branch: str = ""
    head: str = ""
    commits: tuple[SessionCommit, ...] = ()
    dirty: bool = False
    readable: bool = True


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The paths of the stories and their log, relative to the work tree, or absolute if outside."""

    prd: str = "prd.json"
    progress: str = "progress.txt"

    @property
    def engine_files(self) -> tuple[str, ...]:
        """All files of the engine: judged by content, not by a hat's globs."""
        beside = f"{self.progress.removesuffix('progress.txt')}.last-branch"
        return self.prd, self.progress, beside


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """Everything a session may know, read right before it. `prd` None: no stories."""

    prd: Prd | None = None
    tasks: tuple[LoopTask, ...] = ()
    memories: str = ""
    scratchpad: str = ""
    guidance: tuple[Guidance, ...] = ()
    notes: ProgressNotes = ProgressNotes()
    tree: CheckoutState = CheckoutState()
    complaints: tuple[str, ...] = ()
    paths: RunPaths = RunPaths()

    @property
    def open_tasks(self) -> tuple[LoopTask, ...]:
        """The tasks that keep a loop running."""
        return tuple(task for task in self.tasks if task.status in OPEN)


@dataclass(frozen=True, slots=True)
class Session:
    """Everything a session gets. `seconds`, `turns` and `usd` (None: no limit) end it.

    `schema`: a JSON Schema for its last message, if the agent supports one.
    """

    hat: Hat
    iteration: int
    prompt: str
    run_dir: str
    model: str = ""
    seconds: float = 2700.0
    turns: int = 100
    usd: float | None = None
    schema: str = ""


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """The result of a session: its last message, how it ended, its usage. `retry_after`: seconds, 0 if unknown.

    `refused`: blocked commands, with reasons. `calls`: tool calls, refused or not, as its program reports them.
    `left_running`: processes it left, which were ended. `agent`: the agent that ran.
    """

    text: str = ""
    failure: Failure = ""
    detail: str = ""
    retry_after: float = 0.0
    usage: SessionUsage = SessionUsage(sessions=1)
    refused: tuple[str, ...] = ()
    agent: str = ""
    calls: tuple[str, ...] = ()
    left_running: tuple[str, ...] = ()

    def after(self, before: AgentTurn) -> AgentTurn:
        """Add the calls and refusals of an earlier attempt of the session."""
        return replace(
            self,
            refused=tuple(dict.fromkeys((*before.refused, *self.refused))),
            calls=(*before.calls, *self.calls),
            left_running=(*before.left_running, *self.left_running),
        )


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path that a session changed, and how; a reverted one is as before."""

    path: str
    how: str
    reverted: str = ""


@dataclass(frozen=True, slots=True)
class NetChange:
    """The paths that differ between two moments, and those with added or changed tests."""

    paths: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the project's own checks. Without checks nothing was proven: `ran` is False.

    `undone`: changes that checks made, now undone. `standing`: checks that fail as they did before the run, and do not
    count.
    """

    green: bool = True
    ran: bool = False
    said: str = ""
    undone: tuple[PathChange, ...] = ()
    standing: tuple[str, ...] = ()

    @property
    def failing(self) -> str:
        """Which check fails and why, in one line."""
        return self.said.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class HatOutput:
    """The record of a session: its hat, its event, what really changed, what was undone and why.

    `mark`: its starting point. `changed`: whether any file differs from the start of the run. `built`: stories it did
    besides the one that passes, which may pass next. `refused`, `calls`, `left_running`: as in `AgentTurn`.
    """

    hat: str
    iteration: int
    event: LoopEvent | None = None
    summary: str = ""
    changes: tuple[PathChange, ...] = ()
    commits: tuple[SessionCommit, ...] = ()
    passed: tuple[str, ...] = ()
    verification: CheckResult = CheckResult()
    failure: Failure = ""
    reason: str = ""
    usage: SessionUsage = SessionUsage()
    progressed: bool = False
    promised: bool = False
    refused: tuple[str, ...] = ()
    agent: str = ""
    calls: tuple[str, ...] = ()
    left_running: tuple[str, ...] = ()
    mark: str = ""
    changed: bool = False
    built: tuple[str, ...] = ()

    @property
    def issues(self) -> tuple[ReviewIssue, ...]:
        """What the reviewer found."""
        return self.event.issues if self.event else ()

    @property
    def reverted(self) -> tuple[PathChange, ...]:
        """What was undone."""
        return tuple(change for change in self.changes if change.reverted)


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run between two sessions, stored before the next one starts.

    `pending` is the event that calls the next hat. `feedback` is for the next session. `stale` counts sessions
    on the same item (under a reviewer: verdicts that asked for no less), `idle` those that moved nothing,
    `redispatches` equal dispatches in a row. `left` is how many issues the last verdict had, None before one. `mark`
    names the mark of a session that has begun and is not accounted for. `kind` is the kind of work that people's
    verdicts are about. `begun` and `taken` are the marks at which the run and its item were taken up ("" before that,
    and in an older file); `changed`: whether any file differs from when the run began (True where an older file says
    nothing). `built` are stories that were done along with another; `claims`: how often it was declared done without a
    change. `said`: topics of the run's events. `red` is the check that failed when it was last declared done, and
    `red_claims` how often in a row that was so.
    """

    run_id: str
    objective: str
    started_at: datetime
    iteration: int = 0
    pending: LoopEvent = LoopEvent(START)
    feedback: str = ""
    item: str = ""
    stale: int = 0
    idle: int = 0
    failures: int = 0
    redispatches: int = 0
    left: int | None = None
    skipped: frozenset[str] = frozenset()
    usage: SessionUsage = SessionUsage()
    by_hat: tuple[tuple[str, SessionUsage], ...] = ()
    by_item: tuple[tuple[str, SessionUsage], ...] = ()
    last: HatOutput | None = None
    elapsed: float = 0.0
    mark: str = ""
    kind: str = ""
    begun: str = ""
    taken: str = ""
    built: frozenset[str] = frozenset()
    changed: bool = True
    claims: int = 0
    said: frozenset[str] = frozenset()
    red: str = ""
    red_claims: int = 0
