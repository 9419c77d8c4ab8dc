"""What is published, where and when: the `publishers:` section of ralph.yml. Secrets stand in the environment alone.

Who may give orders in a Telegram chat, and how long a loop waits for a person there.
"""

from __future__ import annotations

import re
from datetime import time, timedelta
from pathlib import PurePosixPath
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from ralph_mission.config.fields import SettingsSection
from ralph_mission.mission.model.mission import Limits

CEILING = Limits().posts_per_day
NETWORKS = ("twitter", "telegram", "discord", "outbox")
"""The order in which a post goes out."""
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def _hours(interval: str) -> str:
    hours = r"([01]\d|2[0-3]):[0-5]\d"
    if not re.fullmatch(f"{hours}-{hours}", interval) or interval[:5] == interval[6:]:
        raise ValueError("two times of the day in UTC, such as 22:00-07:00")
    return interval


def _below(path: str) -> str:
    place = PurePosixPath(path)
    if not place.parts or place.is_absolute() or ".." in place.parts or ".git" in place.parts or "\\" in path:
        raise ValueError("a folder of the repository, such as .ralph/outbox")
    return path


def _sound(templates: dict[str, str]) -> dict[str, str]:
    if templates:
        from ralph_mission.mission.publishing.templates import check  # takes a while to load

        for name, source in templates.items():
            check(name, source)
    return templates


class PublisherSection(BaseModel):
    """Frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
"""A kind of finding, or the name of a watch."""
Template = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class TwitterSettings(PublisherSection):
    """X. It needs `TWITTER_API_KEY`, `_API_SECRET`, `_ACCESS_TOKEN` and `_ACCESS_TOKEN_SECRET`."""


class TelegramSettings(PublisherSection):
    """A channel or a group of Telegram. It needs `TELEGRAM_BOT_TOKEN` and `TELEGRAM_CHANNEL_ID`."""


class DiscordSettings(PublisherSection):
    """A channel of Discord. It needs `DISCORD_WEBHOOK_URL`."""


class OutboxSettings(PublisherSection):
    """A folder of files for a person to send."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_below)] = Field(
        ".ralph/outbox", description="The folder, inside the repository; git ignores it."
    )


class Publishers(PublisherSection):
    """Where, what and when to post."""

    twitter: TwitterSettings | None = Field(None, description="X; `{}` enables it.")
    telegram: TelegramSettings | None = Field(None, description="Telegram; `{}` enables it.")
    discord: DiscordSettings | None = Field(None, description="Discord; `{}` enables it.")
    outbox: OutboxSettings | None = Field(None, description="Files for a person to send; used if no network is.")
    templates: Annotated[dict[Slug, Template], AfterValidator(_sound)] = Field(
        {}, description="By kind of finding or watch: a Jinja2 template, posted at once."
    )
    announce: tuple[Slug, ...] = Field((), description="Kinds of missions that are announced when merged.")
    quiet_hours: Annotated[str, AfterValidator(_hours)] | None = Field(
        None, description="Hours (UTC) without posts, such as 22:00-07:00."
    )
    per_day: Annotated[int, Field(strict=True, ge=0, le=CEILING)] = Field(
        CEILING, description="Posts per network and day; the default is the ceiling."
    )
    pause: Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,2}[mhd]$")] | None = Field(
        None, description="Shortest time between two posts on one network."
    )
    charts: bool = Field(True, description="Whether posts get a chart if their watch has the values.")

    @property
    def apart(self) -> timedelta:
        """The minimum time between two posts on one network."""
        return int(self.pause[:-1]) * _UNITS[self.pause[-1]] if self.pause else timedelta(0)

    @property
    def quiet(self) -> tuple[time, time] | None:
        """The hours without posts, in UTC."""
        if self.quiet_hours is None:
            return None
        start, end = (time.fromisoformat(one) for one in self.quiet_hours.split("-"))
        return start, end


ChatId = Annotated[int, Field(strict=True, ge=-(2**53), le=2**53)]
Seconds = Annotated[int, Field(strict=True, ge=1, le=86_400)]


class TelegramControl(SettingsSection):
    """The chat as a control plane. The bot's token is TELEGRAM_BOT_TOKEN of the environment, and nowhere else."""

    chats: tuple[ChatId, ...] = Field(
        (), description="Ids of chats that may give commands; a private one is a person's."
    )
    users: tuple[ChatId, ...] = Field((), description="Ids of people who may give them, in private and in `chats`.")
    timeout_seconds: Seconds = Field(600, description="How long an agent's question waits.")
    checkin_interval_seconds: ClassVar[int] = 300
    """How often `ralph agent telegram` reports how a loop is doing."""
