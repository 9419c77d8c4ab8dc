"""`repository_dispatch`: the one event in which every way of waking ends.

Sent once and never again on its own. The payload tells people what it was for; whoever is woken by it asks the
gate, which reads memory alone, so a forged, late or repeated dispatch changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ralph_mission.adapters.wakers.ways import EVENT, REVIEW
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.values import dataclass

MOVED = "the repository was renamed or moved: set GITHUB_REPOSITORY to its new name"
REASONS = {
    **dict.fromkeys((301, 302, 307, 308), MOVED),
    401: "the token is not valid: give GITHUB_TOKEN one that is",
    403: "the token may not dispatch: give it `permissions: contents: write`",
    404: "there is no such repository, or the token may not see it: check GITHUB_REPOSITORY and the token",
    429: "GitHub's rate limit is reached: the next wake makes up for it",
}


@dataclass(frozen=True, slots=True)
class DispatchAnswer:
    """An answer: its HTTP status (0: there was none) and what was said."""

    status: int
    said: str = ""


Post = Callable[[str, dict[str, Any]], DispatchAnswer]
"""Sends a JSON document to a path of the API (`/repos/o/n/dispatches`), once. May raise UserError or OSError."""


@dataclass(frozen=True, slots=True)
class DispatchWaker:
    """`ports.Waker` over a forge's API."""

    repository: str  # owner/name
    post: Post

    def wake(self, due: datetime, generation: int) -> Receipt:
        """Ask for a cycle. `failed` says why; after a lost answer the event may have been sent, which does no harm."""
        return self._asked(key_of("dispatch", str(generation)), payload(due, generation))

    def review(self, pull: int) -> Receipt:
        """Ask for the review of a pull; as `wake`."""
        body = {"event_type": REVIEW, "client_payload": {"pull_request": pull}}
        return self._asked(key_of("call-review", str(pull)), body)

    def _asked(self, key: str, body: dict[str, Any]) -> Receipt:
        try:
            outcome = self.post(f"/repos/{self.repository}/dispatches", body)
        except UserError as trouble:
            return Receipt(key, "failed", detail=f"{trouble.what}: {trouble.next_step}")
        except OSError as error:
            outcome = DispatchAnswer(0, type(error).__name__)  # its text may hold anything
        reason = _reason(outcome)
        return Receipt(key, "failed", detail=reason) if reason else Receipt(key, "done")


def payload(due: datetime, generation: int) -> dict[str, Any]:
    """The event's whole body: what a person may want to know, and nothing that anybody obeys."""
    moment = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"event_type": EVENT, "client_payload": {"not_before": moment, "generation": generation}}


def _reason(outcome: DispatchAnswer) -> str:
    """Why nobody was woken, "" when the event was accepted."""
    if 200 <= outcome.status < 300:
        return ""
    said = " ".join(outcome.said.split())[:200]
    if outcome.status == 0:
        return f"GitHub did not answer ({said or 'no reason given'}): the next wake makes up for it"
    code = 429 if outcome.status == 403 and "rate limit" in said.lower() else outcome.status
    reason = REASONS.get(code, "the next wake makes up for it" if code >= 500 else "look at what it says")
    return f"HTTP {outcome.status}{f' ({said})' if said else ''}: {reason}"
