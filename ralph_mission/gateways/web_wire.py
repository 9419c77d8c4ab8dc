"""One request over one connection to one address, in bounded time and bytes.

Python's http.client speaks HTTP over a socket that is connected already, so that nothing is ever resolved twice.
It reads through `_Stream`, where every byte that comes (status, headers, chunks, body) is counted and clocked.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse

from ralph_mission.gateways.web_address import Place

HEADERS = 100_000  # bytes beside the body
CHUNK = 65_536
ENCODINGS = ("gzip", "x-gzip", "deflate")
Dial = Callable[[str, int, float], socket.socket]
"""Address, port and seconds to a connected socket. May raise OSError."""


class Failed(Exception):
    """What a server did that it should not have: the end of a sentence about it."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer of one server: `headers` by their names in lower case, `content` decoded."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def dial(address: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection to an address, which is not resolved any more."""
    return socket.create_connection((address, port), timeout=seconds)


def exchange(
    plug: socket.socket,
    place: Place,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None,
    cap: int,
    until: float,
) -> Raw:
    """Ask, over a connected socket, which is closed in the end. `until` by the monotonic clock; `cap` in bytes.

    Raises what `BROKEN` lists.
    """
    with plug:
        plug.settimeout(_left(until))
        secure = _context().wrap_socket(plug, server_hostname=place.host) if place.scheme == "https" else plug
        with secure:
            speaking = HTTPConnection(place.host, place.port)
            speaking.auto_open = 0
            speaking.sock = _Clocked(secure, until, cap + HEADERS)
            try:
                speaking.request(method, place.target, body, {"Host": place.authority, **headers})
            except ValueError:  # a line break in one of them
                raise Failed("cannot be asked with these headers") from None
            with speaking.getresponse() as response:
                return _raw(response, cap)


def _raw(response: HTTPResponse, cap: int) -> Raw:
    headers = {name.lower(): value for name, value in response.getheaders()}
    if response.status in (204, 304) or 300 <= response.status < 400:
        return Raw(response.status, headers, b"")
    if response.length is not None and response.length > cap:
        raise Failed(f"answers with more than {cap:,} bytes")
    return Raw(response.status, headers, _content(response, headers.get("content-encoding", ""), cap))


def _content(response: HTTPResponse, encoding: str, cap: int) -> bytes:
    decoder = _decoder(encoding.strip().lower())
    kept, came = bytearray(), False
    while chunk := response.read(CHUNK):
        came = True
        kept += decoder.decompress(chunk, cap + 1 - len(kept)) if decoder else chunk
        if len(kept) > cap:
            raise Failed(f"answers with more than {cap:,} bytes")
    if response.length or (decoder and came and not decoder.eof):
        raise Failed("broke off in the middle of its answer")
    return bytes(kept)


def _decoder(encoding: str) -> zlib._Decompress | None:
    """What undoes one encoding. Several, one in the other, are what nobody needs who means well."""
    if encoding in ("", "identity"):
        return None
    if encoding not in ENCODINGS:
        raise Failed("answers in an encoding that was not asked for")
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # tells gzip and zlib apart by itself


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Clocked:
    """As much of a socket as http.client uses."""

    def __init__(self, plug: socket.socket, until: float, most: int) -> None:
        self._plug, self._until, self._most = plug, until, most

    def sendall(self, data: bytes) -> None:
        self._plug.settimeout(_left(self._until))
        self._plug.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Stream(self._plug, self._until, self._most), CHUNK)

    def close(self) -> None:
        """Whoever opened it closes it."""


class _Stream(io.RawIOBase):
    """What comes from a socket, until a moment and up to so many bytes."""

    def __init__(self, plug: socket.socket, until: float, most: int) -> None:
        self._plug, self._until, self._room = plug, until, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what a BufferedReader hands over
        self._plug.settimeout(_left(self._until))
        came = self._plug.recv_into(buffer)
        self._room -= came
        if self._room < 0:
            raise Failed("sends more than was asked for")
        return came


BROKEN = (Failed, OSError, HTTPException, ValueError, zlib.error)
"""Everything that a request may raise."""
