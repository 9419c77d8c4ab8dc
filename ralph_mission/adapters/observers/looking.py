"""How observers look: all at once, each within its own time; the results they share; and texts fit for a signal.

Each look has a thread. What a look runs in another process is ended with it, when its time is over or a person
interrupts; what it waits for on a network is left waiting, and its answer is ignored.

What goes into a signal has no control characters and a bounded length; what may be *sent* is decided in wording.
Which thing a line of code is follows from the line and its neighbours: it survives moves, renames and new
indentation, and changes when the line itself does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import wait
from datetime import datetime, timedelta
from typing import Any

from ralph_mission.adapters.http.deadline import start_call
from ralph_mission.adapters.sandbox.process import STOPPED
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.mission.model.mission import Observation, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Observer
from ralph_mission.safety.markdown import without_controls
from ralph_mission.words import stamp

GRACE = 3.0
"""Seconds that a look has to end its processes after its time is up."""
EARLY_FACTOR = 0.9  # of `every`, as a cycle may be a little early
MILESTONES = tuple(int(base * ten) for ten in (10, 100, 1_000, 10_000, 100_000, 1_000_000) for base in (1, 2.5, 5))
JUMP, JUMP_SHARE = 10, 0.1  # since the last observation: at least so many, and such a share
TITLE = 120  # characters
DETAIL = 2_000


def together(
    requests: Iterable[tuple[Observer, ObservationContext]], patience: float
) -> Generator[Observation, None, None]:
    """One observation for each, in the same order; `unavailable` for a look that takes over `patience` seconds.

    An observer whose own `seconds` are more has those. What it raises is its own to handle.
    """
    lookups = [_Look(observer, context, patience) for observer, context in requests]
    try:
        yield from (one.await_observation() for one in lookups)
    finally:
        _end(lookups)


class OneAtATime:
    """Anything that several threads call, as if it were for one: each call waits for the one before.

    A look whose time is over is refused, so that the next caller has what is inside to itself.
    """

    def __init__(self, inner: object) -> None:
        self._inner, self._lock = inner, threading.RLock()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return self._serialise_calls(value) if callable(value) else value

    def _serialise_calls(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_alone(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                if (over := STOPPED.get()) and over():
                    raise UserError("its time was over", "the next look begins again", "network")
                return call(*arguments, **named)

        return call_alone


class _Look:
    """One observer at work; whatever it runs asks `late` whether it should end."""

    def __init__(self, observer: Observer, context: ObservationContext, patience: float) -> None:
        self.observer, self.context, self.late = observer, context, threading.Event()
        self.patience = max(patience, getattr(observer, "seconds", 0.0))
        self._until = time.monotonic() + self.patience
        self.call = start_call(self._observe, f"ralph {observer.name}")

    def _observe(self) -> Observation:
        STOPPED.set(self.late.is_set)
        return self.observer.observe(self.context)

    def await_observation(self) -> Observation:
        """What it saw, once it has, or once its time is over."""
        done, _ = wait([self.call], max(0.0, self._until - time.monotonic()))
        try:
            if done:
                return self.call.result()
            detail = f"not finished within {self.patience:g} s"
        except Exception:
            detail = "failed unexpectedly"
        spent = Usage(cost_usd=self.context.usd)  # what it cost nobody knows: all that was set aside
        return Observation(self.observer.name, "unavailable", detail=detail, cursor=self.context.cursor, usage=spent)


def _end(lookups: Iterable[_Look]) -> None:
    alive = [one for one in lookups if not one.call.done()]
    for one in alive:
        one.late.set()
    wait([one.call for one in alive], timeout=GRACE)


def unavailable(name: str, problem: UserError, cursor: str) -> Observation:
    """A failed observation, with the reason and what helps."""
    return Observation(name, "unavailable", detail=one_line(f"{problem.what}; {problem.next_step}", 300), cursor=cursor)


def too_soon(name: str, last: datetime | None, every: timedelta, context: ObservationContext) -> Observation | None:
    """A skipped observation, as the last one was less than `every` ago."""
    if last is None or not last <= context.now < last + every * EARLY_FACTOR:
        return None
    detail = f"looked at {stamp(last)}; not again so soon"
    return Observation(name, "skipped", detail=detail, cursor=context.cursor)


def milestone(before: int, now: int) -> int:
    """The highest round number that was passed, or 0."""
    return max((mark for mark in MILESTONES if before < mark <= now), default=0)


def is_jump(before: int, now: int) -> bool:
    """Whether it grew more than on an ordinary day."""
    return now - before >= max(JUMP, JUMP_SHARE * before)


def plain(text: str) -> str:
    """`text` without escape sequences and control characters but newline and tab; always valid UTF-8."""
    return without_controls(text).replace("\r\n", "\n")


def one_line(text: str, limit: int = TITLE) -> str:
    """`plain`, on one line, at most `limit` characters."""
    return _clip(" ".join(plain(text).split()), limit)


def block(text: str, limit: int = DETAIL) -> str:
    """`plain`, lines kept, at most `limit` characters."""
    return _clip(plain(text).strip(), limit)


def quote(text: str) -> str:
    """Words of somebody else, marked line by line."""
    return "\n".join(f"> {line}" for line in text.split("\n"))


def age_days(since: datetime, now: datetime) -> float:
    """How many days ago something was; 0 for what a wrong clock dates into the future."""
    return max(0.0, (now - since).total_seconds() / 86_400)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def surroundings(lines: Sequence[str], number: int) -> tuple[str, str, str]:
    """The line `number` (1-based) and the nearest lines before and after that are not blank, normalised."""
    if not 1 <= number <= len(lines):
        return "", "", ""
    before = next((line for line in reversed(lines[: number - 1]) if line.strip()), "")
    after = next((line for line in lines[number:] if line.strip()), "")
    return normalise_line(lines[number - 1]), normalise_line(before), normalise_line(after)


def valid_path(path: str) -> str:
    """A path as git has it (surrogateescape), as valid text."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def split_lines(content: bytes) -> list[str]:
    """The lines of a file as git counts them; bytes that are no UTF-8 become U+FFFD."""
    return content.decode("utf-8", "replace").split("\n")
