"""Telegram's Bot API on loopback, as far as a bot that listens needs it: updates that are kept until they are
confirmed, messages that were sent. What it does not know it refuses, and the test fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import pytest

TOKEN = "123456:dummy-token-of-no-bot"
NAME = "harbour_bot"
NOW = 1_777_896_000  # 2026-05-04 12:00 UTC
OWNER, GROUP, STRANGER = 11, -100_22, 33
UPDATES = {"limit", "timeout", "allowed_updates", "offset"}


@dataclass
class BotApi:
    """What the bot would be given. `faults` answer the next calls of a method in its stead: (method, status, body)."""

    url: str = ""
    updates: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    faults: list[tuple[str, int, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    members: int = 240
    hook: str = ""
    lock: Any = field(default_factory=Lock)

    def message(self, text: str, sender: int = OWNER, chat: int = 0, at: int = NOW, **more: Any) -> int:
        """Somebody writes something; gives the number of the update."""
        place = chat or sender
        kind = "private" if place == sender else "supergroup"
        told = {"message_id": len(self.updates) + 1, "date": at, "text": text, "chat": {"id": place, "type": kind},
                "from": {"id": sender, "is_bot": False, "first_name": "Mara"}}  # fmt: skip  # one value
        return self.update(message={**told, **more})

    def update(self, **what: Any) -> int:
        """Anything else comes to pass."""
        number = 700 + sum(1 for _ in self.updates) + self._gone
        self.updates.append({"update_id": number, **what})
        return number

    _gone: int = 0

    def answer(self, method: str, fields: dict[str, Any]) -> tuple[int, Any]:
        """Status and document for one call."""
        with self.lock:
            self.asked.append((method, fields))
            for fault in self.faults:
                if fault[0] == method:
                    self.faults.remove(fault)
                    return fault[1], fault[2]
            known = {
                "getUpdates": self._updates,
                "sendMessage": self._send,
                "getMe": self._me,
                "getChatMemberCount": self._count,
                "getWebhookInfo": self._hook,
            }
            if method not in known:
                return self._refuse(f"unknown method {method}")
            return known[method](fields)

    def _updates(self, fields: dict[str, Any]) -> tuple[int, Any]:
        if set(fields) - UPDATES or not 1 <= fields.get("limit", 100) <= 100:
            return self._refuse(f"getUpdates {fields}")
        offset = fields.get("offset", 0)
        kept = [one for one in self.updates if one["update_id"] >= offset]
        self._gone += len(self.updates) - len(kept)
        self.updates = kept
        return _ok(kept[: fields.get("limit", 100)])

    def _send(self, fields: dict[str, Any]) -> tuple[int, Any]:
        text = fields.get("text")
        if not isinstance(text, str) or not 1 <= len(text.encode("utf-16-le")) // 2 <= 4096:
            return self._refuse(f"sendMessage {fields}")
        self.sent.append(fields)
        return _ok({"message_id": len(self.sent), "date": NOW, "chat": {"id": fields["chat_id"]}, "text": text})

    def _me(self, fields: dict[str, Any]) -> tuple[int, Any]:
        return _ok({"id": 9, "is_bot": True, "username": NAME})

    def _count(self, fields: dict[str, Any]) -> tuple[int, Any]:
        return _ok(self.members)

    def _hook(self, fields: dict[str, Any]) -> tuple[int, Any]:
        return _ok({"url": self.hook, "pending_update_count": len(self.updates)})

    def _refuse(self, what: str) -> tuple[int, Any]:
        self.refused.append(what)
        return 404, {"ok": False, "error_code": 404, "description": "Not Found"}

    @property
    def said(self) -> list[str]:
        """What the bot said, oldest first."""
        return [one["text"] for one in self.sent]


def _ok(result: Any) -> tuple[int, Any]:
    return 200, {"ok": True, "result": result}


@contextmanager
def known_bot_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApi]:
    """One that the environment names, as it would name Telegram's own."""
    with bot_api() as made:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("TELEGRAM_API_URL", made.url)
        yield made


@contextmanager
def bot_api() -> Iterator[BotApi]:
    """Serves until the test is over; fails it for what a real one would not know."""
    api = BotApi()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            prefix, method = f"/bot{TOKEN}/", self.path.rpartition("/")[2]
            if self.path != prefix + method:
                status, body = 401, {"ok": False, "error_code": 401, "description": "Unauthorized"}
            else:
                status, body = api.answer(method, json.loads(raw or b"{}"))
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert api.refused == []
