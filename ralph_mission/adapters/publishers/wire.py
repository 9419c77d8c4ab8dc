"""One request to a network: bounded in time and bytes, never tried again, never led elsewhere, and never quoted.

What goes wrong is told apart by the one question that counts: may it have got through all the same?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import requests

from ralph_mission.adapters.http.client import HttpLimits, HttpSession, NoAnswer
from ralph_mission.adapters.publishers.publisher import PartResult
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import dataclass

PATIENCE = 20.0  # seconds for connecting, and for each piece of an answer
WHOLE = 60.0  # seconds for a request and its answer
BYTES = 1_000_000  # of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What a network said. `status` 0: nothing; then `sent` tells whether it may have got through, and `why` what
    happened. `body` is {} where the answer could not be read as an object."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: bool = True
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether it said yes, readably or not."""
        return 200 <= self.status < 300


def open_session(patience: float = PATIENCE, rewrite: Mapping[str, str] | None = None) -> HttpSession:
    """A session whose requests are each of a connection of their own. `rewrite` replaces beginnings of addresses."""
    return HttpSession(HttpLimits(WHOLE, patience, BYTES), rewrite)


def ask(call: Callable[[], requests.Response]) -> Answer:
    """What came of a request. Never raises for what a network does; words of exceptions may hold a secret."""
    try:
        response = call()
    except NoAnswer as error:
        return Answer(0, sent=error.sent, why=str(error))
    return Answer(response.status_code, _body(response), response.headers)


def _body(response: requests.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def no(network: str, answer: Answer, reason: str, hints: Mapping[int, str], wait: object = None) -> PartResult:
    """What an answer that is no clear yes means for a post. `reason` is the network's own, `hints` who must do what
    about a status."""
    if not answer.sent:
        return PartResult("failed", detail=f"{network} {answer.why}", reason=FailureReason.LATER)
    if answer.status == 429:
        seconds = _seconds(wait if wait is not None else answer.headers.get("retry-after"))
        told = f" {seconds:.0f} s" if seconds else ""
        return PartResult("failed", detail=f"{network} asks to wait{told}", wait=seconds, reason=FailureReason.LATER)
    if not answer.status or answer.ok or answer.status == 408 or answer.status >= 500:
        why = answer.why or (
            f"answered {answer.status}" if not answer.ok else "accepted it without saying what it made of it"
        )
        return PartResult("unknown", detail=f"{network} {why}: look there whether it is out")
    hint = hints.get(answer.status, "") or f"look at what {network} says of it"
    told = f" ({reason})" if reason else ""
    return PartResult("failed", detail=f"{network} refuses it with {answer.status}{told}: {hint}")


def _seconds(wait: object) -> float:
    """What a network says of its own waiting, as far as it is a number that somebody may mean; else 0."""
    try:
        seconds = float(wait) if isinstance(wait, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0 < seconds < 10**7 else 0.0


def base(environment: Mapping[str, str], name: str, usual: str) -> str:
    """Where a network's interface is: told by the environment, else its usual place. Raises UserError."""
    said = environment.get(name, "").strip().rstrip("/") or usual
    if not said.startswith(("https://", "http://")) or "@" in said or any(one.isspace() for one in said):
        raise UserError(f"{name} is no address", f"set {name} to one that begins with https://, or unset it")
    return said
