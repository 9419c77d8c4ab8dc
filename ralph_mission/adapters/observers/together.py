"""All observers at once, each within its own time: what a slow source costs is its patience, not everybody's.

Each look has a thread. What a look runs in another process is ended with it, when its time is over or a person
interrupts; what it waits for on a network is left waiting, and its answer is not heard any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import wait
from typing import Any

from ralph_mission.adapters.http.deadline import start_call
from ralph_mission.adapters.sandbox.process import STOPPED
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Observation, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Observer

GRACE = 3.0
"""Seconds that a look has to end its processes after it was told to."""


def together(
    requests: Iterable[tuple[Observer, ObservationContext]], patience: float
) -> Generator[Observation, None, None]:
    """One sighting for each, in the same order; `unavailable` for a look that takes over `patience` seconds.

    An observer whose own `seconds` are more has those. What it raises is its own to handle.
    """
    lookups = [_Look(observer, context, patience) for observer, context in requests]
    try:
        yield from (one.seen() for one in lookups)
    finally:
        _end(lookups)


class OneAtATime:
    """Anything that several threads call, as if it were for one: each call waits for the one before.

    A look whose time is over is refused: whoever comes after it calls what is inside by themselves.
    """

    def __init__(self, inner: object) -> None:
        self._inner, self._lock = inner, threading.RLock()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return self._held(value) if callable(value) else value

    def _held(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def held(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                if (over := STOPPED.get()) and over():
                    raise UserError("its time was over", "the next look begins again", "network")
                return call(*arguments, **named)

        return held


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

    def seen(self) -> Observation:
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
