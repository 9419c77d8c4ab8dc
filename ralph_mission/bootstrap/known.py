"""What the environment holds that must not leave."""

from __future__ import annotations

import os

SECRET_NAMES = ("TOKEN", "SECRET", "PASSWORD", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "WEBHOOK_URL", "DATABASE_URL")
SHORTEST_SECRET = 8  # characters; anything shorter would be found in ordinary words


def known_secrets() -> tuple[str, ...]:
    """Values of the environment that must not leave, longest first."""
    named = (value for name, value in os.environ.items() if any(part in name.upper() for part in SECRET_NAMES))
    return tuple(sorted({value for value in named if len(value) >= SHORTEST_SECRET}, key=lambda v: (-len(v), v)))
