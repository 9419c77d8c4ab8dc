"""What a loop works on and with, as frozen values. Times are aware UTC, durations seconds, money USD."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple

from ralph_mission.values import dataclass

TaskStatus = Literal["pending", "ready", "active", "done", "failed"]


class LoopTask(NamedTuple):
    """A unit of work with prerequisites. `ready` means that all of `needs` are done."""

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
    """One thing a reviewer found. Without a severity it is critical: unknown is never waved through."""

    message: str
    file: str = ""
    line: int = 0
    kind: str = ""
    severity: Severity = "critical"


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """A routing signal with its reasons. `hat` said it in `iteration`; the engine says some itself (hat "")."""

    topic: str
    payload: str = ""
    issues: tuple[ReviewIssue, ...] = ()
    hat: str = ""
    iteration: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Guidance:
    """A person's word to the next session: given once, and to be acknowledged."""

    id: str
    text: str
    at: datetime


Failure = Literal["", "exit", "timeout", "rate_limit", "server", "auth", "missing", "event"]
"""Why a turn failed: exit code, our time limit, the provider's limit or fault, a key that it does not know, no such
program, not one event."""
OPEN: frozenset[TaskStatus] = frozenset({"pending", "ready", "active"})

START, RESUME, CONVERGED = "loop.start", "task.resume", "loop.converged"
VERDICT, VERIFICATION_FAILED, PLANNED = "review.verdict", "verification.failed", "plan.complete"


@dataclass(frozen=True, slots=True)
class Hat:
    """One role that a session plays: what calls it, what it may say, what it may write, what it is told.

    `triggers` are topics (`build.*` matches what starts with `build.`). `write_allowed` None is everywhere, empty is
    nowhere; both are globs, and what is denied is denied. `default_publishes` is said for a session that says nothing.
    Names without a model use the run's. `no_agent_settings`: it writes nothing that configures agents.
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


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """What sessions took. `cost_usd` is None while nobody can tell; if known, `unpriced` sessions are not in it.

    `turns` are answers of the model, as far as agents tell them.
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
        """Sessions whose cost nobody told: with any of them, what is known is the least that it was."""
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
    """One user story of a PRD; the lowest priority number goes first."""

    id: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: int = 0
    passes: bool = False
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Prd:
    """The stories of a project, in the order they stand in the file."""

    project: str = ""
    branch: str = ""
    description: str = ""
    stories: tuple[UserStory, ...] = ()

    @property
    def todo(self) -> tuple[UserStory, ...]:
        """What does not pass yet: lowest priority number first, ties as in the file."""
        return tuple(sorted((story for story in self.stories if not story.passes), key=lambda story: story.priority))


@dataclass(frozen=True, slots=True)
class ProgressNotes:
    """What `progress.txt` holds: patterns on top, what was learned (oldest first), what passed last."""

    patterns: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    last_completed: str = ""


@dataclass(frozen=True, slots=True)
class SessionCommit:
    """One line of history."""

    hash: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """Where the checkout stands; `commits` newest first, at most five. `readable` False: git gave no answer."""

    branch: str = ""
    head: str = ""
    commits: tuple[SessionCommit, ...] = ()
    dirty: bool = False
    readable: bool = True


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Where the stories and their log stand, from the root of the work tree; absolute when they are outside of it."""

    prd: str = "prd.json"
    progress: str = "progress.txt"

    @property
    def kept(self) -> tuple[str, ...]:
        """All that the engine keeps there: judged by what it says, not by a hat's globs."""
        beside = f"{self.progress.removesuffix('progress.txt')}.last-branch"
        return self.prd, self.progress, beside


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """Everything a session may know, read from files right before it. `prd` None: free form."""

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
    """One fresh run of an agent: everything it gets. `seconds`, `turns` and `usd` (None: no limit) end it.

    `schema`, a JSON Schema, is what its last message has to fit where the agent can see to that.
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
    """What a session gave: its last message, how it ended, what it took. `retry_after` in seconds, 0 unknown.

    `refused` says of each command that was kept from running why; `calls` what tools it called, refused or not, as its
    program tells of them; `left_running` what it left behind, which was ended; `agent` who played.
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
        """The same with what an earlier try of the session did and was refused."""
        return replace(
            self,
            refused=tuple(dict.fromkeys((*before.refused, *self.refused))),
            calls=(*before.calls, *self.calls),
            left_running=(*before.left_running, *self.left_running),
        )


@dataclass(frozen=True, slots=True)
class PathChange:
    """One path that differs after a session, and how it came to: a reverted one is as it was before."""

    path: str
    how: str
    reverted: str = ""


@dataclass(frozen=True, slots=True)
class NetChange:
    """Between two moments: the paths that differ, and those of them that hold tests which were added or changed."""

    paths: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the project's own checks said. Without checks nothing was proven: `ran` is False.

    `undone`: what they changed of the checkout, which is as it was before them. `standing`: those that are as red as
    they were before the run began, and do not count.
    """

    green: bool = True
    ran: bool = False
    said: str = ""
    undone: tuple[PathChange, ...] = ()
    standing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HatOutput:
    """The immutable record of one session: who played, what was said, what really changed, what was undone and why.

    `mark` is what it began with; `changed`: whether any file differs after it from when the run began; `built` are
    stories that it did besides the one that passes, and may pass next. `refused`, `calls`, `left_running` as in `Turn`.
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
    """Where a run stands between two sessions; all of it is in a file before the next one starts.

    `pending` is the event that calls the next hat. `feedback` is told to the next session. `stale` counts sessions
    on the same item (under a reviewer: verdicts that asked for no less), `idle` those that moved nothing,
    `redispatches` equal dispatches in a row. `left` is how many issues the last verdict had, None before one. `mark`
    names the mark of a session that has begun and is not accounted for. `kind` is the kind of work that people's
    verdicts are about. `begun` and `taken` are the marks at which the run and its item were taken up ("" before that,
    and in an older file); `changed`: whether any file differs from when the run began (True where an older file says
    nothing). `built` are stories that were done along with another; `claims`: how often it was declared done without a
    change. `said`: topics of the run's events.
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
