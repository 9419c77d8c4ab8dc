"""What of a known value is secret by itself: a password or a token in an address, a setting among others.

Words that anybody may say are none, nor what only names something: a database, a user, a kind of hook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from ralph_mission.safety.token_formats import PLACEHOLDERS, mixed

LONG = 20
"""Letters and digits in one case are made by a machine from so many on."""
WORD = re.compile("[a-z]{6}")
NAME = re.compile("[a-z]+(?:[._-][a-z]+)*")
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,20}://[^\s\"'?#]*", re.IGNORECASE)
FRAGMENT = re.compile(r"#([^\s\"'&=]{8,})")
SETTING = re.compile(r"""(?P<name>[\w.-]{1,60})["']?\s{0,3}[:=]\s{0,3}["']?(?P<value>[^\s"';&,#}]{8,})""")
CHOSEN = re.compile(r"(?:pass|passw(?:or)?d|passphrase|pwd)$", re.IGNORECASE)
MADE = re.compile(r"(?:token|secret|key|sig|signature|auth|code|credentials?|session|sid)$", re.IGNORECASE)
"""How names end of what a person chose, maybe a word, and of what a machine made, which is none."""


def parts(value: str) -> list[str]:
    """Each part of an address or of settings by which somebody could sign in."""
    found = credentials(value)
    if ADDRESS.match(value) and not re.search(r"\s", value):
        found += _of_path(value, alone=not found)
    return list(dict.fromkeys((*found, *map(unquote, found))))


def credentials(value: str) -> list[str]:
    """What of `value` says that it is for signing in, or looks like it; what a path may hold is left out."""
    heads = ADDRESS.findall(value)
    found = [part for head in heads for part in _of_people(head)]
    rest = ADDRESS.sub(lambda head: f" {head[0].rpartition('@')[2].partition(';')[2]}", value)
    if heads:
        found += [part for part in FRAGMENT.findall(rest) if looks_made(part)]
    return [*found, *(match["value"] for match in SETTING.finditer(rest) if _is_told(match["name"], match["value"]))]


def looks_made(value: str) -> bool:
    """Whether no person would say it: digits among letters and no word, in both cases or long."""
    of_both = re.search("[0-9]", value) and re.search("[A-Za-z]", value) and not WORD.search(value)
    return bool(of_both) and (mixed(value) or len(value) >= LONG)


def _of_people(head: str) -> Iterator[str]:
    """Its password, but for one that everybody knows; and a user who is a token rather than a name, maybe both."""
    try:
        user, password = urlsplit(head).username or "", urlsplit(head).password or ""
    except ValueError:
        return
    if not _is_common(password) and password != user:
        yield password
    if looks_made(user) or (not password and head.startswith("http") and len(user) >= LONG):
        yield user


def _of_path(address: str, alone: bool) -> list[str]:
    """What looks like a token, and how a path ends: a hook's word where it is all there is, but no database's name."""
    try:
        scheme, path = urlsplit(address).scheme, urlsplit(address).path
    except ValueError:
        return []
    *inner, last = path.split("/")
    made = [part for part in inner if looks_made(part)]
    named = NAME.fullmatch(last) and not (scheme.startswith("http") and alone and not made)
    return made if named else [*made, last]


def _is_told(name: str, value: str) -> bool:
    if CHOSEN.search(name):
        return not _is_common(value)
    return looks_made(value) or bool(MADE.search(name) and not NAME.fullmatch(value) and not value.startswith("/"))


def _is_common(password: str) -> bool:
    return password.isalnum() and bool(PLACEHOLDERS.match(password))
