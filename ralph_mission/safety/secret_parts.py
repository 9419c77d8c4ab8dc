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
HEXADECIMAL = re.compile("(?=.*[0-9])(?=.*[a-f])[0-9a-f][0-9a-f-]{18,}", re.IGNORECASE)
NAME = re.compile("[a-z]+(?:[._-][a-z]+)*")
LETTERS = re.compile("[A-Za-z._-]+")
NUMBERED = re.compile("[A-Za-z]+[0-9]*(?:[._-](?:[A-Za-z]+[0-9]*|[0-9]+))+")
"""Words and numbers as people join them, as in `Linux-x64` and `Nightly-2024`."""
KEPT = re.compile("[^/*]+|[A-Za-z0-9+/]{32,}={0,2}")
"""What is no path and no pattern; base64 holds slashes, too."""
SOLID = re.compile("[A-Za-z0-9]{16,}")
PAIR = re.compile(
    r"(?:[\w.@-]+:|neo4j/|(?i:bearer|basic|token)\s{1,3})(?P<password>(?:(?<=neo4j/)|(?=[^\s:/]*[0-9])(?=[^\s:/]*[A-Za-z])"
    r"|(?=[^\s:/]*[a-z])(?=[^\s:/]*[A-Z!#$%^&]))[^\s:/]{6,})"
)
"""A user and a password; what follows a colon may be a port or a kind of thing instead, which are of one sort alone."""
FILE = re.compile(r"[\w./@=+-]*/[\w.@=+-]+\.[a-z][a-z0-9]{1,4}")
MACHINES = re.compile("[a-z]{24}|[A-Z]{24}|[0-9]{24}")
"""Longer than the words and numbers that people join."""
CACHED = re.compile("(?P<what>[^/]{0,100}(?i:linux|macos|windows|ubuntu|darwin)[^/]{0,100})-[0-9a-f]{7,64}")
"""As caches are named: what for, on which system, and the hash of what it depends on."""
SHORT = re.compile("[0-9]{1,9}[A-Za-z]{0,3}|[A-Za-z]{1,3}[0-9]{1,2}[A-Za-z]")
"""As in `24h`, `64bit`, `k8s` and `neo4j`."""
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,20}://[^\s\"'?#]*", re.IGNORECASE)
FRAGMENT = re.compile(r"#([^\s\"'&=]{8,})")
SETTING = re.compile(r"""(?<![\w.-])(?P<name>[\w.-]++)["']?\s{0,3}[:=]\s{0,3}["']?(?P<value>[^\s"';&,#}]{8,})""")
CHOSEN = re.compile(r"(?:pass|passw(?:or)?d|passphrase|pwd)$", re.IGNORECASE)
MADE = re.compile(r"(?:token|secret|key|sig|signature|auth|code|credentials?|session|sid)$", re.IGNORECASE)
"""How names end of what a person chose, maybe a word, and of what a machine made, which is none."""


def parts(value: str) -> list[str]:
    """Each part of an address or of settings by which somebody could sign in."""
    found = [*credentials(value), *_of_pair(value)]
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
    """Whether no person would say it: digits among letters and no word, in both cases or long; or a long number."""
    if HEXADECIMAL.fullmatch(value):
        return True  # whatever word its letters make
    if len(value) < LONG and NUMBERED.fullmatch(value):
        return False
    of_both = re.search("[0-9]", value) and re.search("[A-Za-z]", value) and not WORD.search(value)
    return bool(of_both) and (mixed(value) or len(value) >= LONG)


def looks_kept(value: str) -> bool:
    """Whether it may let somebody in where only its name says so: no identifier, path or pattern looks like it."""
    return bool(_of_pair(value) or credentials(value)) or any(map(_is_key, re.split(r"[\s,;]+", value)))


def only_names(value: str, between: str) -> bool:
    """Whether it lets nobody in although its name says so: words and numbers alone, with nothing but `between` them.

    A user and a password are none, unless a colon may be between words: there `common:buttonSave` is two of them.
    """
    pair = _of_pair(value)
    named = re.fullmatch(between, ":") and all(LETTERS.fullmatch(password) for password in pair)
    if credentials(value) or (pair and not named):
        return False
    return all(_is_named(word, between) for word in re.split(r"[\s,;]+", value))


def _is_key(word: str) -> bool:
    named = len(word) < LONG and NUMBERED.fullmatch(word)
    solid = SOLID.fullmatch(word) and not _is_word(word)
    return bool(KEPT.fullmatch(word)) and not named and (looks_made(word) or mixed(word) or bool(solid))


def _is_named(word: str, between: str) -> bool:
    """Whether people put it together of words; many of them, in both cases and with digits, are a passphrase."""
    cached = CACHED.fullmatch(word) if re.fullmatch(between, ":") else None  # where somebody signs in there is none
    phrase = not cached and len(word) >= LONG and "/" not in word and mixed(word)
    pieces = re.split(between, cached["what"] if cached else word)
    return bool(FILE.fullmatch(word)) or (not phrase and all(map(_is_word, pieces)))


def _is_word(piece: str) -> bool:
    """Whether people say it: letters in one case or with few capitals, and maybe a number behind."""
    letters = piece.rstrip("0123456789")
    capitals = sum(map(str.isupper, letters))
    of_people = len(letters) <= 5 or capitals == len(letters) or 3 * capitals <= len(letters)
    said = not letters or (letters.isalpha() and of_people)
    return bool(SHORT.fullmatch(piece)) or (said and not MACHINES.search(piece))


def _of_pair(value: str) -> list[str]:
    """The password behind a user, but for one that everybody knows."""
    pair = PAIR.fullmatch(value)
    return [pair["password"]] if pair and not _is_common(pair["password"]) else []


def _of_people(head: str) -> Iterator[str]:
    """Its password, but for one that everybody knows; and a user who is a token rather than a name, maybe both."""
    try:
        user, password = urlsplit(head).username or "", urlsplit(head).password or ""
    except ValueError:
        return
    if password and not _is_common(password) and password != user:
        yield password
    if looks_made(user) or (
        not password and head.startswith("http") and len(user) >= LONG and not NAME.fullmatch(user)
    ):
        yield user


def _of_path(address: str, alone: bool) -> list[str]:
    """What looks like a token, and how a path ends: a hook's word where it is all there is, but no database's name."""
    try:
        split = urlsplit(address)
    except ValueError:
        return []
    *inner, last = split.path.split("/")
    made = [part for part in inner if looks_made(part)]
    bare = alone and split.scheme.startswith("http") and "@" not in split.netloc
    hook = bare and not (made and NAME.fullmatch(last))
    return [*made, last] if hook or looks_made(last) else made


def _is_told(name: str, value: str) -> bool:
    if CHOSEN.search(name):
        return not _is_common(value)
    return looks_made(value) or bool(MADE.search(name) and not NAME.fullmatch(value) and not value.startswith("/"))


def _is_common(password: str) -> bool:
    return password.isalnum() and bool(PLACEHOLDERS.match(password))
