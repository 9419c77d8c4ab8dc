"""What is told to whoever watches a run from elsewhere, and what she may ask of it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from ralph_mission.values import dataclass

HoldOrder = Literal["", "pause", "stop"]
"""What a person asks of whatever runs, from another terminal: to wait at the next safe point, or to end there."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened while something of ours ran: what `ralph logs` shows and transcripts are made of.

    `text`, `tool` (a call, with the first line of its main argument) and `usage` are an agent's, as they come; the
    others are the engine's. `text` is a line for people. `sessions`, `stories` (passing, of how many), `tokens` and
    `usd` are those of the whole run so far; of `usage` what is new. `at` is the recorder's.
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
    """Whoever follows what runs from elsewhere, and holds it there. Never raises."""

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """One thing happened; `prompt` is that of the session it belongs to."""
        ...

    def asked(self) -> HoldOrder:
        """What a person asks of it now."""
        ...


class Unwatched:
    """`RunWatch` by nobody."""

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Nothing."""

    def asked(self) -> HoldOrder:
        """Nothing."""
        return ""


UNWATCHED = Unwatched()
