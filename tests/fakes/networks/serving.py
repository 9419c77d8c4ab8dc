"""What the three servers have in common: threads on loopback, a journal, faults in order, and a strict end.

An endpoint is a function from a request to an answer, by method and the pattern of a path. Whatever has none is refused
with 404, remembered, and fails the test when the server is left.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl

PATIENCE = 60  # seconds after which a hanging answer gives up, so that no thread stays


class Refused(Exception):
    """A request that the network would not take: `status` and what it says about it."""

    def __init__(self, status: int, body: Mapping[str, Any], **headers: str) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body, self.headers = status, body, headers


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with the next request that changes something.

    `delivered`: it went through all the same. `cut`: the connection ends without an answer; `hang`: no answer comes
    before the client gives up. Else `status`, with `body` as it stands (bytes) or as JSON, and `headers`.
    """

    status: int = 500
    delivered: bool = False
    cut: bool = False
    hang: bool = False
    body: bytes | Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `fields`: JSON, form fields or those of a multipart body; `files`: name -> (file name, bytes)."""

    method: str
    path: str
    url: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    fields: Mapping[str, Any]
    files: Mapping[str, tuple[str, bytes]]
    found: Mapping[str, str] = field(default_factory=dict)


Endpoint = Callable[[Asked], Mapping[str, Any] | None]
"""JSON to be answered with 200, None for 204. May raise Refused."""


class Server:
    """One network. `faults` are taken in order by requests that are no GET.

    `twice`: texts that came again and were refused because they are there already.
    """

    def __init__(self) -> None:
        self.journal: list[Asked] = []
        self.refused: list[str] = []
        self.twice: list[str] = []
        self.faults: deque[Fault | None] = deque()
        self._lock, self._over = threading.Lock(), threading.Event()

    def endpoints(self) -> Mapping[tuple[str, str], Endpoint]:
        """By method and the regular expression of a path, whose groups are in `Asked.found`."""
        raise NotImplementedError

    def unknown(self, asked: Asked) -> Mapping[str, Any]:
        """What the network says where there is nothing."""
        return {"message": "404: Not Found", "code": 0}

    def fail(self, *faults: Fault | None) -> None:
        """The next requests that change something go wrong like this; None: that one goes well."""
        self.faults.extend(faults)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def sent(self) -> list[Asked]:
        """The requests that would have changed something."""
        return [one for one in self.journal if one.method != "GET"]

    def __enter__(self) -> Self:
        network = self

        class Handler(_Handler):
            served = network

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        if kind is None:
            assert not self.refused, f"asked for what the network does not have: {self.refused}"

    def answer(self, asked: Asked) -> tuple[int, Mapping[str, Any] | None, Mapping[str, str]]:
        """Status, JSON and headers; what has no endpoint is refused for ever."""
        with self._lock:
            for (method, pattern), endpoint in self.endpoints().items():
                match = re.fullmatch(pattern, asked.path)
                if match and method == asked.method:
                    asked = Asked(*(getattr(asked, name) for name in Asked.__slots__[:-1]), match.groupdict())
                    self.journal.append(asked)
                    return self._fulfilled(endpoint, asked)
            self.refused.append(f"{asked.method} {asked.path}")
            return 404, self.unknown(asked), {}

    def _fulfilled(self, endpoint: Endpoint, asked: Asked) -> tuple[int, Mapping[str, Any] | None, Mapping[str, str]]:
        fault = self.faults.popleft() if self.faults and asked.method != "GET" else None
        if fault and not fault.delivered:
            raise _Broken(fault)
        try:
            made = endpoint(asked)
        except Refused as refusal:
            return refusal.status, refusal.body, refusal.headers
        if fault:
            raise _Broken(fault)
        return 200 if made is not None else 204, made, {}

    def wait(self) -> None:
        """Until the server is left."""
        self._over.wait(PATIENCE)


class _Broken(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Server

    def log_message(self, *_: object) -> None:
        """The journal has it."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        try:
            status, body, headers = self.served.answer(self._asked())
        except _Broken as broken:
            self._break(broken.fault)
        else:
            self._send(status, b"" if body is None else json.dumps(body).encode(), headers)

    def _break(self, fault: Fault) -> None:
        if fault.hang:
            self.served.wait()
        if fault.hang or fault.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            raw = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
            self._send(fault.status, raw, fault.headers)

    def _asked(self) -> Asked:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        kind = self.headers.get("content-type", "")
        fields, files = _read(kind, raw)
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        url = f"http://{headers.get('host', '')}{self.path}"
        return Asked(self.command, path, url, dict(parse_qsl(query)), headers, fields, files)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _read(kind: str, raw: bytes) -> tuple[Mapping[str, Any], Mapping[str, tuple[str, bytes]]]:
    if kind.startswith("application/json"):
        return json.loads(raw or b"{}"), {}
    if kind.startswith("multipart/form-data"):
        return _multipart(kind, raw)
    return dict(parse_qsl(raw.decode(), keep_blank_values=True)), {}


def _multipart(kind: str, raw: bytes) -> tuple[Mapping[str, Any], Mapping[str, tuple[str, bytes]]]:
    whole = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw, policy=HTTP)
    fields: dict[str, Any] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for part in whole.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if part.get_filename():
            files[name] = (str(part.get_filename()), content)
        else:
            fields[name] = content.decode()
    if "payload_json" in fields:
        fields |= json.loads(fields.pop("payload_json"))
    return fields, files
