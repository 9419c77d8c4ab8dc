"""What a run must not leak or change: secret values of the environment, and the files that set its permissions.

No session writes those files, and a restart only obeys those that the run began with. The scope (`RunSpec.protected`)
protects those that git sees; comparing bytes covers ignored ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.errors import UserError
from ralph_mission.safety.secrets import SHORTEST, find_secrets, is_placeholder
from ralph_mission.values import compile_regex, dataclass

SECRET_NAMES = compile_regex(
    "TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|COOKIE(?!CUTTER)|WEBHOOK_URL|DATABASE_URL"
    "|CONNECTION_STRING|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION|DEPLOY|SSH)_KEY|_DB_?PASS$|_(?:PASS|PW)$|(?<=.)_PWD$"
)
"""Parts of names whose values are always secret."""
KEY_NAMES = compile_regex("(?P<what>_KEY|_PAT|_CRED|AUTH)S?(?:_JSON|_B|_BASE)?$")
"""Endings of names whose values are secret if they look like a key. A number at the end, as in `_B64`, is ignored."""
ABOUT = compile_regex(
    "_(?:NAME|TYPE|PATH|FILE|DIR|DIRECTORY|ID|DOMAIN|HELPER|SERVER|HOST|PROVIDER|CONFIG|PREFIX|TTL)$|_MAX_"
)
"""Names that describe a secret: again, the value has to look like a key."""
PUBLIC = compile_regex(
    "_(?:PUBLIC|PUB|PUBLISHABLE|ANON)_|_(?:CACHE|RESTORE|PROJECT|ISSUE|SITE|GPG|HOST|IDEMPOTENCY)_KEYS?$"
)
"""Names of keys that give no access."""
ADDRESS = compile_regex("(?<!WEBHOOK)(?<!DATABASE)_(?:URL|URI|DSN)$")
"""Names of URLs, which are secret only if they contain a password or a token."""
WORD = compile_regex("[A-Za-z]{0,19}[0-9]{0,4}")
JOINTS = compile_regex(r"[-._:/\\=@+*?^$|,#(){}\[\] ]+")
"""Names, paths and patterns consist of words, possibly with a number, and separators; keys do not."""
PAIR = compile_regex(r"[^\s/:]+:(?![0-9]+$)[^\s/:]{4,}|(?i:bearer|basic|token) \S{8,}")
"""Credentials: a user and a password, or a scheme and a token."""
PLACE = compile_regex(r"(?:\.|~)/[\w./-]+")


def environment_secrets() -> tuple[str, ...]:
    """Secret values of the environment, longest first: by their names or their form."""
    values = {value for name, value in os.environ.items() if len(value) >= SHORTEST and _is_secret(name, value)}
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


@lru_cache(1024)
def _is_secret(name: str, value: str) -> bool:
    if _is_our_name(value):
        return False
    if find_secrets(value):
        return True
    named = _is_named_so(f"_{name.upper().rstrip('_0123456789')}", value)
    return named and not _is_place(value) and not is_placeholder(value)


def _is_named_so(name: str, value: str) -> bool:
    if ADDRESS.search(name):
        return False
    if SECRET_NAMES.search(name) and not ABOUT.search(name):
        return True
    if SECRET_NAMES.search(name):
        return _looks_like_a_key(value)
    ending = KEY_NAMES.search(name)
    if not ending or PUBLIC.search(name):
        return False
    signs_in = ending["what"] in ("AUTH", "_CRED") and PAIR.fullmatch(value)
    return bool(signs_in) or _looks_like_a_key(value)


def _is_our_name(value: str) -> bool:
    """Whether it is our commit or our repository: links need them."""
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    names = {_letters(name) for name in (repository, *repository.split("/"))}
    return value == os.environ.get("GITHUB_SHA") or _letters(value) in names


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.casefold())


def _looks_like_a_key(value: str) -> bool:
    return not value.isdigit() and not all(map(WORD.fullmatch, JOINTS.split(value)))


def _is_place(value: str) -> bool:
    """Whether it only names a file that holds secrets: GOOGLE_APPLICATION_CREDENTIALS."""
    absolute = value.startswith("/") and len(value) < 1_000 and os.path.exists(value)
    return absolute or bool(PLACE.fullmatch(value))


LONGEST = 4 * 1024 * 1024  # bytes of one file


@dataclass(frozen=True, slots=True)
class ControlFiles:
    """Settings and objective (`named`, absolute, existing or not), and hat files, a glob below `root`."""

    root: Path
    named: tuple[Path, ...]
    hats: str = ""

    @property
    def globs(self) -> tuple[str, ...]:
        """Those inside the work tree, as gitignore patterns."""
        inside = (path.relative_to(self.root).as_posix() for path in self.named if path.is_relative_to(self.root))
        plain = [re.sub(r"([][\\*?!# ])", r"\\\1", name) for name in inside]
        return tuple(f"/{glob}" for glob in dict.fromkeys((*plain, self.hats)) if glob)

    def read(self) -> Mapping[Path, bytes | None]:
        """Their present contents; None if not readable as a file."""
        listed = sorted(self.root.glob(self.hats)) if self.hats else []
        return {path: _content(path) for path in (*self.named, *listed)}


def require_unaltered(control_files: ControlFiles, before: Mapping[Path, bytes | None]) -> None:
    """Raises UserError if one of them changed since `before`, by anyone."""
    now = control_files.read()
    altered = sorted(path.name for path in now.keys() | before.keys() if now.get(path) != before.get(path))
    if altered:
        what = f"changed while the run was going, so nothing starts by it: {', '.join(dict.fromkeys(altered))}"
        raise UserError(what, "look at it, then resume with --continue")


def _content(path: Path) -> bytes | None:
    try:
        return run_files.read_named(path, LONGEST)
    except (UserError, OSError):
        return None
