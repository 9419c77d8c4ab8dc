"""The one gateway to the web: whatever address a person, a page or a redirect names, it asks public places alone.

A name is resolved once for each hop; every address it has is checked, and the connection goes to the very
address that was checked, so that a name which changes its mind is of no use. No proxy, no cookies, no retries.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol
from urllib.parse import urljoin

from ralph_mission.gateways.web_address import PORTS, Place, Refused, place, public
from ralph_mission.gateways.web_wire import BROKEN, Dial, Failed, Raw, dial, exchange
from ralph_mission.trouble import Trouble

AGENT = "ralph-mission"
CAP = 5_000_000  # bytes of an answer, decoded
TRIED = 4  # addresses of one name
FIELD = 300  # characters of a header that is kept
NONE: Mapping[str, str] = MappingProxyType({})
AGAIN = "nothing was lost; the next cycle tries again"
Resolve = Callable[[str, int], Sequence[str]]
"""Host and port to addresses. May raise OSError."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said; an error status is an answer too. `url` is where it was found in the end.

    `content` is decoded, and empty where `status` is 304: unchanged since `etag` or `modified`.
    """

    url: str
    status: int
    content: bytes
    content_type: str
    etag: str
    modified: str


class Web(Protocol):
    """Reads of the web, and questions that are asked by POST."""

    def get(
        self, url: str, *, etag: str = "", modified: str = "", headers: Mapping[str, str] = NONE, cap: int = CAP
    ) -> Answer:
        """Ask for `url`, following redirects. Raises Trouble (`who` is network) for whatever a network can do."""
        ...

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str] = NONE, cap: int = CAP) -> Answer:
        """Send `body`, once, and follow no redirect. Raises as `get`."""
        ...


def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system knows them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


@dataclass(frozen=True, slots=True)
class Guarded:
    """The web behind its guard.

    `allow` are hosts ("wiki", with all their ports) or "host:port" that may be private: never from a page, and never
    by a redirect from a place that is not among them.
    `seconds` bound one question with all its hops; `permit` is asked before each hop, once its address
    was found fit, and raises Trouble.
    """

    allow: Collection[str] = ()
    seconds: float = 20.0
    redirects: int = 5
    permit: Callable[[str], None] = lambda url: None
    resolve: Resolve = resolved
    dial: Dial = dial

    def get(
        self, url: str, *, etag: str = "", modified: str = "", headers: Mapping[str, str] = NONE, cap: int = CAP
    ) -> Answer:
        """As in `Web`."""
        until, asked = time.monotonic() + self.seconds, place(url)
        web, there, extra = self, asked, {**headers, **_conditions(etag, modified)}
        for _ in range(self.redirects + 1):
            raw = web._hop(there, "GET", extra, None, cap, until)
            if not (onward := _onward(raw, there)):
                return _answer(raw, there)
            if not there.among(web.allow):  # no stranger leads to what was allowed for our own questions
                web = replace(web, allow=())
            _may_follow(asked, there, onward, web.allow)
            if onward.origin != there.origin:
                extra = _conditions(etag, modified)  # what the caller's headers say is for the first place alone
            there = onward
        raise _trouble(asked, f"leads on more than {self.redirects} times")

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str] = NONE, cap: int = CAP) -> Answer:
        """As in `Web`."""
        there = place(url)
        return _answer(self._hop(there, "POST", headers, body, cap, time.monotonic() + self.seconds), there)

    def admit(self, url: str) -> None:
        """Nothing, where `url` may be asked; nothing is sent. Raises Trouble as `get` does before it asks."""
        self._addresses(place(url), time.monotonic() + self.seconds)

    def _hop(
        self, there: Place, method: str, headers: Mapping[str, str], body: bytes | None, cap: int, until: float
    ) -> Raw:
        addresses = self._addresses(there, until)
        self.permit(there.url)
        sent = {"User-Agent": AGENT, "Accept-Encoding": "gzip", "Connection": "close", **headers}
        try:
            return exchange(self._connected(there, addresses, until), there, method, sent, body, cap, until)
        except BROKEN as error:
            raise _trouble(there, self._said(error)) from None

    def _addresses(self, there: Place, until: float) -> Sequence[str]:
        found = _in_time(lambda: self.resolve(there.host, there.port), until)
        if isinstance(found, OSError):
            raise _trouble(there, "has no address that can be found", "look at the name and at the network")
        if found is None:
            raise _trouble(there, "was not found in time")
        if not found or not (there.among(self.allow) or all(map(public, found))):
            what = f"{there.authority} is not a public place, and was not asked"
            raise Refused(what, "if it is meant, name it in the environment's RALPH_WEB_ALLOW", who="network")
        return found[:TRIED]

    def _connected(self, there: Place, addresses: Sequence[str], until: float) -> socket.socket:
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                return self.dial(address, there.port, max(0.01, (until - time.monotonic()) / 2))
        return self.dial(addresses[-1], there.port, max(0.01, until - time.monotonic()))

    def _said(self, error: BaseException) -> str:
        match error:
            case Failed():
                return str(error)
            case TimeoutError():
                return f"did not answer within {self.seconds:g} s"
            case ssl.SSLCertVerificationError():
                return "has no certificate that can be trusted"
            case ssl.SSLError():
                return "does not speak TLS as it should"
            case ConnectionError():
                return "refused or broke the connection"
            case OSError():
                return "cannot be reached"
        return "does not speak HTTP as it should"


def _in_time(ask: Callable[[], Sequence[str]], until: float) -> Sequence[str] | OSError | None:
    """What `ask` gives, or raises; None when it is not done by then. The system's resolver cannot be interrupted."""
    found: list[Sequence[str] | OSError] = []

    def answer() -> None:
        try:
            found.append(ask())
        except (OSError, UnicodeError) as error:
            found.append(error if isinstance(error, OSError) else OSError())

    asking = threading.Thread(target=answer, daemon=True)
    asking.start()
    asking.join(max(0.0, until - time.monotonic()))
    return found[0] if found else None


def _onward(raw: Raw, there: Place) -> Place | None:
    """Where a redirect leads; None when it is none."""
    location = raw.headers.get("location", "")
    if raw.status not in (301, 302, 303, 307, 308) or not location:
        return None
    # Headers are read as Latin-1, and written in UTF-8 by those who write more than ASCII.
    written = location.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return place(urljoin(there.url, written))
    except (ValueError, Refused):
        raise _trouble(there, "leads on to an address that must not be asked") from None


def _may_follow(asked: Place, there: Place, onward: Place, allow: Collection[str]) -> None:
    if there.scheme == "https" and onward.scheme == "http":
        raise _trouble(there, "leads from https to http")
    usual = onward.port == PORTS[onward.scheme] or (onward.host, onward.port) == (asked.host, asked.port)
    if not usual and not onward.among(allow):
        raise _trouble(there, "leads on to an unusual port")


def _conditions(etag: str, modified: str) -> dict[str, str]:
    told = {"If-None-Match": _field(etag), "If-Modified-Since": _field(modified)}
    return {name: value for name, value in told.items() if value}


def _answer(raw: Raw, there: Place) -> Answer:
    told = {name: _field(raw.headers.get(name, "")) for name in ("content-type", "etag", "last-modified")}
    return Answer(there.url, raw.status, raw.content, told["content-type"], told["etag"], told["last-modified"])


def _field(value: str) -> str:
    """A header's value that may be kept and sent back; "" for any other."""
    return value if len(value) <= FIELD and re.fullmatch(r"[\x20-\x7e]*", value) else ""


def _trouble(there: Place, what: str, next_step: str = AGAIN) -> Trouble:
    return Trouble(f"{there.authority} {what}", next_step, who="network")
