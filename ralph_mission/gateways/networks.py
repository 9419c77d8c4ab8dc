"""Social networks, read: bounded in time and bytes, never led elsewhere. No error shows an address: some are secret."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from ralph_mission.trouble import Trouble

MOST = 4 * 1024 * 1024  # bytes of an answer
PIECE = 65_536


def no_login(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Adds nothing, where requests would take a login for the host from ~/.netrc. Proxies of the environment stay."""
    return request


class Reader(requests.Session):
    """A session whose requests are bounded. `usual` begins addresses that go to `instead`."""

    def __init__(self, network: str, seconds: float, usual: str = "", instead: str = "") -> None:
        super().__init__()
        self.auth = no_login
        self.network, self.seconds, self._usual, self._instead = network, seconds, usual, instead.rstrip("/")

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]  # its own names of the options
        """As requests does it, in no more than twice `seconds`. Raises Trouble when there is no answer."""
        if self._usual and self._instead and url.startswith(self._usual):
            url = self._instead + url.removeprefix(self._usual)
        options |= {"timeout": self.seconds, "allow_redirects": False, "stream": True}
        ask = partial(super().request, method, url, **options)
        try:
            return in_time(lambda: self._whole(ask()), 2 * self.seconds)
        except (requests.RequestException, HTTPError, ValueError, OSError) as error:
            what = f"{self.network} gives no answer ({type(error).__name__})"
            raise Trouble(what, "look at the network", who="network") from None

    def json(self, url: str, headers: Mapping[str, str] | None = None, **query: str) -> Any:
        """The document at an address. Raises Trouble."""
        answer = self.get(url, headers=dict(headers or {}), params=query)
        if answer.status_code != 200:
            raise refused(self.network, answer.status_code)
        try:
            return answer.json()
        except (ValueError, RecursionError):
            raise Trouble(f"{self.network} answers with no JSON", "look at its address", who="network") from None

    def _whole(self, response: requests.Response) -> requests.Response:
        """The same answer, read to its end within the time that a request has."""
        kept, until = bytearray(), time.monotonic() + self.seconds
        with response:
            # As it comes: whoever waits for whole pieces looks at the clock too seldom.
            while piece := response.raw.read1(PIECE, decode_content=True):
                kept += piece
                if len(kept) > MOST or time.monotonic() > until:
                    raise OSError("an answer without an end")
        response.raw = io.BytesIO()
        response._content = bytes(kept)  # where requests itself keeps what was read
        return response


def in_time(ask: Callable[[], requests.Response], seconds: float) -> requests.Response:
    """What `ask` gives, or raises; OSError when it takes longer: no client minds headers that come drop by drop."""
    came: list[requests.Response | BaseException] = []

    def answer() -> None:
        try:
            came.append(ask())
        except BaseException as error:  # raised again below, where somebody waits for it
            came.append(error)

    asking = threading.Thread(target=answer, daemon=True)
    asking.start()
    asking.join(seconds)
    if not came:
        raise OSError("an answer without an end")
    if isinstance(came[0], BaseException):
        raise came[0]
    return came[0]


def refused(network: str, status: int) -> Trouble:
    """What a status means for people."""
    mends = {401: "look at its token", 403: "its token may not, or the API's tier does not have it",
             404: "look at its address and ids", 429: "it is asked again in the next look"}  # fmt: skip  # one table
    who = "network" if status == 429 or status >= 500 else "you"
    return Trouble(f"{network} answers {status}", mends.get(status, "see docs/social.md"), who=who)
