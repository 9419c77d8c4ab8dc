"""All observers at once, each within its own time: what a slow source costs is its patience, not everybody's.

Each look has a thread. What a look runs in another process is ended with it, when its time is over or a person
interrupts; what it waits for on a network is left waiting, and its answer is not heard any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextvars import copy_context
from typing import Any

from ralph_mission.gateways.process import STOPPED
from ralph_mission.mission.model import Sighting
from ralph_mission.mission.ports import Gaze, Observer
from ralph_mission.trouble import Trouble

GRACE = 3.0
"""Seconds that a look has to end its processes after it was told to."""


def together(asked: Iterable[tuple[Observer, Gaze]], patience: float) -> Generator[Sighting, None, None]:
    """One sighting for each, in the same order; `unavailable` for a look that takes over `patience` seconds.

    An observer whose own `seconds` are more has those. What it raises is its own to handle.
    """
    looks = [_Look(observer, gaze, patience) for observer, gaze in asked]
    for one in looks:
        one.start()
    try:
        yield from (one.seen() for one in looks)
    finally:
        _end(looks)


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
                    raise Trouble("its time was over", "the next look begins again", "network")
                return call(*arguments, **named)

        return held


class _Look(threading.Thread):
    """One observer at work; whatever it runs asks `late` whether it should end."""

    def __init__(self, observer: Observer, gaze: Gaze, patience: float) -> None:
        super().__init__(name=f"ralph {observer.name}", daemon=True)
        self.observer, self.gaze = observer, gaze
        self.patience = max(patience, getattr(observer, "seconds", 0.0))
        self.late = threading.Event()
        self._seen: Sighting | None = None
        self._began = time.monotonic()

    def run(self) -> None:
        """As `threading.Thread` calls it."""
        copy_context().run(self._look)

    def _look(self) -> None:
        STOPPED.set(self.late.is_set)
        self._seen = self.observer.observe(self.gaze)

    def seen(self) -> Sighting:
        """What it saw, once it has, or once its time is over."""
        self.join(max(0.0, self._began + self.patience - time.monotonic()))
        if self._seen is not None:
            return self._seen
        detail = f"not finished within {self.patience:g} s" if self.is_alive() else "failed unexpectedly"
        return Sighting(self.observer.name, "unavailable", detail=detail, cursor=self.gaze.cursor)


def _end(looks: Iterable[_Look]) -> None:
    alive = [one for one in looks if one.is_alive()]
    for one in alive:
        one.late.set()
    patience = time.monotonic() + GRACE
    for one in alive:
        one.join(max(0.0, patience - time.monotonic()))
