"""A forge in a folder: issues and pull requests as Markdown files beside their repository."""

from ralph_mission.adapters.forges.local.documents import BOT, person
from ralph_mission.adapters.forges.local.forge import LocalForge, Person

__all__ = ["BOT", "LocalForge", "Person", "person"]
