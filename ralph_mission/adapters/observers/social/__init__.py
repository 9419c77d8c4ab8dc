"""Observes social networks: what became of our posts, who asks us something, what is talked about, how many follow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from ralph_mission.adapters.chat.telegram import ADDRESS, TOKEN, Bot
from ralph_mission.adapters.chat.telegram import API as TELEGRAM_API
from ralph_mission.adapters.observers.social.networks import API as DISCORD_API
from ralph_mission.adapters.observers.social.networks import (
    DISCORD,
    TELEGRAM,
    USUAL,
    X_NAME,
    DiscordReader,
    Overheard,
    TelegramReader,
    XReader,
)
from ralph_mission.adapters.observers.social.observer import Network, Social
from ralph_mission.config.observers import SocialSettings
from ralph_mission.mission.model.forge import Posted


def build(
    settings: SocialSettings,
    posted: Callable[[], Iterable[Posted]],
    overheard: Overheard | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Social:
    """The observer of every network that has its token in the environment."""
    return Social(dict(find_networks(settings, environment, overheard)), settings.every, posted)


def find_networks(
    settings: SocialSettings, environment: Mapping[str, str], overheard: Overheard | None = None
) -> Iterator[tuple[str, Network]]:
    """Those that can be asked, by the names that people know."""
    if bearer := environment.get("TWITTER_BEARER_TOKEN"):
        yield X_NAME, XReader(bearer, environment.get("TWITTER_API_URL") or USUAL, settings)
    if token := environment.get(TOKEN):
        bot = Bot(token, environment.get(ADDRESS) or TELEGRAM_API)
        yield TELEGRAM, TelegramReader(bot, environment.get("TELEGRAM_CHANNEL_ID", ""), overheard)
    hook, token = environment.get("DISCORD_WEBHOOK_URL", ""), environment.get("DISCORD_BOT_TOKEN", "")
    if hook or (token and settings.channel):
        api = environment.get("DISCORD_API_URL") or DISCORD_API
        yield DISCORD, DiscordReader(hook, token, api, settings.channel or "")
