"""A run from its task to its end: for the command line, and for other programs that watch and hold it.

for event in ralph_mission.run("Refuse an empty name", command="./my-agent", checks=["make test"]):
    print(event.kind, event.text)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
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
from ralph_mission.app.run import RunSetup, build_run, describe_work
from ralph_mission.app.run_options import RunOptions
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.loop.model.spec import RunResult
from ralph_mission.loop.model.watch import HoldOrder, RunEvent
from ralph_mission.loop.run import run_loop
from ralph_mission.safety.secrets import redact


def play_run(asked: RunOptions, progress: PlainRunProgress) -> tuple[RunResult, RunSetup]:
    """One run, and where it was; a task without stories is planned first. Raises UserError."""
    story = teams.choose_team(asked)
    wanted = teams.due(asked)
    if wanted is None:
        return _play(asked, story, progress)
    progress.note("no stories yet: a planner writes them first")
    made, first = teams.write_stories(wanted, progress, follows=True)
    if first.ending.code:
        return first, _tell_end(made, first, progress)
    made.unaltered()
    account, made = _play(wanted, story, progress, made.root)
    return replace(account, outputs=(*first.outputs, *account.outputs)), made


def _play(
    asked: RunOptions, story: str, progress: PlainRunProgress, planned: Path | None = None
) -> tuple[RunResult, RunSetup]:
    made = build_run(replace(asked, pattern="") if story else asked, progress, planned)
    for note in made.notes:
        progress.note(f"note: {note}")
    account = teams.play(made, story, build=asked.build) if story else run_loop(made.spec, made.ports)
    return account, _tell_end(made, account, progress)


def _tell_end(made: RunSetup, account: RunResult, progress: PlainRunProgress) -> RunSetup:
    for line in describe_work(made, account):
        progress.note(line)
    for complaint in made.store.complaints:
        progress.note(f"note: {complaint}")
    for line in made.after:
        progress.note(line)
    return made


def run(
    task: str = "",
    *,
    repo: str | Path = ".",
    agent: str = "",
    command: str = "",
    model: str = "",
    pattern: str = "",
    stories: bool = False,
    checks: Sequence[str] = (),
    scope: Sequence[str] | None = None,
    resume: bool = False,
    max_iterations: int | None = None,
    max_runtime: float | None = None,
    max_cost: float | None = None,
) -> RunHandle:
    """Begin what `ralph run` does in a thread of its own, and give the handle to it; `ralph status` lists it too.

    `checks` are commands that must pass, `scope` globs of the only files that sessions may change, `stories` works
    through those of prd.json, `resume` goes on with the last run of the task. `max_runtime` in seconds, `max_cost` in
    USD. What is left out is as ralph.yml has it.
    """
    return RunHandle(RunOptions(
        Path(repo), task=task, agent=agent, command=command, model=model, pattern=pattern, prd=stories,
        verify=tuple(checks), scope=None if scope is None else tuple(scope), go_on=resume,
        iterations=max_iterations, runtime=max_runtime, usd=max_cost,
    ))  # fmt: skip  # one call


class RunHandle:
    """A run that is being played: iterate over it (`for`, `async for`) for its events from the first to the last,
    `result()` or `await` it for how it ended, hold it with `pause`, `resume` and `stop`.

    Any number of iterators see all events. A program that ends waits for its runs; Ctrl-C while it waits stops them.
    """

    def __init__(self, asked: RunOptions) -> None:
        self._asked = asked
        self._order: HoldOrder = ""
        self._secrets = environment_secrets()
        self._live = LiveRun(Git.open(asked.repo).state_dir, "run", ("ralph_mission.run",), self._secrets)
        self._events: list[RunEvent] = []
        self._news = threading.Condition()
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._play, name="ralph run")
        self._thread.start()

    # --- who waits for it ------------------------------------------------------------

    def result(self) -> RunResult:
        """How it ended, once it has. Raises UserError for what cannot be run."""
        with self._stopping():
            self._thread.join()
        if self._error:
            raise self._error
        assert self._result is not None, "a run has a result or an error"
        return self._result

    def __await__(self) -> Generator[Any, None, RunResult]:
        return asyncio.to_thread(self.result).__await__()

    def __iter__(self) -> Iterator[RunEvent]:
        at = 0
        while (event := self._event(at)) is not None:
            yield event
            at += 1

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        at = 0
        while (event := await asyncio.to_thread(self._event, at)) is not None:
            yield event
            at += 1

    def _event(self, at: int) -> RunEvent | None:
        with self._stopping(), self._news:
            self._news.wait_for(lambda: len(self._events) > at or not self._thread.is_alive() or self._is_over)
            return self._events[at] if len(self._events) > at else None

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """While we wait: whoever interrupts us means the run as well."""
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
        """Have it wait before its next session, which takes none of its limits."""
        self._order = "pause" if self._order != "stop" else "stop"

    def resume(self) -> None:
        """Let it go on."""
        self._order = "" if self._order != "stop" else "stop"

    def stop(self) -> None:
        """Have it end when its session is over; `resume=True` goes on with it."""
        self._order = "stop"

    # --- the run itself, as `RunWatch` -------------------------------------------------

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """One thing happened."""
        self._live.tell(event, prompt)
        told = replace(event, at=datetime.now(UTC), text=redact(event.text, self._secrets))
        with self._news:
            self._events.append(told)
            self._news.notify_all()

    def asked(self) -> HoldOrder:
        """What this program or another terminal asks of it."""
        return self._order or self._live.asked()

    def _play(self) -> None:
        try:
            self._result, _ = play_run(self._asked, PlainRunProgress(cast("TextIO", _Nowhere()), self._secrets, self))
            code = self._result.ending.code
        except BaseException as error:
            self._error, code = error, getattr(error, "exit_code", 1)
        self._live.end(code)
        with self._news:
            self._news.notify_all()


class _Nowhere(TextIOBase):
    """Where lines for people go when a program is told everything."""

    def write(self, text: str) -> int:
        """Nothing."""
        return len(text)
