"""What the social observer is told by configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from ralph_mission.adapters.observers.settings import Duration, ObserverSection

Place = Annotated[int, Field(strict=True, ge=1)]


class SocialSettings(ObserverSection):
    """Social networks, asked about our own posts, questions and topics."""

    every: Duration = Field(timedelta(hours=24), description="How often to look at most.")
    account: Annotated[str, StringConstraints(pattern=r"^@?[A-Za-z0-9_]{1,15}$")] | None = Field(
        None, description="Our account on X, for questions to it and its followers."
    )
    trends: Place | None = Field(
        None,
        description="A place (WOEID; 1: everywhere) whose topics on X are reported, where the API's tier has them.",
    )
    channel: Annotated[str, StringConstraints(pattern=r"^[0-9]{5,25}$")] | None = Field(
        None, description="The id of a Discord channel whose questions are reported; needs DISCORD_BOT_TOKEN."
    )
