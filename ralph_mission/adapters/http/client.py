"""The HTTP client: `requests` with a size limit and a deadline, without retries or redirects.

Every error says what matters for a mutation: whether the request may have been carried out. No error shows a URL, as
some are secret.
"""

from __future__ import annotations

import io
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cache
from http.client import HTTPResponse, IncompleteRead
from socket import gaierror, socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from ralph_mission.adapters.http.deadline import call_within
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

PIECE = 65_536  # bytes read at once
ENCODINGS = ("gzip", "x-gzip", "deflate")
BROKE_OFF = "broke off in the middle of its answer"
LATE = "did not answer in time"
UNFIT = "cannot be asked with this address or these headers"
Dial = Callable[[float], socket]
"""(host, port, seconds) to a connected socket. May raise OSError."""


class NoAnswer(OSError):
    """No usable answer; the text completes a sentence about the server.

    `sent`: the request may have been carried out. `final`: retrying would not help.
    """

    def __init__(self, why: str, sent: bool = True, final: bool = False) -> None:
        super().__init__(why)
        self.sent, self.final = sent, final


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """`seconds` for a request and its whole answer, `pause` for each wait in between; `size` in bytes, decoded."""

    seconds: float
    pause: float
    size: int


class HttpSession(requests.Session):
    """A `requests` session that reads whole answers and ignores the machine's .netrc.

    `rewrite` replaces the beginning of a URL. A connection is reused within `idle` seconds. With `dial` no name is
    resolved here, and proxies of the environment are ignored.
    """

    def __init__(
        self, limits: HttpLimits, rewrite: Mapping[str, str] | None = None, idle: float = 0.0, dial: Dial | None = None
    ) -> None:
        super().__init__()
        self.limits, self.rewrite, self.idle, self._dial = limits, dict(rewrite or {}), idle, dial
        self.auth, self.trust_env, self._used = _add_no_login, dial is None, 0.0
        self.headers.update({"Accept-Encoding": "gzip"} | ({} if idle else {"Connection": "close"}))
        self.mount("http://", _Adapter())
        self.mount("https://", _Adapter())

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]  # fewer names
        """As in requests. Raises NoAnswer."""
        for begins, other in self.rewrite.items():
            url = other.rstrip("/") + url.removeprefix(begins) if url.startswith(begins) else url
        try:
            return super().request(method, url, **options)
        except (requests.RequestException, ValueError):  # of a URL or a header
            raise NoAnswer(UNFIT, sent=False, final=True) from None

    def request_exactly(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> requests.Response:
        """Request `url` exactly as given, without normalisation. Raises NoAnswer."""
        try:
            request = self.prepare_request(requests.Request(method, url, dict(headers), data=body))
        except (requests.RequestException, ValueError):
            raise NoAnswer(UNFIT, sent=False, final=True) from None
        request.url = url
        return self.send(request)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """As in requests. Raises NoAnswer."""
        exchange = _Exchange(self._dial)
        options |= {"timeout": self.limits.pause, "allow_redirects": False, "stream": True}

        def ask() -> requests.Response:
            _EXCHANGE.set(exchange)
            return _read(super(HttpSession, self).send(request, **options), self.limits.size)

        if time.monotonic() - self._used > self.idle:
            self.close()  # a request sent on a connection that was just dropped is in doubt
        try:
            return call_within(self.limits.seconds, ask, "ralph http")
        except TimeoutError:
            raise NoAnswer(LATE, sent=exchange.give_up(), final=True) from None
        except NoAnswer:
            raise
        except (requests.RequestException, HTTPError, OSError, ValueError, zlib.error) as error:
            raise NoAnswer(_reason(error), sent=exchange.sent) from None
        except BaseException:
            exchange.give_up()
            raise
        finally:
            self._used = time.monotonic()
            if not self.idle:
                self.close()

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: requests would read the redirect's answer even without following it."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Certificates of this machine or of SSL_CERT_FILE, and those of requests."""
    context = ssl.create_default_context()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context


class _Exchange:
    """A request in progress, in its own thread: whether anything was sent, and whether it is over."""

    def __init__(self, dial: Dial | None) -> None:
        self.dial, self.sent = dial, False
        self._lock, self._over = threading.Lock(), False

    def begin(self) -> None:
        """To be called before anything is sent. Raises TimeoutError."""
        with self._lock:
            self.require_time()
            self.sent = True

    def require_time(self) -> None:
        """To be called before anything is read. Raises TimeoutError."""
        if self._over:
            raise TimeoutError

    def give_up(self) -> bool:
        """From now on nothing is sent, and nothing that comes is read. Whether something was sent."""
        with self._lock:
            self._over = True
            return self.sent


_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")


class _Stream(io.RawIOBase):
    """The server's answer, cut off when the request is over, so that an endless answer keeps no thread."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        _EXCHANGE.get().require_time()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(HTTPResponse):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fp = io.BufferedReader(_Stream(self.fp.detach()))


class _Connection(HTTPConnection):
    response_class = _Answer

    def _new_conn(self) -> socket:
        dial = _EXCHANGE.get().dial
        return dial(float(self.timeout or 0)) if dial else super()._new_conn()

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        _EXCHANGE.get().begin()
        super().send(data)


class _SecureConnection(_Connection, HTTPSConnection):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"ssl_context": trusted_certificates()})


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Adapter(HTTPAdapter):
    """An adapter of requests; never retries."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        if proxy.lower().startswith("socks"):
            _EXCHANGE.get().begin()  # its connections are its own
        else:
            manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        if verify is not True:  # except another bundle of the environment; verification cannot be switched off
            super().cert_verify(conn, url, verify or True, cert)  # type: ignore[no-untyped-call]  # in its stubs


def _add_no_login(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Do nothing, where requests would use ~/.netrc."""
    return request


def _read(response: requests.Response, size: int) -> requests.Response:
    """Read an answer to its end. Raises NoAnswer for more than `size` bytes."""
    with response:
        answer = requests.Response()
        answer.status_code, answer.reason, answer.url = response.status_code, response.reason, response.url
        answer.headers, answer.encoding, answer.request = response.headers, response.encoding, response.request
        answer.raw = io.BytesIO(_unpack(response.raw, response.headers.get("Content-Encoding", ""), size))
    _ = answer.content  # is kept from now on, also where somebody closes the answer
    return answer


def _unpack(raw: Any, encoding: str, size: int) -> bytes:
    too_much = NoAnswer(f"answers with more than {size:,} bytes", final=True)
    if (raw.length_remaining or 0) > size:
        raise too_much
    decoder = _decoder(encoding.strip().lower())
    content, received = bytearray(), 0
    while piece := raw.read1(PIECE, decode_content=False):
        received += len(piece)
        content += decoder.decompress(piece, size + 1 - len(content)) if decoder else piece
        if max(received, len(content)) > size:
            raise too_much
    if decoder and received and not decoder.eof:
        raise NoAnswer(BROKE_OFF)
    return bytes(content)


def _decoder(encoding: str) -> zlib._Decompress | None:
    """A decoder for one content encoding. Nested ones are refused: only attackers use them."""
    if encoding in ("", "identity"):
        return None
    if encoding not in ENCODINGS:
        raise NoAnswer("answers in an encoding that was not requested")
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # tells gzip and zlib apart by itself


def _reason(error: BaseException) -> str:
    """The reason in our own words, as a foreign error's text may contain anything."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    match error:
        case TimeoutError():
            return LATE
        case ssl.SSLCertVerificationError():
            return "has no certificate that can be trusted"
        case ssl.SSLError():
            return "does not speak TLS as it should"
        case gaierror():
            return "cannot be resolved"
        case ConnectionError():
            return "refused or broke the connection"
        case IncompleteRead():
            return BROKE_OFF
        case OSError() if not isinstance(error, requests.RequestException):
            return "cannot be reached"
    return "does not speak HTTP as it should"


MOST = 4 * 1024 * 1024  # bytes of an answer


def open_session(seconds: float, rewrite: Mapping[str, str] | None = None) -> HttpSession:
    """A session whose answers begin within `seconds` and end within twice that."""
    return HttpSession(HttpLimits(2 * seconds, seconds, MOST), rewrite)


def ask_network(network: str, call: Callable[[], requests.Response]) -> requests.Response:
    """The result of `call`. Raises UserError if there is no answer."""
    try:
        return call()
    except NoAnswer as error:
        raise UserError(f"{network} gives no answer ({error})", "look at the network", who="network") from None


def read_json(
    network: str, session: HttpSession, url: str, headers: Mapping[str, str] | None = None, **query: str
) -> Any:
    """The JSON document at a URL. Raises UserError."""
    answer = ask_network(network, lambda: session.get(url, headers=dict(headers or {}), params=query))
    if answer.status_code != 200:
        raise refusal(network, answer.status_code)
    try:
        return answer.json()
    except (ValueError, RecursionError):
        raise UserError(f"{network} answers with no JSON", "look at its address", who="network") from None


def refusal(network: str, status: int) -> UserError:
    """An error status as a UserError."""
    hints = {401: "look at its token", 403: "its token may not, or the API's tier does not have it",
             404: "look at its address and ids", 429: "it is tried again at the next look"}  # fmt: skip  # one table
    who = "network" if status == 429 or status >= 500 else "you"
    return UserError(f"{network} answers {status}", hints.get(status, "see docs/publishing.md"), who=who)
