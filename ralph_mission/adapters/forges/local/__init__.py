"""A forge in a folder: issues and pulls as markdown files beside the repository they are about."""

from ralph_mission.adapters.forges.local.documents import BOT, person
from ralph_mission.adapters.forges.local.forge import LocalForge, Person

__all__ = ["BOT", "LocalForge", "Person", "person"]
