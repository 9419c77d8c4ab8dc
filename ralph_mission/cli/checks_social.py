"""Whether orders can be heard in the chat, and whether each social network can be read now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config


def social(settings: Config, environment: Mapping[str, str]) -> list[Check]:
    """Ready, not configured, or broken and how to mend it: a line for orders, and one for each network."""
    return [*_orders(settings, environment), *_networks(settings, environment)]


def _orders(settings: Config, environment: Mapping[str, str]) -> Iterator[Check]:
    from ralph_mission.bootstrap.orders import SETUP, bot_of

    told, name = settings.telegram, "orders by Telegram"
    if not settings.robot.enabled or not (told.chats or told.users):
        why = "not configured" if settings.robot.enabled else "switched off by RObot.enabled"
        yield Check(name, "note", why, "to steer from a chat: docs/telegram.md")
        return
    bot = bot_of(environment)
    if bot is None:
        yield Check(name, "wrong", "chats are listed, and there is no bot", SETUP)
        return
    try:
        named, hooked = bot.ask("getMe"), bot.ask("getWebhookInfo")
    except Trouble as trouble:
        yield Check(name, "wrong", f"broken: {trouble.what}", mend(trouble))
        return
    if not (isinstance(named, dict) and isinstance(hooked, dict)):
        yield Check(name, "wrong", "broken: Telegram answers with something else", "look at TELEGRAM_API_URL")
    elif hooked.get("url"):
        yield Check(name, "wrong", "broken: the bot has a webhook that hears it alone", "take it off: deleteWebhook")
    elif not told.users and all(chat < 0 for chat in told.chats):
        yield Check(name, "wrong", "groups are listed, and nobody in them", "list people's ids in telegram.users")
    else:
        listed = f"{len(told.chats)} chats, {len(told.users)} people"
        yield Check(name, "ok", f"ready: @{named.get('username', 'unnamed')}, {listed}")


def _networks(settings: Config, environment: Mapping[str, str]) -> Iterator[Check]:
    from ralph_mission.observers.social import networks

    if settings.observers.social is None:
        yield Check("social", "note", "not configured", "to see what becomes of posts: observers.social in ralph.yml")
        return
    found = dict(networks(settings.observers.social, environment))
    if not found:
        yield Check("social", "note", "no network has its token in the environment", "docs/social.md says which")
    for name, network in found.items():
        try:
            words = network.look((), datetime.now(UTC)).words
        except Trouble as trouble:
            yield Check(f"social {name}", "wrong", f"broken: {trouble.what}", mend(trouble))
        else:
            yield Check(f"social {name}", "ok", f"ready: {words}")
