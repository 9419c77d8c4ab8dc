"""One request to a network: bounded in time and bytes, never tried again, never led elsewhere, and never quoted.

What goes wrong is told apart by the one question that counts: may it have got through all the same?
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from ralph_mission.gateways.networks import in_time, no_login
from ralph_mission.mission.ports import LATER
from ralph_mission.publishers.said import Said
from ralph_mission.trouble import Trouble

PATIENCE = 20.0  # seconds for connecting, and for each piece of an answer
WHOLE = 60.0  # seconds for a request and its answer
BYTES = 1_000_000  # of an answer
PIECE = 65_536
NOT_SENT = (NewConnectionError, ConnectTimeoutError, ssl.SSLCertVerificationError)


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


class Wire(requests.Session):
    """A session whose every request is bounded. `instead` replaces the beginning of an address by another one."""

    def __init__(self, patience: float = PATIENCE, instead: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.auth = no_login
        self.patience, self.instead = patience, dict(instead or {})
        self.headers["Connection"] = "close"

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]  # fewer choices
        """As requests does it, but for what may not be chosen. Raises OSError, and urllib3's own exceptions."""
        for begins, other in self.instead.items():
            url = other + url.removeprefix(begins) if url.startswith(begins) else url
        options |= {"timeout": self.patience, "allow_redirects": False, "stream": True}
        try:
            return in_time(lambda: _bounded(requests.Session.request(self, method, url, **options)), WHOLE)
        finally:
            self.close()  # a connection that is kept may be dead by the next request, and a cut one is doubt

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Nowhere: requests would read where it leads to, and all that is said there, even if it follows nothing."""


def _bounded(response: requests.Response) -> requests.Response:
    """The same answer, read to its end."""
    kept = bytearray()
    with response:
        while piece := response.raw.read1(PIECE, decode_content=True):
            kept += piece
            if len(kept) > BYTES:
                raise requests.exceptions.ChunkedEncodingError("an answer without an end")
    made = requests.Response()
    made.status_code, made.reason, made.url = response.status_code, response.reason, response.url
    made.headers, made.encoding, made.request = response.headers, response.encoding, response.request
    made.raw = io.BytesIO(bytes(kept))
    return made


def ask(call: Callable[[], requests.Response]) -> Answer:
    """What came of a request. Never raises for what a network does; words of exceptions may hold a secret."""
    try:
        response = call()
    except requests.exceptions.Timeout as error:
        late = not isinstance(error, requests.exceptions.ConnectTimeout)
        return Answer(0, sent=late, why="did not answer in time")
    except requests.exceptions.RequestException as error:
        if any(isinstance(one, NOT_SENT) for one in _causes(error)):
            return Answer(0, sent=False, why="cannot be reached")
        return Answer(0, why="broke the connection off")
    except (HTTPError, OSError, ValueError):
        return Answer(0, why="gave no answer that can be read")
    return Answer(response.status_code, _body(response), response.headers)


def _causes(error: BaseException, depth: int = 8) -> Iterator[BaseException]:
    yield error
    inner = [*error.args, getattr(error, "reason", None), error.__cause__, error.__context__]
    for one in inner:
        if depth and isinstance(one, BaseException):
            yield from _causes(one, depth - 1)


def _body(response: requests.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def no(network: str, answer: Answer, reason: str, mends: Mapping[int, str], wait: object = None) -> Said:
    """What an answer that is no clear yes means for a post. `reason` is the network's own, `mends` who must do what
    about a status."""
    if not answer.sent:
        return Said("failed", detail=f"{LATER}{network} {answer.why}")
    if answer.status == 429:
        seconds = _seconds(wait if wait is not None else answer.headers.get("retry-after"))
        told = f" {seconds:.0f} s" if seconds else ""
        return Said("failed", detail=f"{LATER}{network} asks to wait{told}", wait=seconds)
    if not answer.status or answer.ok or answer.status == 408 or answer.status >= 500:
        why = answer.why or (f"answered {answer.status}" if not answer.ok else "said yes and not what it made of it")
        return Said("unknown", detail=f"{network} {why}: look there whether it is out")
    mend = mends.get(answer.status, "") or f"look at what {network} says of it"
    told = f" ({reason})" if reason else ""
    return Said("failed", detail=f"{network} refuses it with {answer.status}{told}: {mend}")


def _seconds(wait: object) -> float:
    """What a network says of its own waiting, as far as it is a number that somebody may mean; else 0."""
    try:
        seconds = float(wait) if isinstance(wait, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0 < seconds < 10**7 else 0.0


def base(environment: Mapping[str, str], name: str, usual: str) -> str:
    """Where a network's interface is: told by the environment, else its usual place. Raises Trouble."""
    said = environment.get(name, "").strip().rstrip("/") or usual
    if not said.startswith(("https://", "http://")) or "@" in said or any(one.isspace() for one in said):
        raise Trouble(f"{name} is no address", f"set {name} to one that begins with https://, or unset it")
    return said
