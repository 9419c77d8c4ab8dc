"""Social networks, read: bounded in time and bytes, never led elsewhere. No error shows an address: some are secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import requests

from ralph_mission.adapters.http.client import HttpLimits, HttpSession, NoAnswer
from ralph_mission.errors import UserError

MOST = 4 * 1024 * 1024  # bytes of an answer


def open_session(seconds: float, rewrite: Mapping[str, str] | None = None) -> HttpSession:
    """A session for a network whose answers begin within `seconds`, and end within twice of it."""
    return HttpSession(HttpLimits(2 * seconds, seconds, MOST), rewrite)


def ask_network(network: str, call: Callable[[], requests.Response]) -> requests.Response:
    """What `call` gives. Raises UserError when there is no answer."""
    try:
        return call()
    except NoAnswer as error:
        raise UserError(f"{network} gives no answer ({error})", "look at the network", who="network") from None


def read_json(
    network: str, session: HttpSession, url: str, headers: Mapping[str, str] | None = None, **query: str
) -> Any:
    """The document at an address. Raises UserError."""
    answer = ask_network(network, lambda: session.get(url, headers=dict(headers or {}), params=query))
    if answer.status_code != 200:
        raise refusal(network, answer.status_code)
    try:
        return answer.json()
    except (ValueError, RecursionError):
        raise UserError(f"{network} answers with no JSON", "look at its address", who="network") from None


def refusal(network: str, status: int) -> UserError:
    """What a status means for people."""
    mends = {401: "look at its token", 403: "its token may not, or the API's tier does not have it",
             404: "look at its address and ids", 429: "it is asked again in the next look"}  # fmt: skip  # one table
    who = "network" if status == 429 or status >= 500 else "you"
    return UserError(f"{network} answers {status}", mends.get(status, "see docs/social.md"), who=who)
