"""What the environment holds that must not leave."""

from __future__ import annotations

import os
import re

from ralph_mission.safety.disguises import squeezed
from ralph_mission.safety.secret_parts import NAME, credentials, looks_kept, looks_made, only_names
from ralph_mission.safety.secrets import find_secrets
from ralph_mission.safety.token_formats import PLACEHOLDERS

SECRET_NAMES = re.compile(
    "TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|COOKIE(?!CUTTER)|WEBHOOK_URL|DATABASE_URL"
    "|CONNECTION_STRING|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION|DEPLOY|SSH)_KEY"
)
CHOSEN = re.compile("_(?:PASS|PWD|PW)$")
PASSES = re.compile("(?<!BY)(?<!COM|SUR|LOW|ASK)(?<!TRES|OVER|HIGH|BAND)(?<!MULTI)PASS$")
MADE = re.compile("(?P<what>(?<=_)(?:KEY|PAT|CRED)|AUTH)S?(?:_JSON|_CONFIG|_B|_BASE)?$")
"""How names end of what a person chose, maybe a word, and of what a machine made, which is none; a number at the end,
as in `_B64`, does not count."""
SIGNING_IN = r"(?:[._/\\=@+-]|:(?=//|[0-9]{1,5}(?:/|$)))+"
BETWEEN = {
    "KEY": r"[._:/\\=@+-]+|^\(|\)$|#(?=[0-9]+$)",
    "PAT": r"^!|[._:/\\*?(){}\[\]|^$+-]+",
    "CRED": SIGNING_IN,
    "AUTH": SIGNING_IN,
}
"""What joins the words of a value that only names something: `_KEY` may be a job's name or an issue's, `_PAT` a
pattern; where somebody signs in, a colon is before a password rather than between two names."""
ABOUT = re.compile(
    "_(?:NAME|TYPE|PATH|FILE|DIR|DIRECTORY|ID|DOMAIN|HELPER|PERMISSIONS|SERVER|HOST|PROVIDER|CONFIG|HEADER|PREFIX|TTL)$"
    "|(?:^|_)MAX_"
)
"""What names say something about a secret rather than hold it."""
PUBLIC = re.compile(
    "_(?:PUBLIC|PUB|PUBLISHABLE|ANON|CACHE)_"
    "|_(?:PRIMARY|FOREIGN|SORT|PARTITION|GPG|SITE|PROJECT|ISSUE|IDEMPOTENCY)_KEYS?$"
)
"""Keys that open nothing: those that everybody may see, of a cache or a table, and names of other things."""
SHOWN = re.compile(
    r"(?:(?:\|1\|[\w+/=]+\|[\w+/=]+|[\w.,:*!%\[\]-]+) )?(?:ssh|ecdsa|sk)-\S+ AAAA"
    "|-----BEGIN (?:[A-Z0-9]+ ){0,3}(?:PUBLIC KEY|CERTIFICATE)-----"
)
"""The half of a key that everybody may see, as it begins, maybe behind the host whose key it is."""
HOOK = re.compile("//hooks?[.]|/webhook(?:s|b2)?/", re.IGNORECASE)
PLACE = re.compile(r"(?:\.|~)/[\w./-]+")
ADDRESSES = ("_URL", "_URI", "_DSN")
SECRET_ADDRESSES = re.compile("(?:WEBHOOK|DATABASE)_URL$")
SHORTEST_SECRET = 8  # characters; anything shorter would be found in ordinary words


def known_secrets() -> tuple[str, ...]:
    """Values of the environment that must not leave, longest first: by their names or their looks."""
    values = {value for name, value in os.environ.items() if len(value) >= SHORTEST_SECRET and _is_one(name, value)}
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def _is_one(name: str, value: str) -> bool:
    if _is_our_name(value):
        return False
    named = _is_named(f"_{name.upper().rstrip('_0123456789')}", value)
    return (named and not _is_place(value) and not _is_common(value)) or bool(find_secrets(value))


def _is_named(name: str, value: str) -> bool:
    if name.endswith(ADDRESSES) and not SECRET_ADDRESSES.search(name):
        return bool(credentials(value)) or _is_hook(name, value)
    if CHOSEN.search(name) and name != "_PWD":
        return True
    if SECRET_NAMES.search(name):
        return looks_kept(value) if ABOUT.search(name) else True
    if PASSES.search(name):
        return not (NAME.fullmatch(value) and only_names(value, BETWEEN["KEY"]))
    made = MADE.search(name)
    if not made or PUBLIC.search(name) or SHOWN.match(value):
        return False
    return not only_names(value, BETWEEN[made["what"]])


def _is_our_name(value: str) -> bool:
    """Whether it is the commit we run on or, in any writing, our repository: nobody could link to a thing without."""
    if value == os.environ.get("GITHUB_SHA"):
        return True
    letters = squeezed(value)
    return len(letters) >= SHORTEST_SECRET and letters in squeezed(os.environ.get("GITHUB_REPOSITORY", ""))


def _is_hook(name: str, address: str) -> bool:
    """Whether its path is all that somebody needs there; the runner's own addresses want a token besides."""
    told = HOOK.search(address) or (SECRET_NAMES.search(name) and not name.startswith("_ACTIONS_"))
    return bool(told) and any(map(looks_made, address.split("/")))


def _is_common(value: str) -> bool:
    """Whether everybody knows it already: the `postgres` and `password` of a test database are ordinary words."""
    return value.isalnum() and bool(PLACEHOLDERS.match(value))


def _is_place(value: str) -> bool:
    """Whether it only names a file that holds secrets: GOOGLE_APPLICATION_CREDENTIALS."""
    absolute = value.startswith("/") and len(value) < 1_000 and os.path.exists(value)
    return absolute or bool(PLACE.fullmatch(value))
