"""Finds secrets in any text that would leave, and takes them out: known values, and common token formats.

A known value is found as it stands, as addresses quote it, and in base64, whatever stands around it there; terminal
colours, invisible characters and entities within it do not hide it. Any other writing (hex, reversed, split,
compressed) does: this is against leaks by accident, not against somebody who holds a secret and means to send it.
Formats are in `token_formats`. Answers name kinds, never values.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, takewhile
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from ralph_mission.safety.detect import decode_entities
from ralph_mission.safety.hidden import without_controls, without_invisible
from ralph_mission.safety.token_formats import Span, find_formats, is_placeholder

SHORTEST = 8
"""Characters below which a known value is too common a word to look for."""
LONG_LINE = 16
"""Characters from which on a line of a value that has several, as keys do, is looked for alone."""
CUT = "…"
"""What stands where a text was cut: of a value that it went through, the rest is no less secret for it."""
PLAIN = re.compile(r"[a-z]+|[A-Z]+|[0-9.]+")
"""What a setting is rather than a secret, and what any text may say."""
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
Value = TypeVar("Value")


def find_secrets(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds of secrets in `text`: `known-value`, or a format's name. Never a value."""
    look = partial(find_spans, known=tuple(known))
    return tuple(dict.fromkeys(kind for reading in (text, _as_sanitised(text)) for _, _, kind in look(reading)))


def redact(text: str, known: Sequence[str] = ()) -> str:
    """`text` with every secret replaced by `[redacted: kind]`."""
    return _without_spans(text, partial(find_spans, known=tuple(known)))


def without(text: str, known: Sequence[str]) -> str:
    """`text` without these known values. Formats are left alone.

    So are values of lower-case letters alone, of upper-case letters alone, or of digits and dots: this cleans what a
    prompt, memory or a recording says, where a test database's password may be the name of the project or a version,
    and nobody could work on a text without these. Issues, pulls and posts are for `redact`, which spares none.
    """
    telling = tuple(value for value in known if not PLAIN.fullmatch(value))
    return _without_spans(text, lambda reading: tuple(_known_values(reading, telling))) if telling else text


def _without_spans(text: str, look: Callable[[str], tuple[Span, ...]]) -> str:
    text = _cut_out(text, look(text))
    bare = _as_sanitised(text)
    left = look(bare) if bare != text else ()
    return _cut_out(bare, left) if left else text


@lru_cache(maxsize=256)
def _as_sanitised(text: str) -> str:
    """The text without what any sink takes out or decodes, as terminal colours: it must not uncover a secret."""
    return without_invisible(without_controls(decode_entities(without_invisible(without_controls(text)))))


@lru_cache(maxsize=256)  # each rule and each sink asks about the same texts
def find_spans(text: str, known: tuple[str, ...]) -> tuple[Span, ...]:
    """Where tokens of known formats and known values stand in a text."""
    return (*find_formats(text), *_known_values(text, known))


def _known_values(text: str, known: tuple[str, ...]) -> Iterator[Span]:
    plain = list(chain.from_iterable(map(_plain_forms, known)))
    encoded = list(chain.from_iterable(map(_encoded_forms, known)))
    for form in plain:
        yield from ((start, start + len(form), "known-value") for start in _places(form, text))
    if here := [form for form in encoded if form in text]:  # of an encoded part of which some is known, all goes
        runs = ENCODED.finditer(text)
        yield from ((*run.span(), "known-value") for run in runs if any(form in run[0] for form in here))
    for form in (*plain, *encoded) if CUT in text else ():
        yield from _cut_values(form, text)


def _cut_values(form: str, text: str) -> Iterator[Span]:
    """What a cut has left of a value that it took the rest of."""
    for start in _places(form[:SHORTEST], text):
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(form, text[start : start + len(form)], strict=False))
        end = start + sum(1 for _ in pairs)
        if text.startswith(CUT, end):
            yield (start, end, "known-value")


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


@lru_cache(maxsize=256)
def _plain_forms(value: str) -> tuple[str, ...]:
    """A known value and what of it is secret alone, as they stand and as addresses quote them."""
    return tuple(dict.fromkeys(form for part in _parts(value) for form in (part, quote(part, safe=""))))


@lru_cache(maxsize=256)
def _encoded_forms(value: str) -> tuple[str, ...]:
    octets = (part.encode("utf-8", "surrogateescape") for part in _parts(value))
    return tuple(dict.fromkeys(form for part in octets for form in _in_base64(part)))


def _parts(value: str) -> list[str]:
    return [value, *_lines(value), *_password(value)] if len(value) >= SHORTEST else []


def _lines(value: str) -> list[str]:
    """Each line of a key that has several, but for those that say what it is."""
    lines = [line.strip() for line in value.splitlines()]
    return [line for line in lines if len(line) >= LONG_LINE and not line.startswith("-----")] if lines[1:] else []


def _password(value: str) -> list[str]:
    """The password of an address, but for one that everybody knows or that is its user, too."""
    try:
        address = urlsplit(value)
        user, password = address.username or "", address.password or ""
    except ValueError:
        return []
    known = len(password) < SHORTEST or password == user or is_placeholder(password)
    return [] if known else [password, unquote(password)]


def _in_base64(octets: bytes) -> Iterator[str]:
    """The letters that stay the same whatever stands before and after, for each place in a group of three octets."""
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            letters = encode(b"\0" * shift + octets).decode()
            yield letters[-(-shift * 8 // 6) : (shift + len(octets)) * 8 // 6]


def _cut_out(text: str, spans: Iterable[Span]) -> str:
    pieces, end = list[str](), 0
    for start, stop, kind in _join_spans(sorted(spans)):
        pieces += (text[end:start], f"[redacted: {kind}]")
        end = stop
    return "".join((*pieces, text[end:]))


def _join_spans(spans: Sequence[Span]) -> list[Span]:
    """Overlapping spans as one, in order."""
    joined: list[Span] = []
    for start, end, kind in spans:
        if joined and start < joined[-1][1]:
            first, last, known = joined.pop()
            start, end, kind = first, max(last, end), known
        joined.append((start, end, kind))
    return joined


# --- records: every text of a value, however deep it lies ------------------------------


def redact_record(value: Value, known: Sequence[str]) -> Value:
    """The same with no secret in any text: sessions say what they read, and some of that is nobody's business."""
    return _map_texts(value, lambda text: redact(text, known) if text else text)


def strip_known(value: Value, known: Sequence[str], but: Collection[str] = ()) -> Value:
    """The same without these known values, whoever wrote them there; texts that are in `but` stay as they are."""
    if not any(without(text, known) != text for text in texts(value) if text not in but):
        return value
    return _map_texts(value, lambda text: text if text in but else without(text, known))


def texts(value: object) -> Iterator[str]:
    """Every text of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        yield from texts(tuple(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from texts(getattr(value, one.name))


def _map_texts(value: Value, change: Callable[[str], str]) -> Value:
    mapped: Any = value
    if isinstance(mapped, str):
        mapped = mapped if isinstance(mapped, Enum) else change(mapped)
    elif isinstance(mapped, tuple | list | frozenset):
        mapped = type(mapped)(_map_texts(one, change) for one in mapped)
    elif isinstance(mapped, dict):
        mapped = {key: _map_texts(one, change) for key, one in mapped.items()}
    elif is_dataclass(mapped) and not isinstance(mapped, type):
        mapped = replace(mapped, **{one.name: _map_texts(getattr(mapped, one.name), change) for one in fields(mapped)})
    return mapped  # type: ignore[no-any-return]  # of the type it was
