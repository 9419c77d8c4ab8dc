"""The loop for other programs: it gives the next hat and its prompt; they run the agent.

    loop = RalphLoop("Refuse an empty name", pattern="plan-build-review")
    while not loop.converged:
        words = my_agent(loop.get_hat_prompt(loop.hat))     # a fresh session each time
        loop.record(loop.read(words))

It writes nothing and reads no clock. `run` is the same with files, checks and scope, in a thread that can be watched
and paused:

    for event in ralph_mission.run("Refuse an empty name", command="./my-agent", checks=["make test"]):
        print(event.kind, event.text)
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from io import TextIOBase
from pathlib import Path
from typing import Any, TextIO, cast

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.adapters.storage.loop.live import LiveRun
from ralph_mission.app import teams
from ralph_mission.app.run_options import RunOptions, resolve_options
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.errors import UserError
from ralph_mission.loop import hats as patterns
from ralph_mission.loop.model.spec import HoldOrder, LoopPreset, RunEnding, RunEvent, RunResult, RunSpec
from ralph_mission.loop.model.state import START, Hat, HatOutput, LoopEvent, RunSnapshot, RunState
from ralph_mission.loop.prompt import session
from ralph_mission.loop.rules import completion, routing, verdicts
from ralph_mission.safety.secrets import redact

__all__ = ["Hat", "HatOutput", "LoopEvent", "RalphLoop", "RunHandle", "get_hat_prompt", "run"]

EPOCH = datetime.fromtimestamp(0, UTC)
HOME = ".ralph/loop"
"""The place of the loop's files in prompts."""
LOOK = 0.05  # seconds between two looks for an event in asyncio


class RalphLoop:
    """Hat rotation, convergence and prompts, over immutable records.

    Give the name of a `pattern` or your own `hats`. `threshold`: the number of non-critical issues that the last review
    may leave. Raises UserError for an unknown pattern and for incompatible hats.
    """

    def __init__(
        self, task: str, pattern: str = "", hats: Sequence[Hat] = (), *, threshold: int = 0, max_iterations: int = 100
    ) -> None:
        worn = tuple(hats) or patterns.find_pattern(pattern or "plan-build-review").hats
        if wrong := patterns.complaints(worn, persistent=False):
            raise UserError(wrong[0], "fix the hats: see docs/hats.md", usage=True)
        preset = patterns.PRESETS["hats"]
        preset = replace(preset, hats=worn, limits=replace(preset.limits, iterations=max_iterations))
        self._order = RunSpec(task, preset, threshold=threshold)
        self._state = RunState("embedded", task, EPOCH)
        self._outputs: tuple[HatOutput, ...] = ()

    @property
    def hats(self) -> tuple[Hat, ...]:
        """The hats in rotation."""
        return self._order.hats

    @property
    def hat(self) -> Hat:
        """The next hat; `ralph`, a generic one, if no hat listens to the last event."""
        return routing.find_hat(self.hats, self._state.pending) or routing.COORDINATOR

    @property
    def iteration(self) -> int:
        """The number of recorded sessions."""
        return self._state.iteration

    @property
    def outputs(self) -> tuple[HatOutput, ...]:
        """All records, oldest first. They are immutable."""
        return self._outputs

    @property
    def converged(self) -> bool:
        """Whether the reviewer reports nothing critical any more; without a reviewer: whether the promise was given."""
        return completion.looks_done(self._order, self._state, RunSnapshot())

    @property
    def ending(self) -> RunEnding | None:
        """The reason to stop, or None: converged, or a limit on sessions, failures or equal dispatches."""
        if self.converged:
            return RunEnding("complete", f"{self.iteration} sessions")
        ending = completion.reached_limit(self._order.limits, self._state, 0.0)
        return ending and replace(ending, next_step="")  # its steps are options of `ralph run`

    def get_hat_prompt(self, hat: Hat | None = None) -> str:
        """The prompt for a session with `hat` (default: the next): task, last output, event and its issues."""
        worn = hat or self.hat
        known = None if worn == routing.COORDINATOR else worn
        return session.session_prompt(self._order, self._state, RunSnapshot(), known, HOME).prompt

    def read(self, text: str) -> HatOutput:
        """The record of a session of `hat` whose last message is `text`; without a valid event it is a failed
        session."""
        worn = None if self.hat == routing.COORDINATOR else self.hat
        promise = self._order.preset.promise
        promised = routing.says_promise(self._order.hats, worn, text, promise)
        event, wrong = routing.single_event(worn, routing.events_in_text(text, promise), promise, promised)
        event = event and replace(event, issues=event.issues or verdicts.parse_issues(event))
        promised = not wrong and (promised or (event is not None and event.topic == promise))
        return HatOutput(
            self.hat.name, self.iteration + 1, event, session.summary(text),
            failure="event" if wrong else "", reason=wrong, progressed=not wrong, promised=promised,
        )  # fmt: skip  # one record

    def record(self, output: HatOutput) -> Hat:
        """Add the record of the session that was due, and return the next hat.

        Raises ValueError for a record of another hat or session, and after the loop converged.
        """
        if self.converged:
            raise ValueError("the loop has converged")
        due = (self.hat.name, self.iteration + 1)
        if (output.hat, output.iteration) != due:
            raise ValueError(f"session {due[1]} is due, of {due[0]}; not {output.iteration}, of {output.hat}")
        whole = replace(output, event=output.event and _full(output.event, output))
        self._state = completion.advance_state(self._order, self._state, whole, 0.0)
        self._outputs = (*self._outputs, whole)
        return self.hat


def get_hat_prompt(hat: Hat, task: str, previous: HatOutput | None = None) -> str:
    """The prompt for a session with `hat` after `previous`, without a loop."""
    spec = RunSpec(task, LoopPreset("hats", hats=(hat,)))
    event = _full(previous.event, previous) if previous and previous.event else LoopEvent(START)
    state = RunState("embedded", task, EPOCH, previous.iteration if previous else 0, pending=event, last=previous)
    return session.session_prompt(spec, state, RunSnapshot(), hat, HOME).prompt


def _full(event: LoopEvent, output: HatOutput) -> LoopEvent:
    """The event with its hat, and with the issues listed in a verdict's text."""
    return replace(
        event, issues=event.issues or verdicts.parse_issues(event), hat=output.hat, iteration=output.iteration
    )


# --- the whole of `ralph run` ------------------------------------------------------------


def run(
    task: str = "",
    *,
    repo: str | Path = ".",
    agent: str = "",
    command: str = "",
    model: str = "",
    pattern: str = "",
    stories: bool = False,
    checks: str | Sequence[str] = (),
    scope: str | Sequence[str] | None = None,
    resume: bool = False,
    max_iterations: int | None = None,
    max_runtime: float | None = None,
    max_cost: float | None = None,
) -> RunHandle:
    """Start what `ralph run` does in its own thread, and return its handle; `ralph status` lists it too.

    `checks`: commands that must pass; `scope`: globs of the only files that sessions may change; `stories`: work
    through those of prd.json; `resume`: continue the task's last run. `max_runtime` is in seconds, `max_cost` in USD.
    A single text as `checks` or `scope` is a list of one. Defaults come from ralph.yml. Raises UserError for arguments
    that mean nothing.
    """
    _check_limit("max_iterations", max_iterations, int)
    _check_limit("max_runtime", max_runtime, int, float)
    _check_limit("max_cost", max_cost, int, float)
    return RunHandle(resolve_options(RunOptions(
        Path(repo), task=task, agent=agent, command=command, model=model, pattern=pattern, prd=stories,
        verify=_texts("checks", checks), scope=None if scope is None else _texts("scope", scope), go_on=resume,
        iterations=max_iterations, runtime=max_runtime, usd=max_cost,
    )))  # fmt: skip  # one call


def _texts(name: str, value: object) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise UserError(f"{name} is {value!r}", "give a list of texts, none of them empty", usage=True)
    return texts


def _check_limit(name: str, value: float | None, *kinds: type) -> None:
    """Raises UserError unless it is None or a number above zero."""
    number = "whole number" if kinds == (int,) else "number"
    if value is None or (type(value) in kinds and 0 < value < math.inf):
        return
    raise UserError(f"{name} is {value!r}", f"give a {number} above zero, or leave it out", usage=True)


class RunHandle:
    """A run in progress: iterate over it (`for`, `async for`) for its events from the first to the last, get its result
    with `result()` or `await`, control it with `pause`, `resume` and `stop`.

    Any number of iterators see all events. A program waits for its runs before it exits; Ctrl-C meanwhile stops them,
    and so does, in asyncio, a cancelled wait for the result or for an event.
    """

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._order: HoldOrder = ""
        self._secrets = environment_secrets()
        self._live = LiveRun(Git.open(options.repo).state_dir, "run", (), self._secrets)
        self._events: list[RunEvent] = []
        self._news = threading.Condition()
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._play, name="ralph run")
        self._thread.start()

    # --- who waits for it ------------------------------------------------------------

    def result(self) -> RunResult:
        """Wait for its result. Raises UserError if it cannot run."""
        with self._stopping():
            self._thread.join()
        if self._error:
            raise self._error
        assert self._result is not None, "a run has a result or an error"
        return self._result

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._awaited().__await__()

    async def _awaited(self) -> RunResult:
        async for _ in self:
            pass
        return self.result()

    def __iter__(self) -> Iterator[RunEvent]:
        at = 0
        while (event := self._event(at)) is not None:
            yield event
            at += 1

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        at = 0
        while not self._is_over or at < len(self._events):
            if at < len(self._events):
                yield self._events[at]
                at += 1
            else:
                await self._sleep()

    async def _sleep(self) -> None:
        """Not in a thread of asyncio's, for which `asyncio.run` would wait after a cancel."""
        try:
            await asyncio.sleep(LOOK)
        except asyncio.CancelledError:
            self.stop()
            raise

    def _event(self, at: int) -> RunEvent | None:
        with self._stopping(), self._news:
            self._news.wait_for(lambda: len(self._events) > at or not self._thread.is_alive() or self._is_over)
            return self._events[at] if len(self._events) > at else None

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """While we wait, an interrupt also applies to the run."""
        try:
            yield
        except KeyboardInterrupt:
            self.stop()
            raise

    @property
    def _is_over(self) -> bool:
        return self._result is not None or self._error is not None

    # --- who holds it ----------------------------------------------------------------

    def pause(self) -> None:
        """Pause before the next session, without using up limits."""
        self._order = "pause" if self._order != "stop" else "stop"

    def resume(self) -> None:
        """End a pause."""
        self._order = "" if self._order != "stop" else "stop"

    def stop(self) -> None:
        """End after the present session; `resume=True` continues it later."""
        self._order = "stop"

    # --- the run itself, as `RunWatch` -------------------------------------------------

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Receive an event, and give it the totals of the run so far, which the engine's own events have already."""
        self._live.tell(event, prompt)
        if event.kind != "usage":
            so_far = self._live.record
            event = replace(
                event, sessions=so_far.sessions, stories=so_far.stories, tokens=so_far.tokens, usd=so_far.usd
            )
        redacted = replace(event, at=datetime.now(UTC), text=redact(event.text, self._secrets))
        with self._news:
            self._events.append(redacted)
            self._news.notify_all()

    @property
    def name(self) -> str:
        """What other terminals call the run."""
        return self._live.name

    def current_order(self) -> HoldOrder:
        """The requests of this program or another terminal."""
        return self._order or self._live.current_order()

    def _play(self) -> None:
        try:
            self._result, _ = teams.play_run(
                self._options, PlainRunProgress(cast("TextIO", _Unshown()), self._secrets, self)
            )
            code = self._result.ending.code
        except BaseException as error:
            self._error, code = error, getattr(error, "exit_code", 1)
        self._live.end(code)
        with self._news:
            self._news.notify_all()


class _Unshown(TextIOBase):
    """Discards lines for people if a program receives all events."""

    def write(self, text: str) -> int:
        """Nothing."""
        return len(text)
