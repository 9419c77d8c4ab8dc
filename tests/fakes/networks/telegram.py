"""The Bot API of Telegram, as far as posts go: HTML entities are parsed, lengths are counted after that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from tests.fakes.networks.serving import Asked, Endpoint, Refused, Server

TOKEN = "110201543:scripted-telegram-bot-token"
CHANNEL = "@ralph_of_tests"
TAGS = {"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "a", "code", "pre", "tg-spoiler", "blockquote"}
FIELDS = {
    "sendMessage": {"chat_id", "text", "parse_mode", "reply_parameters", "link_preview_options"},
    "sendPhoto": {"chat_id", "caption", "parse_mode", "reply_parameters"},
}


@dataclass(frozen=True, slots=True)
class Message:
    """One that was delivered: its text as people read it, or the caption of its photo."""

    id: int
    text: str
    photo: bytes = b""
    reply_to: int = 0


class TelegramServer(Server):
    """`delivered`: the messages, oldest first. `more` adds endpoints of methods that are not about posts."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered: list[Message] = []
        self.more: dict[tuple[str, str], Endpoint] = {}
        self.public = True

    @property
    def environment(self) -> dict[str, str]:
        """What a process is told of it."""
        return {"TELEGRAM_API_URL": self.url, "TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_CHANNEL_ID": CHANNEL}

    @property
    def texts(self) -> list[str]:
        """What was delivered, in words."""
        return [message.text for message in self.delivered]

    def endpoints(self) -> Mapping[tuple[str, str], Endpoint]:
        bot = "/bot(?P<token>[^/]+)/"
        return {
            ("POST", f"{bot}sendMessage"): self._message,
            ("POST", f"{bot}sendPhoto"): self._photo,
            ("GET", f"{bot}getMe"): self._me,
            ("GET", f"{bot}getChat"): self._chat,
            **self.more,
        }

    def unknown(self, asked: Asked) -> Mapping[str, Any]:
        return {"ok": False, "error_code": 404, "description": "Not Found"}

    def _me(self, asked: Asked) -> Mapping[str, Any]:
        allowed(asked)
        made = {"id": 110201543, "is_bot": True, "first_name": "Ralph", "username": "ralph_of_tests_bot"}
        return {"ok": True, "result": made}

    def _chat(self, asked: Asked) -> Mapping[str, Any]:
        allowed(asked)
        if asked.query.get("chat_id") != CHANNEL:
            raise refusal(400, "Bad Request: chat not found")
        return {"ok": True, "result": self.chat}

    @property
    def chat(self) -> Mapping[str, Any]:
        """The channel; one that is not public has no name."""
        name = {"username": CHANNEL.removeprefix("@")} if self.public else {}
        return {"id": -1001234567890, "type": "channel", "title": "Ralph", **name}

    def _message(self, asked: Asked) -> Mapping[str, Any]:
        return self._said(asked, "sendMessage", asked.fields.get("text", ""), 4096, b"")

    def _photo(self, asked: Asked) -> Mapping[str, Any]:
        _, photo = asked.files.get("photo", ("", b""))
        if not photo.startswith(b"\x89PNG\r\n\x1a\n"):
            raise refusal(400, "Bad Request: IMAGE_PROCESS_FAILED")
        return self._said(asked, "sendPhoto", asked.fields.get("caption", ""), 1024, photo)

    def _said(self, asked: Asked, method: str, text: str, limit: int, photo: bytes) -> Mapping[str, Any]:
        allowed(asked)
        if strange := set(asked.fields) - FIELDS[method]:
            raise refusal(400, f"Bad Request: unknown fields {sorted(strange)}")
        if asked.fields.get("chat_id") != CHANNEL:
            raise refusal(400, "Bad Request: chat not found")
        shown = parsed(text) if asked.fields.get("parse_mode") == "HTML" else text
        if not shown.strip() and not photo:
            raise refusal(400, "Bad Request: message text is empty")
        if len(shown.encode("utf-16-le")) // 2 > limit:
            raise refusal(400, "Bad Request: message is too long" if not photo else "Bad Request: caption is too long")
        reply = asked.fields.get("reply_parameters") or {}
        reply = json.loads(reply) if isinstance(reply, str) else reply
        answered = int(reply.get("message_id", 0))
        if answered and answered not in {message.id for message in self.delivered}:
            raise refusal(400, "Bad Request: message to be replied not found")
        message = Message(len(self.delivered) + 1, shown, photo, answered)
        self.delivered.append(message)
        made = {"message_id": message.id, "date": 1_700_000_000, "chat": self.chat, "text": shown}
        return {"ok": True, "result": made}


def allowed(asked: Asked) -> None:
    """Refuses whoever has another token."""
    if asked.found["token"] != TOKEN:
        raise refusal(401, "Unauthorized")


def refusal(status: int, description: str, **parameters: Any) -> Refused:
    """As the Bot API says no."""
    body = {"ok": False, "error_code": status, "description": description}
    return Refused(status, {**body, **({"parameters": parameters} if parameters else {})})


def parsed(text: str) -> str:
    """What people read of a text in the parse mode HTML. Raises Refused for what the Bot API does not parse."""
    reader = _Entities()
    reader.feed(text)
    reader.close()
    if reader.open:
        raise refusal(400, f"Bad Request: can't parse entities: can't find end tag of {reader.open[-1]}")
    return "".join(reader.read)


class _Entities(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.read: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in TAGS:
            raise refusal(400, f"Bad Request: can't parse entities: unsupported start tag {tag}")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise refusal(400, f"Bad Request: can't parse entities: unexpected end tag {tag}")

    def handle_data(self, data: str) -> None:
        if "<" in data and not self.rawdata.count("&lt;"):
            raise refusal(400, "Bad Request: can't parse entities: unescaped <")
        self.read.append(data)
