"""A repository on a (fake) GitHub with three networks beside it, of which one may refuse whatever it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ralph_mission.app.cycle import App
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer
from tests.helpers import with_parts
from tests.integration.hub import Hub

PUBLISHERS = "publishers: {twitter: {}, telegram: {}, discord: {}, charts: false%s}\n"
ELSEWHERE = "@nobody_is_here"  # a chat that Telegram does not know


@dataclass
class PublishingHub(Hub):
    """`networks` by name; with `news`, its runners see a piece of content."""

    networks: dict[str, Any] = field(default_factory=dict)
    news: bool = False

    def house(self, staged: bool = False) -> App:
        made = super().house(staged)
        return with_parts(made, ports=replace(made.ports, observers=(News(),))) if self.news else made

    @property
    def posted(self) -> dict[str, list[str]]:
        """What people read, by network."""
        return {name: network.texts for name, network in self.networks.items()}


class News:
    """An observer that has seen one piece of content."""

    name = "database"

    def observe(self, context: ObservationContext) -> Observation:
        facts = (("sort", "new_since"), ("watch", "harbours"), ("group", "Port Ellen"))
        signal = Signal(self.name, "content", "A new harbour", ("harbour",), confidence=1.0, facts=facts)
        return Observation(self.name, "ok", (signal,))


@contextmanager
def publishing_hub(hub: Hub, news: bool, refusing: bool) -> Iterator[PublishingHub]:
    """The hub with its networks; `refusing`: Telegram knows no such chat."""
    with ExitStack() as stack:
        servers = {"twitter": XServer(), "telegram": TelegramServer(), "discord": DiscordServer()}
        for server in servers.values():
            stack.enter_context(server)
            hub.actions |= server.environment
        if refusing:
            hub.actions["TELEGRAM_CHANNEL_ID"] = ELSEWHERE
        yield PublishingHub(**vars(hub), networks=servers, news=news)
