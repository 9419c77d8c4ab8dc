"""A request to a network: bounded in time and bytes, without retries or redirects, and never quoted.

Failures are classified by the question that counts: may the request have got through?
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

PATIENCE = 20.0  # seconds to connect, and between pieces of an answer
WHOLE = 60.0  # seconds for a request and its answer
BYTES = 1_000_000  # of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """A network's answer. `status` 0: none; then `sent`: whether the request may have got through, and `why`. `body` is
    {} if the answer is not a JSON object."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: bool = True
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded, even with an unreadable body."""
        return 200 <= self.status < 300


def open_session(patience: float = PATIENCE, rewrite: Mapping[str, str] | None = None) -> HttpSession:
    """A session with a new connection for each request. `rewrite` replaces beginnings of URLs."""
    return HttpSession(HttpLimits(WHOLE, patience, BYTES), rewrite)


def ask(call: Callable[[], requests.Response]) -> Answer:
    """Make a request. Never raises for network failures, nor quotes exceptions, which may contain a secret."""
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
    """The result of a post without a clear success. `reason`: the network's own. `hints`: what to do, by status."""
    if not answer.sent:
        return PartResult("failed", detail=f"{network} {answer.why}", reason=FailureReason.LATER)
    if answer.status == 429:
        seconds = _seconds(wait if wait is not None else answer.headers.get("retry-after"))
        addition = f" {seconds:.0f} s" if seconds else ""
        return PartResult(
            "failed", detail=f"{network} asks to wait{addition}", wait=seconds, reason=FailureReason.LATER
        )
    if not answer.status or answer.ok or answer.status == 408 or answer.status >= 500:
        why = answer.why or (
            f"answered {answer.status}" if not answer.ok else "accepted it without saying what it made of it"
        )
        return PartResult("unknown", detail=f"{network} {why}: look there whether it is out")
    hint = hints.get(answer.status, "") or f"look at what {network} says of it"
    addition = f" ({reason})" if reason else ""
    return PartResult("failed", detail=f"{network} refuses it with {answer.status}{addition}: {hint}")


def _seconds(wait: object) -> float:
    """The waiting time a network asks for, if plausible, else 0."""
    try:
        seconds = float(wait) if isinstance(wait, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0 < seconds < 10**7 else 0.0


def base(environment: Mapping[str, str], name: str, usual: str) -> str:
    """The base URL of a network's API: from the environment, else the default. Raises UserError."""
    url = environment.get(name, "").strip().rstrip("/") or usual
    if not url.startswith(("https://", "http://")) or "@" in url or any(one.isspace() for one in url):
        raise UserError(f"{name} is not an address", f"set {name} to one that begins with https://, or unset it")
    return url
