"""Small loopback servers that stand for X, Telegram and Discord: they keep what was delivered and refuse the rest."""

from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.serving import Fault
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer

__all__ = ["DiscordServer", "Fault", "TelegramServer", "XServer"]
