"""Minimal implementations of some ports: time, and parts that a command does not need."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ralph_mission.adapters.report.progress import begin_phase
from ralph_mission.loop.model.spec import UNWATCHED, RunWatch
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.mission.model.effects import Receipt


def switched_off() -> bool:
    """Whether the environment stops every effect."""
    return os.environ.get("RALPH_PAUSED") == "1"


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """`--now`: a fixed time."""

    moment: datetime

    def now(self) -> datetime:
        """That time, in UTC."""
        return self.moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class QuietProgress:
    """Progress that is only passed to the watcher."""

    watch: RunWatch = UNWATCHED

    def phase(self, name: str, note: str = "") -> None:
        """A phase to pause at."""
        begin_phase(self.watch, name, note)

    def note(self, text: str) -> None:
        """Nothing."""


class NobodyToWake:
    """A waker that does nothing: the person who runs `ralph cycle` decides when."""

    def wake(self, due: datetime, generation: int) -> Receipt | None:
        """None."""
        return None


class Nowhere:
    """A recorder that stores nothing: a staged cycle leaves no trace."""

    def record(self, name: str, value: object) -> None:
        """Nothing."""
