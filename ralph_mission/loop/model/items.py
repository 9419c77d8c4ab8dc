"""A task. A tuple with names, because agents ask for tasks hundreds of times and `dataclasses` takes longer to import
than all that is then done.

What agents and people leave for a loop between sessions. Apart from `model`, because agents ask for it hundreds of
times and every class costs half a millisecond of a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

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
