"""What the environment holds that must not leave."""

from __future__ import annotations

import os
import re

from ralph_mission.safety.secret_parts import NAME, credentials
from ralph_mission.safety.secrets import find_secrets
from ralph_mission.safety.token_formats import PLACEHOLDERS

SECRET_NAMES = (
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY",
    "PRIVATE_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "DEPLOY_KEY", "SSH_KEY", "WEBHOOK_URL", "DATABASE_URL",
    "CONNECTION_STRING", "COOKIE",
)  # fmt: skip  # one list
CHOSEN = ("_PASS", "_PWD", "_PW")
MADE = ("_KEY", "_AUTH", "_PAT", "_CREDS")
"""How names end of what a person chose, maybe a word, and of what a machine made, which is none."""
PUBLIC = re.compile(r"(?:^|_)(?:PUBLIC|CACHE|PRIMARY|FOREIGN|SORT|PARTITION|GPG)_")
"""Keys that open nothing: those that everybody may see, of a cache or a table, and the prints of those who sign."""
ADDRESSES = ("_URL", "_URI", "_DSN")
SHORTEST_SECRET = 8  # characters; anything shorter would be found in ordinary words


def known_secrets() -> tuple[str, ...]:
    """Values of the environment that must not leave, longest first: by their names or their looks."""
    values = {value for name, value in os.environ.items() if len(value) >= SHORTEST_SECRET and _is_one(name, value)}
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def _is_one(name: str, value: str) -> bool:
    named = _is_named(f"_{name.upper().rstrip('_0123456789')}", value)
    return (named and not _is_place(value) and not _is_common(value)) or bool(find_secrets(value))


def _is_named(name: str, value: str) -> bool:
    if any(part in name for part in SECRET_NAMES) or (name.endswith(CHOSEN) and name != "_PWD"):
        return True
    if name.endswith(ADDRESSES):
        return bool(credentials(value))
    return name.endswith(MADE) and not PUBLIC.search(name) and not NAME.fullmatch(value)


def _is_common(value: str) -> bool:
    """Whether everybody knows it already: the `postgres` and `password` of a test database are ordinary words."""
    return value.isalnum() and bool(PLACEHOLDERS.match(value))


def _is_place(value: str) -> bool:
    """Whether it only names a file that holds secrets: GOOGLE_APPLICATION_CREDENTIALS."""
    return value.startswith("/") and len(value) < 1_000 and os.path.exists(value)
