"""Telegram's Bot API: one question, one answer, in bounded time and bytes. Its token stands in every address, so no
address and no error of the client is ever shown.

Commands among the messages to a bot: those of listed people, as they typed them. Everything else is data.

Asking for updates from a number on confirms all before it, and Telegram forgets them. So the number that is asked with
is the one that memory holds: nothing is confirmed before what came of it is written down. A number is good for some
days: after a quiet week Telegram goes on from any other one, a smaller one too.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import VERBS, ChatCommand
from ralph_mission.safety.markdown import without_unseen
from ralph_mission.values import compile_regex, dataclass

API = "https://api.telegram.org"
TOKEN, ADDRESS = "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_URL"
"""The environment's names for the bot's token, and for where its API is if not at Telegram's own."""
DESCRIPTION_LENGTH = 160  # characters of Telegram's own words in an error

HINTS = {
    401: "set TELEGRAM_BOT_TOKEN to the token that @BotFather shows",
    403: "add the bot to the chat, or start a chat with it",
    404: "set TELEGRAM_BOT_TOKEN to the token that @BotFather shows",
    409: "end the other program that reads this bot's messages, or its webhook: a bot has one reader",
    429: "wait, then run again",
}


class TelegramRefused(UserError):
    """Telegram answered, and refused; `code` is its error code."""

    def __init__(self, code: int, description: str) -> None:
        who = "network" if code == 429 or code >= 500 else "you"
        super().__init__(
            f"Telegram answers {code}: {description}", HINTS.get(code, "see docs/publishing.md#telegram"), who=who
        )
        self.code = code


@dataclass(frozen=True, slots=True)
class Bot:
    """One bot. `seconds` is how long an answer may take, beyond what was asked to be waited for."""

    token: str = field(repr=False)
    api: str = API
    seconds: float = 10.0

    def ask(self, method: str, wait: int = 0, **fields: Any) -> Any:
        """What `method` gives; sent once. Raises TelegramRefused, and UserError when nobody knows what became of it."""
        from ralph_mission.adapters.http.client import ask_network, open_session  # takes a while to load

        address = f"{self.api.rstrip('/')}/bot{self.token}/{method}"
        answer = ask_network("Telegram", lambda: open_session(self.seconds + wait).post(address, json=fields))
        try:
            found = answer.json()
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            what = f"Telegram answers {answer.status_code} with something unreadable"
            raise UserError(what, "look at TELEGRAM_API_URL, then run again", who="network")
        if found.get("ok") is not True:
            code = found.get("error_code")
            raise TelegramRefused(code if type(code) is int else answer.status_code, self._error_description(found))
        return found.get("result")

    def seal(self, text: str) -> str:
        """What nobody can make of `text` who has not the token."""
        return hmac.new(self.token.encode(), b"ralph: " + text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _error_description(self, found: dict[str, Any]) -> str:
        words = str(found.get("description", "no reason given")).replace(self.token, "…")
        return " ".join(without_unseen(words).split())[:DESCRIPTION_LENGTH]


Update = Mapping[str, Any]

ALLOWED = ("message", "message_reaction_count")
"""What Telegram sends at all: nothing that was edited, nothing of a channel's."""
AT_ONCE = 100  # updates of one answer, as many as there may be
OVERHEARD_UPDATES = 2_000  # updates that are overheard
ROUNDS = 20  # answers without an order that are passed over in one reading
GOOD_FOR = timedelta(days=3)  # beyond the day for which Telegram keeps what nobody read, short of the week
LINES = 4_000  # characters of an order
COMMAND = compile_regex(r"/([a-z]{1,20})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)
NUMBER = compile_regex(r"#?([1-9][0-9]{0,8})(?:\s+(.*))?", re.DOTALL)
CURSOR = compile_regex(r"([0-9]{1,18})@(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\dZ)")
FORWARDED = ("forward_origin", "forward_from", "forward_from_chat", "forward_sender_name", "forward_date",
             "via_bot", "sender_chat", "is_automatic_forward", "edit_date")  # fmt: skip  # one list
"""A message with one of these says what somebody else wrote, or does not say who did."""


@dataclass(frozen=True, slots=True)
class TelegramInbox:
    """`ports.Inbox` of a bot. `chats` are where orders are taken, `users` who may give them in a group.

    `chat` is where an owner gets messages unasked. `wait` is how long an empty answer may take, in seconds.
    `overheard` is what was read lately, for who counts what became of posts.
    """

    bot: Bot
    chats: frozenset[int]
    users: frozenset[int] = frozenset()
    wait: int = 0
    chat: int = 0
    overheard: deque[Update] = field(default_factory=lambda: deque(maxlen=OVERHEARD_UPDATES))
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def read(self, cursor: str) -> tuple[tuple[ChatCommand, ...], str]:
        """Orders since `cursor`, oldest first, and the next cursor. What holds no order is passed over, so that
        strangers cannot fill the way."""
        at, wait = _offset(cursor, self.now()), self.wait
        for _ in range(ROUNDS):
            updates = self.fetch_updates(at, wait)
            orders = tuple(order for update in updates if (order := self._order(update)))
            if not updates or orders:
                return orders, _cursor(updates, orders) if orders else cursor
            at, wait = updates[-1]["update_id"] + 1, 0
        return (), cursor

    def say(self, chat: int, text: str) -> None:
        """Answer there, as plain text. No address in it is looked up."""
        self.bot.ask("sendMessage", chat_id=chat, text=text, link_preview_options={"is_disabled": True})

    def fetch_updates(self, at: int, wait: int) -> list[Update]:
        fields: dict[str, Any] = {"limit": AT_ONCE, "timeout": wait, "allowed_updates": list(ALLOWED)}
        found = self.bot.ask("getUpdates", wait, **fields, **({"offset": at} if at else {}))
        read = read_updates(found)
        # Telegram may give again what is confirmed already, where another server of its answers.
        fresh = [update for update in read if update["update_id"] >= at]
        self.overheard.extend(fresh)
        return fresh

    def _order(self, update: Update) -> ChatCommand | None:
        message = update.get("message")
        if not isinstance(message, dict) or any(mark in message for mark in FORWARDED):
            return None
        chat, at = self.find_place(message), message.get("date")
        found = parse_command(message.get("text"))
        if not chat or found is None or type(at) is not int:
            return None
        verb, bot, words = found
        if verb not in VERBS or (bot and bot.casefold() != self._name().casefold()):
            return None
        return _order(update["update_id"], at, chat, verb, words)

    def find_place(self, message: Mapping[str, Any]) -> int:
        """The chat of a message that counts, 0 for any other: a group has strangers, so there the user is asked for."""
        chat, sender = message.get("chat"), message.get("from")
        if not isinstance(chat, dict) or not isinstance(sender, dict) or sender.get("is_bot") is not False:
            return 0
        place, who = chat.get("id"), sender.get("id")
        if type(place) is not int or type(who) is not int:
            return 0
        if chat.get("type") == "private":
            return place if place == who and who in self.chats | self.users else 0
        return place if place in self.chats and who in self.users and chat.get("type") != "channel" else 0

    def _name(self) -> str:
        found = self.bot.ask("getMe")
        return str(found.get("username", "")) if isinstance(found, dict) else ""


def read_updates(found: object) -> list[Update]:
    """The updates of an answer, in order. Raises UserError when it is none."""
    if not isinstance(found, list):
        raise UserError("Telegram's answer is not a list of updates", "look at TELEGRAM_API_URL", who="network")
    updates = [one for one in found if isinstance(one, dict) and type(one.get("update_id")) is int]
    return sorted(updates, key=lambda update: update["update_id"])


def parse_command(text: object) -> tuple[str, str, str] | None:
    """Name, target and words of a command in a message; None for any other text."""
    if not isinstance(text, str):
        return None
    found = COMMAND.fullmatch(text)
    if found is None:
        return None
    words = without_unseen(found[3] or "").strip()
    return found[1], found[2] or "", words[:LINES]


def _order(id: int, at: int, chat: int, verb: str, words: str) -> ChatCommand | None:
    number, numbered_one = 0, verb in ("approve", "answer") or (verb == "guidance" and words.startswith("#"))
    if numbered_one and (found := NUMBER.fullmatch(words)):
        number, words = int(found[1]), (found[2] or "").strip()
    try:
        when = datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return ChatCommand(id, when, chat, verb, words.lower() if verb == "approve" else words, number)


def _cursor(updates: list[Update], orders: tuple[ChatCommand, ...]) -> str:
    """The number after all of these, and as of when."""
    return f"{updates[-1]['update_id'] + 1}@{max(order.at for order in orders):%Y-%m-%dT%H:%MZ}"


def _offset(cursor: str, now: datetime) -> int:
    found = CURSOR.fullmatch(cursor)
    if found is None:
        return 0
    try:
        at = datetime.strptime(found[2], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return int(found[1]) if now - at < GOOD_FOR else 0
