"""The server of a scripted model: threads on loopback, one script, one journal."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fakes.model import dialects
from tests.fakes.model.dialects import Dialect, Unknown
from tests.fakes.model.script import Fault, Reply, say

KEY = "sk-ant-scripted-model-no-key-of-anybody"
ASIDE = say("ok", input_tokens=10, output_tokens=1)
"""What a request without tools gets: it is none of an agent's."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; `aside` is one that is no agent's turn, `at` is monotonic, in seconds.

    `raw` is all of it: its first line with the query, every header, and the body, unpacked if it was packed.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float
    dialect: str = ""
    aside: bool = False
    tools: tuple[str, ...] = ()
    raw: bytes = b""

    @property
    def text(self) -> str:
        """Everything in it, to look for what a client told its model."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def model(self) -> str:
        """The model that is asked for."""
        named = self.body.get("model") if isinstance(self.body, dict) else ""
        return str(named or self.path.rpartition("/models/")[2].partition(":")[0])


Step = Reply | Fault | Callable[[Request], "Reply | Fault"]


class ScriptedModel:
    """A model that gives `script` in order, and then only refuses. `key` None takes any key."""

    def __init__(self, script: Sequence[Step], key: str | None = KEY) -> None:
        self.script, self.key = list(script), key
        self.journal: list[Request] = []
        self.refused: list[str] = []
        self._given, self._lock = 0, threading.Lock()

    def __enter__(self) -> Self:
        model = self

        class Handler(ModelHandler):
            served = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def turns(self) -> list[Request]:
        """The requests of agents, each of which took a step of the script."""
        return [one for one in self.journal if one.dialect and not one.aside]

    @property
    def said_all(self) -> bool:
        """Whether every step of the script was given."""
        return self._given == len(self.script)

    def asked(self, request: Request) -> None:
        """Write it into the journal."""
        with self._lock:
            self.journal.append(request)

    def refuse(self, what: str) -> str:
        """Remember that something was asked that nobody may answer."""
        with self._lock:
            self.refused.append(what)
        return what

    def step(self, request: Request) -> tuple[Reply | Fault, str]:
        """The next step and its name. Raises Unknown when the script is over."""
        with self._lock:
            at, self._given = self._given, min(self._given + 1, len(self.script))
        if at == len(self.script):
            raise Unknown(f"the script is over after {at} steps")
        made = self.script[at]
        return (made if isinstance(made, Reply | Fault) else made(request)), str(at)


class ModelHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: ScriptedModel
    content = b""

    def log_message(self, *_: object) -> None:
        """The journal has it."""

    def do_HEAD(self) -> None:
        self._asked(None)
        self.send_answer(200, {})

    def do_GET(self) -> None:
        request = self._asked(None)
        if request.path.endswith("/models"):
            self.send_answer(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []})
        else:
            self.send_answer(404, {"error": {"message": self.served.refuse(f"GET {request.path}")}})

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        if (answer := dialects.beside(path, body)) is not None:
            self._asked(body)
            self.send_answer(200, answer)
            return
        try:
            self._answer(path, dialects.of(path), body)
        except Unknown as what:
            self.send_answer(404, {"error": {"type": "not_found_error", "message": self.served.refuse(f"POST {what}")}})

    def _answer(self, path: str, dialect: Dialect, body: Any) -> None:
        tools = dialect.tools(dialect.checked(body))
        request = self._asked(body, dialect.name, not tools, tools)
        if not self._allowed():
            self.served.refuse(f"{path}: not the key")
            self.send_answer(401, dialect.error(401, "invalid x-api-key"))
            return
        step, name = (ASIDE, "aside") if request.aside else self.served.step(request)
        time.sleep(step.delay)
        if isinstance(step, Fault):
            self.send_answer(step.status, dialect.error(step.status, step.message), step.headers)
        elif body.get("stream") or path.endswith(":streamGenerateContent"):
            self._stream(dialect, dialect.stream(body, step, name))
        else:
            self.send_answer(200, dialect.whole(body, step, name))

    def _allowed(self) -> bool:
        given = [self.headers.get(name, "") for name in ("x-api-key", "authorization", "x-goog-api-key")]
        return self.served.key is None or self.served.key in (one.removeprefix("Bearer ") for one in given)

    def _asked(self, body: Any, dialect: str = "", aside: bool = False, tools: tuple[str, ...] = ()) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.partition("?")[0]
        raw, self.content = self.raw_requestline + bytes(self.headers) + self.content, b""
        request = Request(self.command, path, headers, body, time.monotonic(), dialect, aside, tools, raw)
        self.served.asked(request)
        return request

    def _body(self) -> Any:
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        raw = self._chunks() if chunked else self.rfile.read(int(self.headers.get("content-length") or 0))
        self.content = gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    def _chunks(self) -> bytes:
        raw = b""
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            raw += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def send_answer(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        every = {"content-type": "application/json", "content-length": str(len(content)), "request-id": "req_scripted"}
        for name, value in {**every, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # a client that reads no further is no fault of ours
                self.wfile.write(content)

    def _stream(self, dialect: Dialect, events: Sequence[dialects.Json | str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if dialect.events and isinstance(event, dict) else ""
            self.wfile.write(f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
        self.close_connection = True
