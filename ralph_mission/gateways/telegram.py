"""Telegram's Bot API: one question, one answer, in bounded time and bytes. Its token stands in every address, so no
address and no error of the client is ever shown."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Any

from ralph_mission.safety.hidden import without_controls, without_invisible
from ralph_mission.trouble import UserError

API = "https://api.telegram.org"
TOKEN, ADDRESS = "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_URL"
"""The environment's names for the bot's token, and for where its API is if not at Telegram's own."""
SAID = 160  # characters of Telegram's own words in an error

MENDS = {
    401: "set TELEGRAM_BOT_TOKEN to the token that @BotFather shows",
    403: "add the bot to the chat, or start a chat with it",
    404: "set TELEGRAM_BOT_TOKEN to the token that @BotFather shows",
    409: "end the other program that reads this bot's messages, or its webhook: a bot has one reader",
    429: "wait, then run again",
}


class TelegramRefused(UserError):
    """Telegram answered, and said no; `code` is its error code."""

    def __init__(self, code: int, said: str) -> None:
        who = "network" if code == 429 or code >= 500 else "you"
        super().__init__(f"Telegram answers {code}: {said}", MENDS.get(code, "see docs/telegram.md"), who=who)
        self.code = code


@dataclass(frozen=True, slots=True)
class Bot:
    """One bot. `seconds` is how long an answer may take, beyond what was asked to be waited for."""

    token: str = field(repr=False)
    api: str = API
    seconds: float = 10.0

    def ask(self, method: str, wait: int = 0, **fields: Any) -> Any:
        """What `method` gives; sent once. Raises Refused, and Trouble when nobody knows what became of it."""
        from ralph_mission.gateways.networks import ask_network, open_session  # takes a while to load

        address = f"{self.api.rstrip('/')}/bot{self.token}/{method}"
        answer = ask_network("Telegram", lambda: open_session(self.seconds + wait).post(address, json=fields))
        try:
            found = answer.json()
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            what = f"Telegram answers {answer.status_code} with something that nobody can read"
            raise UserError(what, "look at TELEGRAM_API_URL, then run again", who="network")
        if found.get("ok") is not True:
            code = found.get("error_code")
            raise TelegramRefused(code if type(code) is int else answer.status_code, self._said(found))
        return found.get("result")

    def seal(self, text: str) -> str:
        """What nobody can make of `text` who has not the token."""
        return hmac.new(self.token.encode(), b"ralph: " + text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _said(self, found: dict[str, Any]) -> str:
        words = str(found.get("description", "no reason given")).replace(self.token, "…")
        return " ".join(without_invisible(without_controls(words)).split())[:SAID]
