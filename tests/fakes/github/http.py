"""The wire: one connection, one request after the other, an answer or a deliberate lack of one."""

from __future__ import annotations

import json
import select
import socket
import struct
import traceback
from collections.abc import Mapping
from contextlib import suppress
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.github import git_http, rest
from tests.fakes.github.faults import Crash, Fault, Response, Silence, strike
from tests.fakes.github.nouns import REPOSITORY_ID, Request
from tests.fakes.github.refusal import Refusal, Unknown

if TYPE_CHECKING:
    from tests.fakes.github.server import FakeGitHub

PATIENCE = 120.0  # seconds a client that never leaves is kept waiting


class Server(ThreadingHTTPServer):
    """Loopback, a free port."""

    daemon_threads = True
    request_queue_size = 64
    fake: FakeGitHub

    def __init__(self) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), Handler)

    def hang_up(self) -> None:
        """End what clients keep open."""
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to print."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm: ClassVar[bool] = True

    def setup(self) -> None:
        super().setup()
        cast(Server, self.server).connections.add(self.connection)

    def finish(self) -> None:
        cast(Server, self.server).connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing; there is the journal."""

    def version_string(self) -> str:
        return "github.com"

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The `Date` of every reply, from the fake's clock."""
        return format_datetime(self.fake.clock.present(), usegmt=True)

    @property
    def fake(self) -> FakeGitHub:
        return cast(Server, self.server).fake

    @property
    def _headers(self) -> Mapping[str, str]:
        return cast(Mapping[str, str], self.headers)  # by name, whatever its case

    def _any(self) -> None:
        raw = self._body()
        request, root = _request(self.fake, self.command, self.path)
        request.conditional = bool(self.headers.get("If-None-Match"))
        token = self.fake.world.tokens.get(rest.credential(self._headers) or "")
        request.login = token.account.login if token else ""
        self.fake.received(request)
        try:
            self._answer(request, root, raw)
        except Silence:
            self._wait()
        except (Crash, BrokenPipeError, ConnectionResetError):
            self._drop()
        except Exception:  # a hook of a test that fails must not fail in silence
            self.fake.unknown.append(traceback.format_exc())
            self._drop()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _any

    def _answer(self, request: Request, root: str, raw: bytes) -> None:
        fake = self.fake
        problem = _parse(request, raw)
        fake.script.tell_before(request)
        fault = fake.script.take(request)
        if fault and not fault.applies:
            response = strike(fault, request, fake.world)
        else:
            response = problem or self._respond(request, root, raw)
            fake.script.tell_after(request, response)
            if fault and response.status < 400:
                response = strike(fault, request, fake.world)
        self._send(request, response, fault)

    def _respond(self, request: Request, root: str, raw: bytes) -> Response:
        fake = self.fake
        try:
            if request.transport == "storage":
                return _stored(fake, request, self._headers)
            if request.transport == "git":
                return git_http.respond(fake.world, request, self._headers, raw)
            with fake.world.lock:
                return rest.reply(fake.world, request, self._headers, root, fake.validate)
        except Unknown as what:
            fake.unknown.append(str(what))
            return rest.unknown(str(what))
        except Exception:  # whatever breaks in the fake is the suite's to know
            fake.unknown.append(traceback.format_exc())
            return Response(500, {}, Refusal(500, traceback.format_exc()).payload)

    def _send(self, request: Request, response: Response, fault: Fault | None) -> None:
        content = response.content
        if content is None:
            content = b"" if response.payload is None else json.dumps(response.payload).encode()
        shown = self.fake.world.tokens.get(rest.credential(self._headers) or "")
        if request.transport == "git":
            # On a connection that was used before, git's HTTP library repeats a request that got no answer, unseen.
            response.headers["Connection"] = "close"
        else:
            response.headers = rest.standing(self.fake.world, shown) | response.headers
        response.headers.setdefault("Content-Type", "application/json; charset=utf-8")
        request.status = response.status
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and response.status not in (204, 304):
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _wait(self) -> None:
        """Until the client leaves or the fake closes."""
        select.select([self.connection, self.fake.closing], [], [], PATIENCE)
        self.close_connection = True

    def _drop(self) -> None:
        """Close without a word, so that the client sees a reset."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _request(fake: FakeGitHub, method: str, target: str) -> tuple[Request, str]:
    """The request without /api/v3, a repository's number replaced by its name; and the address of the API used."""
    parts = urlsplit(target)
    path = parts.path
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for prefix in ("", "/_moved"):
        if path.startswith(f"{prefix}/{fake.repository}.git/"):
            path = path.removeprefix(prefix)
            below = path.removeprefix(f"/{fake.repository}.git") + (f"?{parts.query}" if parts.query else "")
            return Request(method, path, query, transport="git", below=below), ""
    if path.startswith("/_stored/"):
        return Request(method, path, query, transport="storage", below=path), ""
    root = fake.api_url if path.startswith("/api/v3/") else fake.url
    path = path.removeprefix("/api/v3")
    home = f"/repos/{fake.repository}"
    numbered = f"/repositories/{REPOSITORY_ID}"
    if path == numbered or path.startswith(numbered + "/"):
        path = home + path.removeprefix(numbered)
    if path in ("/graphql", "/api/graphql"):
        return Request(method, "/graphql", query, transport="graphql", below="/graphql"), root
    below = path.removeprefix(home) if path.startswith(home + "/") else path
    return Request(method, unquote(path), query, below=unquote(below), quoted=path), root


def _stored(fake: FakeGitHub, request: Request, headers: Mapping[str, str]) -> Response:
    """A log or an archive where GitHub keeps it: another place, which must not be told the token."""
    if headers.get("Authorization"):
        raise Unknown(f"{request.path}: a token was sent to the storage of logs and archives")
    content = fake.world.stored.get(request.path.removeprefix("/_stored/"))
    return Response(404 if content is None else 200, {"Content-Type": "application/octet-stream"}, None, content or b"")


def _parse(request: Request, raw: bytes) -> Response | None:
    """Read the JSON of a body; the reply to one that is none."""
    if request.transport == "git" or not raw:
        return None
    try:
        request.body = json.loads(raw)
    except ValueError:
        return Response(400, {}, Refusal(400, "Problems parsing JSON").payload)
    if isinstance(request.body, dict | list):
        if request.transport == "graphql" and "createCommitOnBranch" in str(request.body):
            request.below = "/git-receive-pack"
        return None
    return Response(400, {}, Refusal(400, "Body should be a JSON object").payload)
