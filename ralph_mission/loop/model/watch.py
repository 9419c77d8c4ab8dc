"""What other terminals see of a run, and what they may ask of it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from ralph_mission.values import dataclass

HoldOrder = Literal["", "pause", "stop"]
"""A person's request to a run from another terminal: pause or stop at the next safe point."""


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
        ...

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Report an event; `prompt`: of its session."""
        ...

    def asked(self) -> HoldOrder:
        """A person's current request."""
        ...


class Unwatched:
    """A `RunWatch` without watchers."""

    name = ""

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Nothing."""

    def asked(self) -> HoldOrder:
        """Nothing."""
        return ""


UNWATCHED = Unwatched()
