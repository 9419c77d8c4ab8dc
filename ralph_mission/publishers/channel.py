"""What every network can do, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.posts import Chart, Post
from ralph_mission.trouble import UserError

Draw = Callable[[Chart], bytes]
"""A chart as PNG; b"" where none can be made. Never raises."""


class NetworkUnset(UserError):
    """Nobody said with which secrets a network is spoken to."""


class Channel(Protocol):
    """One network."""

    @property
    def network(self) -> str:
        """Its name in ralph.yml."""
        ...

    def publish(self, key: str, post: Post) -> Receipt:
        """Say it once. Never raises for what the network does."""
        ...

    def find(self, key: str) -> Receipt | None:
        """What is certainly out already under this key; None where nobody can tell."""
        ...

    def check(self) -> str:
        """Who we are there, in words, by asking and changing nothing. Raises Trouble."""
        ...


def read_secrets(environment: Mapping[str, str], names: tuple[str, ...], network: str) -> tuple[str, ...]:
    """The values of these variables. Raises Unset that names those which are missing."""
    missing = [name for name in names if not environment.get(name, "").strip()]
    if missing:
        lacks = ", ".join(missing)
        raise NetworkUnset(
            f"{network} is not set up: {lacks} missing in the environment", f"set {lacks} (doctor tells more)"
        )
    return tuple(environment[name].strip() for name in names)
