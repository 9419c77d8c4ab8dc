"""Discord: reactions to what our webhook said; with a bot's token, questions in one channel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ralph_mission.mission.posts import Measured, Posted
from ralph_mission.observers.social.seen import NetworkNews, NetworkQuestion, is_question, number, ours, questions
from ralph_mission.observers.text import count_noun
from ralph_mission.trouble import UserError

DISCORD = "Discord"
DISCORD_NETWORK = "discord"
API = "https://discord.com/api/v10"
DISCORD_AT_ONCE = 30  # posts that are asked for in one look: each is a request
LISTED = 50  # messages of a channel


@dataclass(frozen=True, slots=True)
class DiscordReader:
    """A webhook, a bot, or both. `channel` is read with the bot's token alone."""

    webhook: str = field(repr=False)
    token: str = field(repr=False)
    api: str
    channel: str = ""
    seconds: float = 15.0

    def look(self, posted: Iterable[Posted], now: datetime) -> NetworkNews:
        """Everything that is asked of it. Raises Trouble."""
        measured = tuple(self._measured(ours(posted, DISCORD_NETWORK))) if self.webhook else ()
        asked = questions(DISCORD, self._asked(), now) if self.token and self.channel else ()
        return NetworkNews(
            f"{count_noun(len(measured), 'post')} measured, {count_noun(len(asked), 'question')}", measured, asked
        )

    def _read(self, address: str, headers: Mapping[str, str] | None = None, **query: str) -> Any:
        from ralph_mission.gateways.networks import open_session, read_json  # takes a while to load

        return read_json(DISCORD, open_session(self.seconds), address, headers, **query)

    def _measured(self, posts: Mapping[str, Posted]) -> Iterable[Measured]:
        """A message that somebody deleted is passed over."""
        address = self.webhook.partition("?")[0].rstrip("/")
        for id, post in [(id, post) for id, post in posts.items() if id.isascii() and id.isdigit()][:DISCORD_AT_ONCE]:
            try:
                found = self._read(f"{address}/messages/{id}")
            except UserError as trouble:
                if trouble.what.endswith("404"):
                    continue
                raise
            reactions = found.get("reactions") if isinstance(found, dict) else None
            told = reactions if isinstance(reactions, list) else []
            yield Measured(post.key, sum(number(one.get("count")) for one in told if isinstance(one, dict)))

    def _asked(self) -> tuple[NetworkQuestion, ...]:
        address = f"{self.api.rstrip('/')}/channels/{self.channel}/messages"
        found = self._read(address, {"Authorization": f"Bot {self.token}"}, limit=str(LISTED))
        messages = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        answered = {str(reference.get("message_id")) for one in messages
                    if isinstance(reference := one.get("message_reference"), dict)}  # fmt: skip  # one set
        waiting = (one for one in messages if str(one.get("id")) not in answered)
        return tuple(asked for one in waiting if (asked := _discord_question(one)))


def _discord_question(found: Mapping[str, Any]) -> NetworkQuestion | None:
    id, text, author = str(found.get("id", "")), found.get("content"), found.get("author")
    person = isinstance(author, dict) and not author.get("bot") and not found.get("webhook_id")
    if not (person and id.isdigit() and isinstance(text, str) and is_question(text)):
        return None
    with suppress(ValueError):
        at = datetime.fromisoformat(str(found.get("timestamp")))
        return NetworkQuestion(id, text, at if at.tzinfo else at.replace(tzinfo=UTC))
    return None
