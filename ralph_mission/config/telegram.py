"""Who may give orders in a Telegram chat, and how long a loop waits for a person there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ralph_mission.adapters.observers.settings import ObserverSection

Id = Annotated[int, Field(strict=True, ge=-(2**53), le=2**53)]
Seconds = Annotated[int, Field(strict=True, ge=1, le=86_400)]
TIMEOUT, CHECKIN = 600, 300


class TelegramControl(ObserverSection):
    """The chat as a control plane. The bot's token is TELEGRAM_BOT_TOKEN of the environment, and nowhere else."""

    chats: tuple[Id, ...] = Field((), description="Ids of chats where orders are taken; a private one is a person's.")
    users: tuple[Id, ...] = Field((), description="Ids of people who may give them, in groups of `chats` too.")
    timeout_seconds: Seconds | None = Field(
        None, description=f"How long an agent's question waits for a person; else as in RObot, {TIMEOUT}."
    )
    checkin_interval_seconds: Seconds | None = Field(
        None, description=f"How often `ralph telegram` reports how a loop is doing; else as in RObot, {CHECKIN}."
    )
