"""Observes social networks: what became of our posts, who asks us something, what is talked about, how many follow.

Each network is asked once in a while; one that is missing, refuses or is slow disables itself alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from ralph_mission.adapters.chat import ADDRESS, TOKEN, Bot
from ralph_mission.adapters.chat import API as TELEGRAM_API
from ralph_mission.adapters.observers.looking import too_soon
from ralph_mission.adapters.observers.networks import API as DISCORD_API
from ralph_mission.adapters.observers.networks import (
    DISCORD,
    LARGEST,
    TELEGRAM,
    USUAL,
    X_NAME,
    DiscordReader,
    NetworkNews,
    Overheard,
    TelegramReader,
    XReader,
    following,
)
from ralph_mission.config.observers import SocialSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.values import dataclass

OBSERVER = "social"
FRESH = timedelta(days=30)  # older posts are not reacted to any more, or not for what they were
NOTHING = "not configured: no network has its token in the environment (docs/publishing.md)"


class Network(Protocol):
    """One network."""

    def look(self, posted: Iterable[Posted], now: datetime) -> NetworkNews:
        """Everything that is asked of it. Raises UserError."""
        ...


@dataclass(frozen=True, slots=True)
class Before:
    """What is remembered from look to look: when it was, and how many followed us on each network."""

    at: datetime | None = None
    followers: Mapping[str, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Before:
        """From the memory file; what cannot be read is a first look."""
        try:
            found = json.loads(text)
            at, counts = datetime.fromisoformat(found["at"]), dict(found["followers"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return cls()
        good = at.tzinfo and all(type(count) is int and 0 <= count <= LARGEST for count in counts.values())
        return cls(at, counts) if good else cls()

    def dump(self) -> str:
        """On one line."""
        at = self.at.isoformat(timespec="seconds") if self.at else None
        return json.dumps({"at": at, "followers": dict(self.followers or {})}, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Social:
    """`networks` by the names that people know. `posted` gives what went out, newest first."""

    networks: Mapping[str, Network]
    every: timedelta
    posted: Callable[[], Iterable[Posted]]
    name: str = OBSERVER

    def observe(self, context: ObservationContext) -> Observation:
        """One look at all of them; within `every` only what came by itself."""
        if not self.networks:
            return Observation(self.name, "skipped", detail=NOTHING, cursor=context.cursor)
        before = Before.parse(context.cursor)
        posts = [post for post in self.posted() if context.now - post.at < FRESH]
        if soon := too_soon(self.name, before.at, self.every, context):
            return self._in_between(soon, posts, context)
        return self._look(before, posts, context)

    def _look(self, before: Before, posts: list[Posted], context: ObservationContext) -> Observation:
        news, problems = dict[str, NetworkNews](), dict[str, str]()
        for name, network in self.networks.items():
            try:
                news[name] = network.look(posts, context.now)
            except UserError as problem:
                problems[name] = f"{problem.what}; {problem.next_step}"
        known = dict(before.followers or {})
        now = known | {name: one.followers for name, one in news.items() if one.followers is not None}
        signals = tuple(s for name in news for s in following(name, known.get(name), now.get(name), before.at))
        words = [f"{name}: {news[name].words if name in news else problems[name]}" for name in self.networks]
        found = self._told(news.values(), "; ".join(words), Before(context.now, now).dump())
        if not news:
            return replace(found, status="unavailable", cursor=context.cursor)
        return replace(found, signals=(*found.signals, *signals))

    def _in_between(self, soon: Observation, posts: list[Posted], context: ObservationContext) -> Observation:
        """What Telegram told whoever looked for orders would not be told again."""
        chat = self.networks.get("Telegram")
        updates = chat.overheard() if isinstance(chat, TelegramReader) and chat.overheard else ()
        if not updates or not isinstance(chat, TelegramReader):
            return soon
        news = chat.heard(updates, posts, context.now)
        return self._told([news], f"{soon.detail}; Telegram: {news.words}", context.cursor)

    def _told(self, news: Iterable[NetworkNews], detail: str, cursor: str) -> Observation:
        every = list(news)
        signals = tuple(signal for one in every for signal in one.signals)
        measured = tuple(number for one in every for number in one.measured)
        return Observation(self.name, "ok", signals, detail=detail, cursor=cursor, complete=False, measured=measured)


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
