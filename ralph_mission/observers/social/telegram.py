"""Telegram by its Bot API: how many follow the channel, reactions to our posts, questions in groups the bot is in.

Reactions come as updates, to a bot that is an administrator of the channel. How often a post was seen is not in the
Bot API. Updates are given once: those in which orders were looked for are used as they are; asking here confirms none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ralph_mission.gateways.telegram import Bot
from ralph_mission.gateways.telegram_orders import ALLOWED, AT_ONCE, read_updates
from ralph_mission.mission.posts import Measured, Posted
from ralph_mission.observers.social.seen import NetworkNews, NetworkQuestion, is_question, number, ours, questions
from ralph_mission.observers.text import count_noun

TELEGRAM = "Telegram"
TELEGRAM_NETWORK = "telegram"
Update = Mapping[str, Any]
Overheard = Callable[[], Sequence[Update]]
"""What was read in this cycle while looking for orders."""


@dataclass(frozen=True, slots=True)
class TelegramReader:
    """A bot and its channel. `overheard` None: nobody else reads what the bot is told."""

    bot: Bot
    channel: str
    overheard: Overheard | None = None

    def look(self, posted: Iterable[Posted], now: datetime) -> NetworkNews:
        """Everything that is asked of it. Raises Trouble."""
        members = number(self.bot.ask("getChatMemberCount", chat_id=self.channel)) if self.channel else None
        updates = self.overheard() if self.overheard else self._waiting()
        return self.heard(updates, posted, now, members)

    def heard(
        self, updates: Sequence[Update], posted: Iterable[Posted], now: datetime, members: int | None = None
    ) -> NetworkNews:
        """What updates tell, without asking anybody."""
        measured = _measure_reactions(updates, ours(posted, TELEGRAM_NETWORK), self.channel)
        asked = questions(TELEGRAM, _open_questions(updates), now)
        words = f"{count_noun(len(measured), 'post')} measured, {count_noun(len(asked), 'question')}"
        return NetworkNews(words, measured, asked, members)

    def _waiting(self) -> list[Update]:
        """Without a number to begin with nothing is confirmed: the same is given again, for a day."""
        return read_updates(self.bot.ask("getUpdates", limit=AT_ONCE, timeout=0, allowed_updates=list(ALLOWED)))


def _measure_reactions(updates: Iterable[Update], posts: Mapping[str, Posted], channel: str) -> tuple[Measured, ...]:
    """The newest count of each post."""
    found: dict[str, Measured] = {}
    for update in updates:
        told = update.get("message_reaction_count")
        if not isinstance(told, dict) or not _is(told.get("chat"), channel):
            continue
        post, counts = posts.get(str(told.get("message_id"))), told.get("reactions")
        if post and isinstance(counts, list):
            total = sum(number(one.get("total_count")) for one in counts if isinstance(one, dict))
            found[post.key] = Measured(post.key, total)
    return tuple(found.values())


def _is(chat: object, channel: str) -> bool:
    """Whether this is the channel, by its number or by its name."""
    if not isinstance(chat, dict) or not channel:
        return False
    return channel in (str(chat.get("id")), f"@{chat.get('username', '')}")


def _open_questions(updates: Iterable[Update]) -> tuple[NetworkQuestion, ...]:
    """Messages of people in groups that ask something and that nobody replied to."""
    messages = [m for update in updates if isinstance(m := update.get("message"), dict)]
    answered = {_name(m, to) for m in messages if isinstance(to := m.get("reply_to_message"), dict)}
    waiting = (m for m in messages if _name(m, m) not in answered)
    return tuple(asked for m in waiting if (asked := _telegram_question(m)))


def _name(there: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    """A message as others refer to it, where it stands; of an answer that nobody can read too."""
    return f"{_chat(there)}:{message.get('message_id')}"


def _chat(message: Mapping[str, Any]) -> object:
    chat = message.get("chat")
    return chat.get("id") if isinstance(chat, dict) else None


def _telegram_question(message: Mapping[str, Any]) -> NetworkQuestion | None:
    text, at, sender = message.get("text"), message.get("date"), message.get("from")
    chat = message.get("chat")
    group = isinstance(chat, dict) and chat.get("type") in ("group", "supergroup")
    person = isinstance(sender, dict) and sender.get("is_bot") is False
    if not (group and person and isinstance(text, str) and is_question(text)) or text.startswith("/"):
        return None
    if type(at) is not int or not 0 <= at < 2**33:
        return None
    return NetworkQuestion(_name(message, message), text, datetime.fromtimestamp(at, UTC))
