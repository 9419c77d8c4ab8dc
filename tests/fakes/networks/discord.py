"""Webhooks of Discord: what they take, and that nobody is called by what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.networks.serving import Asked, Endpoint, Refused, Server

ID, TOKEN = "223704706495545344", "scripted-discord-webhook-token"
FIELDS = {"content", "allowed_mentions", "attachments", "flags"}


@dataclass(frozen=True, slots=True)
class Message:
    """One that was delivered. `pinged`: who would have been called by it."""

    id: str
    content: str
    pinged: tuple[str, ...] = ()
    picture: bytes = b""
    alt: str = ""


class DiscordServer(Server):
    """`delivered`: the messages, oldest first; `reactions` by the id of a message, as Discord lists them."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered: list[Message] = []
        self.reactions: dict[str, list[Mapping[str, Any]]] = {}
        self.more: dict[tuple[str, str], Endpoint] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What a process is told of it."""
        return {"DISCORD_WEBHOOK_URL": f"{self.url}/api/webhooks/{ID}/{TOKEN}"}

    @property
    def texts(self) -> list[str]:
        """What was delivered, in words."""
        return [message.content for message in self.delivered]

    def endpoints(self) -> Mapping[tuple[str, str], Endpoint]:
        hook = "/api/webhooks/(?P<id>[0-9]+)/(?P<token>[^/]+)"
        return {
            ("POST", hook): self._execute,
            ("GET", hook): self._hook,
            ("GET", f"{hook}/messages/(?P<message>[0-9]+)"): self._message,
            **self.more,
        }

    def _hook(self, asked: Asked) -> Mapping[str, Any]:
        allowed(asked)
        made = {"id": ID, "type": 1, "name": "Ralph", "channel_id": "199737254929760256"}
        return {**made, "guild_id": "199737254929760257", "token": TOKEN}

    def _message(self, asked: Asked) -> Mapping[str, Any]:
        allowed(asked)
        for message in self.delivered:
            if message.id == asked.found["message"]:
                return {**_shown(message), "reactions": self.reactions.get(message.id, [])}
        raise Refused(404, {"message": "Unknown Message", "code": 10008})

    def _execute(self, asked: Asked) -> Mapping[str, Any] | None:
        allowed(asked)
        if strange := set(asked.fields) - FIELDS:
            raise _invalid(f"unknown fields {sorted(strange)}")
        content = asked.fields.get("content", "")
        if not content.strip() and not asked.files:
            raise Refused(400, {"message": "Cannot send an empty message", "code": 50006})
        if len(content) > 2000:
            raise _invalid("Must be 2000 or fewer in length.")
        pinged = tuple(re.findall(r"@everyone|@here|<@[!&]?\d+>", content))
        if asked.fields.get("allowed_mentions", {}).get("parse") == []:
            pinged = ()
        name = str(1_100_000_000_000_000_001 + len(self.delivered))
        message = Message(name, content, pinged, *_picture(asked))
        self.delivered.append(message)
        return _shown(message) if asked.query.get("wait") == "true" else None


def _picture(asked: Asked) -> tuple[bytes, str]:
    told = asked.fields.get("attachments", [])
    if not asked.files and not told:
        return b"", ""
    named = {f"files[{one.get('id')}]": one for one in told}
    if set(named) != set(asked.files) or len(named) != 1:
        raise _invalid("attachments and files differ")
    ((key, (name, content)),) = asked.files.items()
    if named[key].get("filename") != name or len(named[key].get("description", "")) > 1024:
        raise _invalid("an attachment is not as it should be")
    return content, str(named[key].get("description", ""))


def allowed(asked: Asked) -> None:
    """Refuses another webhook than ours."""
    if (asked.found["id"], asked.found["token"]) != (ID, TOKEN):
        raise Refused(404, {"message": "Unknown Webhook", "code": 10015})


def _invalid(why: str) -> Refused:
    errors = {"content": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": why}]}}
    return Refused(400, {"message": "Invalid Form Body", "code": 50035, "errors": errors})


def _shown(message: Message) -> Mapping[str, Any]:
    return {"id": message.id, "type": 0, "content": message.content, "channel_id": "199737254929760256"}
