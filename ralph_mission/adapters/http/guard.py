"""The SSRF guard: whatever URL a person, a page or a redirect names, only public addresses are contacted.

A URL that two parsers could read differently is refused, not repaired: what was judged is what is requested. A name is
resolved once for each hop, every address is checked, and the connection goes to a checked address, so DNS rebinding
does not work. No proxy, no cookies, no retries.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urljoin

from ralph_mission.adapters.http.deadline import call_within
from ralph_mission.errors import UserError
from ralph_mission.safety.address import PORTS, AddressRefused, WebAddress, is_public, parse_address
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    import requests

AGENT = "ralph-mission"
CAP = 5_000_000  # bytes of an answer, decoded
TRIED = 4  # addresses of a name
FIELD = 300  # characters of a stored header
NONE: Mapping[str, str] = MappingProxyType({})
AGAIN = "nothing was lost; the next cycle tries again"
Resolve = Callable[[str, int], Sequence[str]]
"""Host and port to addresses. May raise OSError."""
Connect = Callable[[str, int, float], socket.socket]
"""(address, port, seconds) to a connected socket. May raise OSError."""


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A server's answer, also with an error status. `url`: the final URL.

    `content` is decoded, and empty if `status` is 304: unchanged since `etag` or `modified`.
    """

    url: str
    status: int
    content: bytes
    content_type: str
    etag: str
    modified: str


class Web(Protocol):
    """The web: GET and POST."""

    def get(
        self, url: str, *, etag: str = "", modified: str = "", headers: Mapping[str, str] = NONE, cap: int = CAP
    ) -> WebAnswer:
        """Request `url`, following redirects. Raises UserError (`who` is network) for any network failure."""
        ...

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str] = NONE, cap: int = CAP) -> WebAnswer:
        """Send `body`, once, and follow no redirect. Raises as `get`."""
        ...


def resolve_name(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, by the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def connect_to(address: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection to an address, without name resolution."""
    return socket.create_connection((address, port), timeout=seconds)


@dataclass(frozen=True, slots=True)
class GuardedWeb:
    """The web behind the guard.

    `allow`: hosts ("wiki", with all ports) or "host:port" that may be private; never from a page, nor by a redirect
    from a host that is not among them. `seconds`: for a request with all its hops. `permit`: called before each hop,
    once its address was accepted; may raise UserError.
    """

    allow: Collection[str] = ()
    seconds: float = 20.0
    redirects: int = 5
    permit: Callable[[str], None] = lambda url: None
    resolve: Resolve = resolve_name
    connect: Connect = connect_to

    def get(
        self, url: str, *, etag: str = "", modified: str = "", headers: Mapping[str, str] = NONE, cap: int = CAP
    ) -> WebAnswer:
        """Ask for `url`, following redirects."""
        until, first = time.monotonic() + self.seconds, parse_address(url)
        web, there, extra = self, first, {**headers, **_conditions(etag, modified)}
        for _ in range(self.redirects + 1):
            response = web._hop(there, "GET", extra, None, cap, until)
            if not (onward := _onward(response, there)):
                return _answer(response, there)
            if not there.among(web.allow):  # redirects from elsewhere must not lead to allowed private hosts
                web = replace(web, allow=())
            _may_follow(first, there, onward, web.allow)
            if onward.origin != there.origin:
                extra = _conditions(etag, modified)  # the caller's headers are for the first host alone
            there = onward
        raise _network_error(first, f"leads on more than {self.redirects} times")

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str] = NONE, cap: int = CAP) -> WebAnswer:
        """Send `body`, once, and follow no redirect."""
        there = parse_address(url)
        return _answer(self._hop(there, "POST", headers, body, cap, time.monotonic() + self.seconds), there)

    def admit(self, url: str) -> None:
        """Check `url` without sending anything. Raises UserError as `get` would."""
        self._addresses(parse_address(url), time.monotonic() + self.seconds)

    def _hop(
        self, there: WebAddress, method: str, headers: Mapping[str, str], body: bytes | None, cap: int, until: float
    ) -> requests.Response:
        from ralph_mission.adapters.http.client import HttpLimits, HttpSession, NoAnswer  # slow to import

        addresses = self._addresses(there, until)
        self.permit(there.url)
        remaining = max(0.01, until - time.monotonic())
        sent = {"User-Agent": AGENT, "Host": there.authority, **headers}
        with HttpSession(HttpLimits(remaining, remaining, cap), dial=self._dial(there, addresses)) as session:
            try:
                return session.request_exactly(method, there.url, sent, body)
            except NoAnswer as error:
                raise _network_error(there, str(error)) from None

    def _addresses(self, there: WebAddress, until: float) -> Sequence[str]:
        try:
            found = call_within(until - time.monotonic(), lambda: self.resolve(there.host, there.port))
        except TimeoutError:  # the system's resolver cannot be interrupted
            raise _network_error(there, "was not found in time") from None
        except (OSError, UnicodeError):
            hint = "check the network, the proxy, and the name if you chose it"
            raise _network_error(there, "cannot be resolved", hint) from None
        if not found or not (there.among(self.allow) or all(map(is_public, found))):
            what = f"{there.authority} is not a public place, and was not asked"
            raise AddressRefused(what, "if it is meant, name it in the environment's RALPH_WEB_ALLOW", who="network")
        return found[:TRIED]

    def _dial(self, there: WebAddress, addresses: Sequence[str]) -> Callable[[float], socket.socket]:
        """Connect to the first address that answers."""

        def dial(seconds: float) -> socket.socket:
            until = time.monotonic() + seconds
            for address in addresses[:-1]:
                with suppress(OSError):
                    return self.connect(address, there.port, max(0.01, (until - time.monotonic()) / 2))
            return self.connect(addresses[-1], there.port, max(0.01, until - time.monotonic()))

        return dial


def _onward(response: requests.Response, there: WebAddress) -> WebAddress | None:
    """The target of a redirect, or None."""
    location = response.headers.get("location", "")
    if response.status_code not in (301, 302, 303, 307, 308) or not location:
        return None
    # Headers are read as Latin-1, and written in UTF-8 by those who write more than ASCII.
    written = location.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return parse_address(urljoin(there.url, written))
    except (ValueError, AddressRefused):
        raise _network_error(there, "leads on to an address that must not be asked") from None


def _may_follow(first: WebAddress, there: WebAddress, onward: WebAddress, allow: Collection[str]) -> None:
    if there.scheme == "https" and onward.scheme == "http":
        raise _network_error(there, "leads from https to http")
    usual = onward.port == PORTS[onward.scheme] or (onward.host, onward.port) == (first.host, first.port)
    if not usual and not onward.among(allow):
        raise _network_error(there, "leads on to an unusual port")


def _conditions(etag: str, modified: str) -> dict[str, str]:
    fields = {"If-None-Match": _field(etag), "If-Modified-Since": _field(modified)}
    return {name: value for name, value in fields.items() if value}


def _answer(response: requests.Response, there: WebAddress) -> WebAnswer:
    fields = [_field(response.headers.get(name, "")) for name in ("content-type", "etag", "last-modified")]
    return WebAnswer(there.url, response.status_code, response.content, *fields)


def _field(value: str) -> str:
    """A header's value if it may be stored and sent back, or ""."""
    return value if len(value) <= FIELD and re.fullmatch(r"[\x20-\x7e]*", value) else ""


def _network_error(there: WebAddress, what: str, next_step: str = AGAIN) -> UserError:
    return UserError(f"{there.authority} {what}", next_step, who="network")
