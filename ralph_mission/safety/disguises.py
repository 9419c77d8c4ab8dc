"""How a known value can be written so that no search finds it as it is, and how a text can be read so that one does.

`forms` are the writings of one value that survive any splitting, quoting and padding, because only letters and digits
are compared. `views` are a text's own readings. All of it is bounded; what is encoded is for `unpacking`.
"""

from __future__ import annotations

import base64
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from ralph_mission.safety.hidden import CONTROL, ESCAPE, INVISIBLE
from ralph_mission.safety.secret_parts import WORD, parts
from ralph_mission.safety.token_formats import mixed
from ralph_mission.safety.unpacking import ROUNDS

SHORTEST = 8
"""Characters below which a known value is too common a word to look for."""
UNCOUNTED = re.compile("[^A-Za-z0-9]+")
LOWER = bytes(range(128)).lower() + bytes(range(128, 256))
OTHERS = bytes(octet for octet in range(128) if not chr(octet).isalnum())
MARKUP = re.compile(r"<!--.{0,400}?-->|</?[A-Za-z][^<>]{0,400}>|\]\([^()\s]{0,400}\)", re.DOTALL)


def squeezed(text: str) -> str:
    """Its letters and digits alone, in lower case."""
    return text.encode("ascii", "ignore").translate(LOWER, OTHERS).decode()  # much faster than a pattern


# --- a value --------------------------------------------------------------------------


@lru_cache(maxsize=256)
def forms(value: str) -> frozenset[str]:
    """Every writing of one value, squeezed: plain, in parts, rot13, as numbers, base32 and base64; reversed, too."""
    known = [value, *parts(value), *_lines(value)] if len(value) >= SHORTEST else []
    found = {form for part in known for form in _written(part)}
    return frozenset(form for form in found if len(form) >= SHORTEST)


def _written(value: str) -> Iterator[str]:
    plain = squeezed(value)
    yield from (plain, plain[::-1])
    for part in _telling_parts(value):
        for text in (part, part[::-1]):
            yield from (squeezed(text), codecs.encode(squeezed(text), "rot13"))
            for form in _encoded(text.encode("utf-8", "surrogateescape")):
                yield from (form, form[::-1])


def _encoded(octets: bytes) -> Iterator[str]:
    yield from _numbers(octets)
    yield from _aligned(octets, 3, 6, base64.b64encode)
    yield from _aligned(octets, 5, 5, base64.b32encode)


def _telling_parts(value: str) -> tuple[str, ...]:
    """What is enough to know a value by: its beginning and its end, but for short ones and addresses."""
    random = mixed(value) and not WORD.search(value)  # half of a phrase is what anybody may say
    most = max(10, -(-len(value) // 2) if random else -(-2 * len(value) // 3))
    return (value,) if "://" in value or len(value) < 12 else (value[:most], value[-most:])


def _numbers(octets: bytes) -> Iterator[str]:
    yield octets.hex()
    for mark in ("0x", "x", "u", "u00", "u000000", "25"):  # the last: percent signs that are encoded themselves
        yield mark.join(("", *(f"{octet:02x}" for octet in octets)))
    yield from ("".join(format(octet, base) for octet in octets) for base in ("d", "03d", "o", "03o", "08b"))


def _aligned(octets: bytes, group: int, bits: int, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """The letters of so many bits that stay the same whatever stands before and after, for each place in a group."""
    for shift in range(group):
        encoded = encode(b"\0" * shift + octets).decode().rstrip("=")
        yield squeezed(encoded[-(-shift * 8 // bits) : (shift + len(octets)) * 8 // bits])


def _lines(value: str) -> list[str]:
    """Each line of a key that has several, but for those that say what it is."""
    lines = [line.strip() for line in value.splitlines()]
    return [line for line in lines if len(line) >= 16 and not line.startswith("-----")] if len(lines) > 1 else []


# --- a text ---------------------------------------------------------------------------


def views(text: str) -> tuple[str, ...]:
    """A text as it stands and as its readers may see it: nothing invisible, decoded, plain letters, no mark-up."""
    bare = INVISIBLE.sub("", CONTROL.sub("", ESCAPE.sub("", text)))
    plain = bare
    for _ in range(ROUNDS):
        if (decoded := html.unescape(unquote(plain))) == plain:
            break
        plain = decoded
    folded = plain if plain.isascii() else unicodedata.normalize("NFKC", plain)
    return tuple(dict.fromkeys((text, bare, unquote(text), html.unescape(text), plain, folded, MARKUP.sub("", folded))))
