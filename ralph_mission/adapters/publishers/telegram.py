"""Telegram: a bot's messages by the Bot API. Its token is part of every URL, so URLs are never shown.

Texts are plain: escaped for the parse mode HTML, without mark-up.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ralph_mission.adapters.publishers.channel import Draw, read_secrets
from ralph_mission.adapters.publishers.publisher import PartResult, in_order
from ralph_mission.adapters.publishers.wire import PATIENCE, Answer, ask, base, no, open_session
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Post
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.mission.publishing.texts import units
from ralph_mission.safety.text import inline_words
from ralph_mission.values import dataclass

NAMES = ("TELEGRAM_BOT_TOKEN", "TELEGRAM_CHANNEL_ID")
USUAL = "https://api.telegram.org"
CAPTION = 1_024  # UTF-16 units
KEYS = f"look at {' and '.join(NAMES)}, and whether the bot may write there"
HINTS = dict.fromkeys((400, 401, 403, 404), KEYS)


@dataclass(frozen=True, slots=True)
class TelegramChannel:
    """A chat, channel or group, through a bot."""

    url: str
    token: str = field(repr=False)
    chat: str
    draw: Draw
    patience: float = PATIENCE
    network: str = "telegram"

    def publish(self, key: str, post: Post) -> Receipt:
        """Send a message for each part. The chart has the first as its caption, or else follows."""
        picture = self.draw(post.chart) if post.chart else b""
        return in_order(key, post.parts, lambda at, part, to: self._say(part, to, b"" if at else picture))

    def find(self, key: str) -> Receipt | None:
        """None: a bot cannot read a chat's history."""
        return None

    def check(self) -> str:
        """Which bot writes in which chat. Raises UserError."""
        bot = self._result(self._call("getMe")).get("username")
        chat = self._result(self._call("getChat", chat_id=self.chat))
        title = chat.get("title") or chat.get("username") or "a private chat"
        return f"as {inline_words(str(bot), 60)} in {inline_words(str(title), 60)}"

    def _result(self, answer: Answer) -> Mapping[str, Any]:
        if _result(answer) is None:
            raise UserError(no("Telegram", answer, _reason(answer), HINTS, _wait(answer)).detail, KEYS)
        return _result(answer) or {}

    def _say(self, text: str, to: str, picture: bytes) -> PartResult:
        if picture and units(text) <= CAPTION:
            first = self._photo(picture, to, caption=html.escape(text, quote=False), parse_mode="HTML")
            if first.status != "failed" or first.reason is FailureReason.LATER:
                return first
            picture = b""  # refused, so certainly not there
        answer = self._post("sendMessage", to, text=html.escape(text, quote=False), parse_mode="HTML")
        result = self._said(answer)
        if picture and result.out:
            self._photo(picture, result.id)
        return result

    def _photo(self, picture: bytes, to: str, **fields: str) -> PartResult:
        url = self._address("sendPhoto")
        data = {"chat_id": self.chat, **fields, **({"reply_parameters": json.dumps(_reply(to))} if to else {})}
        files = {"photo": ("chart.png", picture, "image/png")}
        return self._said(ask(lambda: open_session(self.patience).request("POST", url, data=data, files=files)))

    def _post(self, method: str, to: str, **fields: object) -> Answer:
        url, more = self._address(method), {"reply_parameters": _reply(to)} if to else {}
        return ask(
            lambda: open_session(self.patience).request("POST", url, json={"chat_id": self.chat, **fields, **more})
        )

    def _call(self, method: str, **query: str) -> Answer:
        return ask(lambda: open_session(self.patience).request("GET", self._address(method), params=query))

    def _address(self, method: str) -> str:
        return f"{self.url}/bot{self.token}/{method}"

    def _said(self, answer: Answer) -> PartResult:
        result = _result(answer)
        name = result.get("message_id") if result else None
        if result and isinstance(name, int):
            return PartResult("done", str(name), _link(result, name))
        return no("Telegram", answer, _reason(answer), HINTS, _wait(answer))


def build(draw: Draw, environment: Mapping[str, str] = os.environ) -> TelegramChannel:
    """Build it. Raises Unset without its secrets, UserError for invalid ones."""
    token, chat = read_secrets(environment, NAMES, "telegram")
    if not token.replace(":", "").replace("-", "").replace("_", "").isalnum():
        raise UserError("TELEGRAM_BOT_TOKEN is not a bot token", "copy it again from @BotFather")
    return TelegramChannel(base(environment, "TELEGRAM_API_URL", USUAL), token, chat, draw)


def _reply(to: str) -> dict[str, object]:
    return {"message_id": int(to), "allow_sending_without_reply": True}


def _result(answer: Answer) -> Mapping[str, Any] | None:
    result = answer.body.get("result")
    return result if answer.ok and answer.body.get("ok") is True and isinstance(result, Mapping) else None


def _reason(answer: Answer) -> str:
    description = answer.body.get("description")
    return inline_words(description, 120) if isinstance(description, str) else ""


def _wait(answer: Answer) -> object:
    parameters = answer.body.get("parameters")
    return parameters.get("retry_after") if isinstance(parameters, Mapping) else None


def _link(message: Mapping[str, Any], name: int) -> str:
    """The URL of a message: by name for a public chat, else for members of a channel or large group."""
    chat = message.get("chat")
    place = chat if isinstance(chat, Mapping) else {}
    user, number = str(place.get("username") or ""), str(place.get("id") or "")
    if user.isascii() and user.replace("_", "").isalnum():
        return f"https://t.me/{user}/{name}"
    return f"https://t.me/c/{number[4:]}/{name}" if number.startswith("-100") and number[4:].isdigit() else ""
