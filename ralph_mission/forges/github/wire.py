"""The HTTP client: PyGithub's requester, without anything it would do on its own.

It follows a 301 even for a POST, which sends it a second time; so the connection hands it answers in
which it finds nothing to follow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

AGENT = "ralph_mission"
VERSION = "2022-11-28"
IDLE = 15.0  # seconds after which a connection is not used again
LARGEST = 32 * 1024 * 1024  # bytes of a reply, unpacked: a page of 100 bodies of 65,536 characters of 4 bytes fits
SLOWEST = 60.0  # seconds until a reply must have ended, from asking on; GitHub itself gives up after 10
CHUNK = 64 * 1024  # bytes that are unpacked at once
_TOO_SLOW = "an answer that does not end within {:.0f} s"
NOT_CONNECTED = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ConnectTimeout")


class Broken(OSError):
    """The network failed; a request may have been carried out."""


class Unsent(Broken):
    """The network failed before a request left: it was certainly not carried out."""


class Boundless(Broken):
    """A reply was given up because it grew too large or took too long. Asking again would be no better."""


class Wire:
    """A connection to one API with one token, which stands in no error, address or log."""

    def __init__(self, api_url: str, token: str, timeout: float) -> None:
        self.api_url, self._token, self.timeout = api_url.rstrip("/"), token, timeout
        self._used = 0.0

    def request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, dict[str, str], str]:
        """Status, headers (lower case; a redirect's place is `x-location`) and text.

        Raises Broken; of its kinds Unsent, and Boundless beyond LARGEST and SLOWEST.
        """
        accepted = {"Accept": "application/vnd.github+json", **headers}
        self._renew()
        try:
            status, found, text = self._requester.requestJson(method, path, None, accepted, body, self._line)
            return status, found, text
        except Broken:
            raise
        except OSError as error:  # as all errors of the HTTP library are
            raise (Unsent if _never_left(error) else Broken)(_reason(error)) from None
        except ValueError as error:  # a header that is no number, where it has to be one
            raise Broken(f"the answer cannot be read ({type(error).__name__})") from None
        finally:
            self._used = time.monotonic()

    def _renew(self) -> None:
        # A request that is sent down a connection which the other side just dropped is lost beyond knowing.
        if time.monotonic() - self._used > IDLE:
            self._line.inner.close()

    @property
    def graphql(self) -> str:
        """The address of the GraphQL API."""
        return str(self._requester.graphql_url)

    @cached_property
    def _requester(self) -> Any:
        from github import Auth, Github

        return Github(
            base_url=self.api_url,
            auth=Auth.Token(self._token),
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            user_agent=AGENT,
            timeout=max(1, int(self.timeout)),
            per_page=100,
            api_version=VERSION,
        ).requester

    @cached_property
    def _line(self) -> Any:
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

        place = urlsplit(self.api_url)
        kind: Any = HTTPRequestsConnectionClass if place.scheme == "http" else HTTPSRequestsConnectionClass
        inner = kind(place.hostname, place.port, retry=None, timeout=self.timeout)
        inner.session.stream = True  # a body is read by `_text`, within limits
        return _Line(inner)


@dataclass(frozen=True, slots=True)
class _Reply:
    """An answer as PyGithub must see it."""

    status: int
    headers: Mapping[str, str]
    text: str

    def getheaders(self) -> Iterable[tuple[str, str]]:
        return self.headers.items()

    def read(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Line:
    """PyGithub's connection, with answers as PyGithub must see them."""

    inner: Any

    def request(self, *arguments: Any) -> None:
        self.inner.request(*arguments)

    def getresponse(self) -> _Reply:
        until = time.monotonic() + SLOWEST
        return _in_time(lambda: self._reply(until), SLOWEST)

    def _reply(self, until: float) -> _Reply:
        answer = self.inner.getresponse()
        headers = {{"location": "x-location"}.get(n.lower(), n): v for n, v in answer.headers.items()}
        try:
            return _Reply(answer.status, headers, _text(answer.response.raw, until))
        except BaseException:
            answer.response.close()
            raise


def _in_time(get: Callable[[], _Reply], seconds: float) -> _Reply:
    """What `get` gives or raises. Raises Boundless after `seconds`.

    A socket's own time-out begins anew with every byte, so a thread is waited for: a name that is looked up,
    a handshake and headers are within the limit too. One that is given up ends with its connection.
    """
    found: list[_Reply] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(get())
        except BaseException as error:  # raised below, by whoever asked
            failed.append(error)

    thread = threading.Thread(target=run, name="reply", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise Boundless(_TOO_SLOW.format(seconds))
    return found[0]


def _text(raw: Any, until: float) -> str:
    """A body, unpacked and decoded. Raises Broken, Boundless."""
    from urllib3.exceptions import HTTPError

    found = bytearray()
    try:
        while chunk := raw.read1(CHUNK, decode_content=True):
            found += chunk
            if len(found) > LARGEST:
                raise Boundless(f"an answer of more than {LARGEST // 1024**2} MiB")
            if time.monotonic() > until:
                raise Boundless(_TOO_SLOW.format(SLOWEST))
    except HTTPError as error:
        raise Broken(_reason(error)) from None
    return found.decode("utf-8", "replace")


def _never_left(error: BaseException) -> bool:
    return any(sign in f"{type(error).__name__} {error}" for sign in NOT_CONNECTED)


def _reason(error: BaseException) -> str:
    """What went wrong, in words of ours: a foreign error's text may hold anything."""
    said = f"{type(error).__name__} {error}"
    table = {
        "NameResolution": "its name is unknown",
        "refused": "connection refused",
        "imed out": "no answer in time",
        "Timeout": "no answer in time",
        "SSL": "its certificate is not accepted",
        "Proxy": "the proxy refused",
        "reset": "connection reset",
        "closed": "connection closed",
        "aborted": "connection closed",
    }
    return next((words for sign, words in table.items() if sign in said), type(error).__name__)
