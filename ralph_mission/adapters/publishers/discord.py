"""Discord: messages by a webhook, whose URL is a secret. Messages never mention anybody."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from ralph_mission.adapters.publishers.channel import Draw, read_secrets
from ralph_mission.adapters.publishers.publisher import PartResult, in_order
from ralph_mission.adapters.publishers.wire import PATIENCE, Answer, ask, base, no, open_session
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Chart, Post
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.safety.text import inline_words, truncate
from ralph_mission.values import compile_regex, dataclass

NAMES = ("DISCORD_WEBHOOK_URL",)
ALT = 1_024  # characters
KEYS = "look at DISCORD_WEBHOOK_URL, and whether the webhook still exists"
HINTS = dict.fromkeys((400, 401, 403, 404), KEYS)
NOBODY: Mapping[str, list[str]] = {"parse": []}
_WEBHOOK = compile_regex(r"https?://\S+/webhooks/\d+/[^/?#\s]+(?:\?thread_id=\d+)?")


@dataclass(frozen=True, slots=True)
class DiscordChannel:
    """A channel, through a webhook."""

    url: str = field(repr=False)
    draw: Draw
    patience: float = PATIENCE
    network: str = "discord"

    def publish(self, key: str, post: Post) -> Receipt:
        """Send a message for each part; the chart goes with the first, or is left out if refused."""
        picture = self.draw(post.chart) if post.chart else b""
        receipt = in_order(key, post.parts, lambda at, part, _: self._say(part, post.chart, b"" if at else picture))
        return replace(receipt, url=self._link(receipt.detail)) if receipt.status == "done" else receipt

    def find(self, key: str) -> Receipt | None:
        """None: a webhook cannot read a channel."""
        return None

    def check(self) -> str:
        """The webhook's name. Raises UserError."""
        answer = ask(lambda: open_session(self.patience).request("GET", self.url))
        if not answer.ok or "id" not in answer.body:
            raise UserError(no("Discord", answer, _reason(answer), HINTS).detail, KEYS)
        return f"as {inline_words(str(answer.body.get('name') or 'a webhook'), 60)}"

    def _link(self, detail: str) -> str:
        """The URL of the message, if the webhook reveals its server, or ""."""
        hook = ask(lambda: open_session(self.patience).request("GET", self.url)).body
        thread = self.url.partition("?thread_id=")[2]
        names = (hook.get("guild_id"), thread or hook.get("channel_id"), detail.partition(" ")[0].removeprefix("id="))
        known = all(isinstance(name, str) and name.isdigit() for name in names)
        return f"https://discord.com/channels/{'/'.join(map(str, names))}" if known else ""

    def _say(self, text: str, chart: Chart | None, picture: bytes) -> PartResult:
        content = {"content": text, "allowed_mentions": NOBODY}
        if chart and picture:
            result = self._shown(content, chart, picture)
            if result.status != "failed" or result.reason is FailureReason.LATER:
                return result  # a refused picture does not block the text
        return self._said(self._post(json=content))

    def _shown(self, content: Mapping[str, Any], chart: Chart, picture: bytes) -> PartResult:
        payload = {
            **content,
            "attachments": [{"id": 0, "filename": "chart.png", "description": truncate(chart.alt, ALT)}],
        }
        files = {"files[0]": ("chart.png", picture, "image/png")}
        return self._said(self._post(data={"payload_json": json.dumps(payload)}, files=files))

    def _post(self, **content: Any) -> Answer:
        return ask(lambda: open_session(self.patience).request("POST", self.url, params={"wait": "true"}, **content))

    def _said(self, answer: Answer) -> PartResult:
        name = answer.body.get("id")
        if answer.ok and isinstance(name, str) and name.isdigit():
            return PartResult("done", name)
        return no("Discord", answer, _reason(answer), HINTS, answer.body.get("retry_after"))


def build(draw: Draw, environment: Mapping[str, str] = os.environ) -> DiscordChannel:
    """Build it. Raises Unset without its secret, UserError if the URL is not a webhook's."""
    read_secrets(environment, NAMES, "discord")
    url = base(environment, NAMES[0], "")
    if not _WEBHOOK.fullmatch(url):
        raise UserError("DISCORD_WEBHOOK_URL is not a webhook address", "copy it again from the channel's settings")
    return DiscordChannel(url, draw)


def _reason(answer: Answer) -> str:
    message = answer.body.get("message")
    return inline_words(message, 120) if isinstance(message, str) else ""
