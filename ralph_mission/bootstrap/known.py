"""What the environment holds that must not leave."""

from __future__ import annotations

import os

from ralph_mission.safety.secrets import find_secrets
from ralph_mission.safety.token_formats import PLACEHOLDERS

SECRET_NAMES = (
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY",
    "PRIVATE_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "DEPLOY_KEY", "SSH_KEY", "WEBHOOK_URL", "DATABASE_URL",
    "CONNECTION_STRING", "COOKIE",
)  # fmt: skip  # one list
SHORTEST_SECRET = 8  # characters; anything shorter would be found in ordinary words


def known_secrets() -> tuple[str, ...]:
    """Values of the environment that must not leave, longest first: by their names or their looks."""
    values = {value for name, value in os.environ.items() if len(value) >= SHORTEST_SECRET and _is_one(name, value)}
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def _is_one(name: str, value: str) -> bool:
    named = any(part in name.upper() for part in SECRET_NAMES) and not _is_place(value) and not _is_common(value)
    return named or bool(find_secrets(value))


def _is_common(value: str) -> bool:
    """Whether everybody knows it already: the `postgres` and `password` of a test database are ordinary words."""
    return value.isalnum() and bool(PLACEHOLDERS.match(value))


def _is_place(value: str) -> bool:
    """Whether it only names a file that holds secrets: GOOGLE_APPLICATION_CREDENTIALS."""
    return value.startswith("/") and len(value) < 1_000 and os.path.exists(value)
