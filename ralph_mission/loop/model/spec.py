"""What a run was asked to do, how it can end, what other terminals see of it, and what they may ask of it.

Numbers are those of the tools that the presets reproduce.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal, Protocol

from ralph_mission.loop.model.state import Hat, HatOutput, PathChange, RunState
from ralph_mission.values import dataclass

RunMode = Literal["loop", "fresh", "prd", "hats", "issue"]
EndReason = Literal[
    "complete", "iterations", "runtime", "cost", "failures", "thrash", "stuck", "idle", "stop", "cancel", "restart",
    "interrupted", "rounds",
]  # fmt: skip  # one line per meaning would hide that it is one list

EXIT: dict[EndReason, int] = {
    "complete": 0, "iterations": 2, "runtime": 2, "cost": 2, "failures": 1, "thrash": 1, "stuck": 1, "idle": 1,
    "stop": 1, "cancel": 1, "restart": 3, "interrupted": 130,
    "rounds": 2,
}  # fmt: skip  # as above


PLANNING = "plan"
"""The kind of a run that only plans stories."""
SIDE_BY_SIDE = "stories side by side"
"""The kind of a session that builds one story while others build theirs: its event begins with the story."""
HoldOrder = Literal["", "pause", "stop"]
"""A person's request to a run from another terminal: pause or stop at the next safe point."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run. `usd` None: no limit; durations in seconds; counts are of consecutive sessions.

    `unpriced`: sessions that report no cost may exceed `usd`, because nobody asked for that limit.
    """

    iterations: int = 100
    runtime: float = 4 * 3600.0
    usd: float | None = None
    unpriced: bool = False
    session: float = 2700.0
    turns: int = 100
    failures: int = 3
    redispatches: int = 3
    stuck: int = 3
    idle: int = 8
    retries: int = 3
    retry_pause: float = 5.0
    pause: float = 0.0
    longest_wait: float = 3600.0


@dataclass(frozen=True, slots=True)
class LoopPreset:
    """A preset: limits, promise, hats, and whether stories are its gate."""

    name: RunMode | str
    limits: RunLimits = RunLimits()
    promise: str = "LOOP_COMPLETE"
    stories: bool = False
    hats: tuple[Hat, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Everything that was asked. `objective` is quoted in every prompt and never changes during a run.

    `threshold` is how many issues short of critical a verdict may leave; `open_tasks` "trust" lets a loop end with
    tasks open. `persistent` turns completion into `task.resume`. `single_story` ends the run at the first story that
    passes; `require_checks` lets none pass that no check has looked at, or without a test that was changed.
    `require_change`: what is declared done without a change of a file is not; `required_events` have to be said in the
    run before it is. `claim`: the event by which a session may mark its story. `kind` is the kind of work, by which
    people's verdicts are kept. `protected` are globs of files that say what a run may do: no session writes them,
    whatever its hat, or it could widen its own rights by a restart. `scope`: globs of the only files that any session
    may write, None for what its hat may. `no_agent_settings`: nor what configures agents, which the next session would
    obey.
    """

    objective: str
    preset: LoopPreset
    model: str = ""
    threshold: int = 0
    open_tasks: Literal["reject", "trust"] = "reject"
    persistent: bool = False
    cooldown: float | None = None
    memory_budget: int = 8000
    single_story: bool = False
    require_checks: bool = False
    require_change: bool = False
    required_events: tuple[str, ...] = ()
    claim: str = ""
    kind: str = ""
    protected: tuple[str, ...] = ()
    scope: tuple[str, ...] | None = None
    no_agent_settings: bool = False

    @property
    def hats(self) -> tuple[Hat, ...]:
        """The hats that can be called."""
        return self.preset.hats

    @property
    def limits(self) -> RunLimits:
        """The preset's limits."""
        return self.preset.limits

    def bound(self, hat: Hat) -> Hat:
        """The hat, with protected files denied too."""
        allowed = self.scope if hat.write_allowed is None else hat.write_allowed
        denied = tuple(dict.fromkeys((*hat.write_denied, *self.protected)))
        return replace(
            hat,
            write_allowed=allowed,
            write_denied=denied,
            no_agent_settings=hat.no_agent_settings or self.no_agent_settings,
        )


@dataclass(frozen=True, slots=True)
class RunEnding:
    """Why a run ended, and what a person can do next."""

    reason: EndReason
    detail: str = ""
    next_step: str = ""

    @property
    def code(self) -> int:
        """The exit code of the process."""
        return EXIT[self.reason]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: its ending, its last state, and a record for each session of this process.

    `cut`: changes of a session that was cut off, by an interrupt now or by an earlier kill. `standing`: checks that
    failed before the run and still do.
    """

    ending: RunEnding
    state: RunState
    outputs: tuple[HatOutput, ...] = ()
    cut: tuple[PathChange, ...] = ()
    standing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run, as shown by `ralph logs` and stored in transcripts.

    `text`, `tool` (a call, with the first line of its main argument) and `usage` come from the agent; the others from
    the engine. `text`: a line for people. `sessions`, `stories` (passing, total), `tokens` and `usd` are totals of the
    run; in `usage` they are increments. `at`: set by the recorder.
    """

    kind: Literal["began", "note", "phase", "session", "text", "tool", "usage", "output", "waiting", "held", "ended"]
    text: str = ""
    session: int = 0
    hat: str = ""
    run: str = ""
    sessions: int | None = None
    stories: tuple[int, int] | None = None
    tokens: int = 0
    usd: float | None = None
    code: int | None = None
    at: datetime | None = None


class RunWatch(Protocol):
    """Reports a run to other terminals, and reads their requests. Never raises."""

    @property
    def name(self) -> str:
        """What other terminals call the run; "" before its first event."""

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Report an event; `prompt`: of its session."""

    def current_order(self) -> HoldOrder:
        """A person's current request."""


class Unwatched:
    """A `RunWatch` without watchers."""

    name = ""

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Nothing."""

    def current_order(self) -> HoldOrder:
        """Nothing."""
        return ""


UNWATCHED = Unwatched()
