"""The text of posts: facts made readable and sanitised, measured, split for each network.

A template only sees a finding's typed facts, never its title or detail. A fact may come from a foreign database row:
nothing in it mentions anybody, links anywhere, formats anything, or looks like something else. Numbers stay exact.

X counts by weight: a URL is 23, an emoji 2, as in its published parser. Telegram and Discord count characters; where
the kind is not documented, the larger count is used: UTF-16 units.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from functools import cache, lru_cache
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
from ralph_mission.mission.model.forge import OUTBOX, Post
from ralph_mission.mission.model.mission import Finding
from ralph_mission.safety import text
from ralph_mission.safety.markdown import without_unseen
from ralph_mission.values import compile_regex

DIGITS = 320  # before the point: every float has fewer, and people do not read longer numbers
_TIME = compile_regex(r"\d{4}-\d\d-\d\d(T|$)")
_EXACT = Context(prec=2 * DIGITS)


def number(value: object) -> Decimal:
    """The exact number. Raises ValueError for anything that is not a finite number."""
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{str(value)[:40]!r} is not a number") from None
    if not exact.is_finite():
        raise ValueError("not a finite number")
    if exact.adjusted() >= DIGITS:
        raise ValueError(f"a number of more than {DIGITS} digits")
    return exact


def _round(value: object, places: int) -> str:
    step = Decimal(1).scaleb(-max(0, min(int(places), 10)))
    digits = f"{number(value).quantize(step, context=_EXACT):,f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if digits == "-0" else digits


def thousands(value: object, places: int = 2) -> str:
    """1234567.891 as 1,234,567.89."""
    return _round(value, places)


def percent(value: object, places: int = 1, signed: bool = False) -> str:
    """31.25 as 31.2%; signed: +31.2%."""
    plus = "+" if signed and number(value) > 0 else ""
    return f"{plus}{_round(value, places)}%"


def compact(value: object, places: int = 1) -> str:
    """1234567 as 1.2M."""
    exact = number(value)
    for size, name in ((Decimal(10**12), "T"), (Decimal(10**9), "B"), (Decimal(10**6), "M"), (Decimal(10**3), "K")):
        if abs(exact) >= size:
            return _round(_EXACT.divide(exact, size), places) + name
    return _round(exact, places)


def day(value: object) -> str:
    """2026-02-16T06:00:00Z as 2026-02-16."""
    return str(value)[:10]


def label(value: object) -> str:
    """new-validators as "new validators"."""
    return str(value).replace("-", " ")


def cells(row: object) -> str:
    """The values of a row, in order."""
    return ", ".join(map(cells, row.values())) if isinstance(row, Mapping) else str(row)


def names(row: object) -> str:
    """The values of a row that are words, not numbers or times."""
    if isinstance(row, Mapping):
        return ", ".join(filter(None, map(names, row.values())))
    return row if isinstance(row, str) and not _TIME.match(row) else ""


FILTERS: Mapping[str, Callable[..., str]] = {
    "thousands": thousands,
    "percent": percent,
    "compact": compact,
    "day": day,
    "label": label,
    "cells": cells,
    "names": names,
}


LONGEST = 80  # characters
Fact = str | int | float
_WIDE = compile_regex("[\ufe50-\ufe6f\uff01-\uff60]")  # look like @, #, / or a dot, and networks treat them so
_MARK_UP = compile_regex(r"[@#<>*_`~|\\\[\]{}^]")
_ADDRESS = compile_regex(r"(?i)\b[a-z][a-z0-9+.-]*:/+|//+|\bwww\.")
_DOMAIN = compile_regex(r"(?<=\S)[.\u3002\uff61](?=[^\W\d_])")
_LEADING = compile_regex(r"(?:(?<=\s)|^)[/$](?=[^\W\d_])|\$(?=[^\W\d_])")  # commands of bots, names of shares
_NUMBER = compile_regex(r"-?\d{1,40}(\.\d{1,40})?", re.ASCII)
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_PILED = compile_regex(f"([{_MARKS}]{{2}})[{_MARKS}]+")


def value(fact: Fact) -> str | Decimal:
    """A fact for a template: a number if it is one, else sanitised text."""
    if isinstance(fact, float):
        fact = repr(fact)
    if isinstance(fact, int):
        return Decimal(fact)
    return Decimal(fact) if _NUMBER.fullmatch(fact) and str(Decimal(fact)) == fact else clean_fact(fact)


def clean_fact(raw: str) -> str:
    """One line of at most `LONGEST` characters without mentions, tags, URLs, mark-up and look-alikes. Idempotent."""
    cleaned = raw[: LONGEST * 20]
    for _ in range(5):
        before, cleaned = cleaned, _clean_once(cleaned)
        if cleaned == before:
            return cleaned
    return text.truncate(re.sub(r"[^\w ]", "", cleaned), LONGEST)


def _clean_once(raw: str) -> str:
    plain = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), html.unescape(raw))
    plain = _PILED.sub(r"\1", without_unseen(plain))
    plain = _ADDRESS.sub(" ", _MARK_UP.sub(" ", plain))
    plain = _LEADING.sub("", _DOMAIN.sub(". ", plain))
    return text.inline_words(" ".join(plain.split()), LONGEST)


SOURCES = frozenset({"database", "dependencies", "forge", "missions", "social"})
"""Observers with typed facts. Text from the web is free text and never posted."""
COLUMNS = ("order_by",)  # facts that name a column, to look up in `rows`
MOST_FACTS = 1_000  # facts: a ranking has up to 50 places, each with its cells
_NAME = compile_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def template_facts(finding: Finding) -> dict[str, Any]:
    """Facts by name; the cells of a row in `row`, by path; of a ranking in `rows`, one mapping per place.

    `about`: in short what it is about: its name, or the names in the row, else the group, else the table.
    {} without typed facts.
    """
    signal = finding.signal
    if signal.observer not in SOURCES:
        return {}
    facts = {name: value(fact) for name, fact in signal.facts[:MOST_FACTS] if _NAME.fullmatch(name)}
    if not facts:
        return {}
    row = {name.removeprefix("row."): one for name, one in facts.items() if name.startswith("row.")}
    places = {name: one for name, one in row.items() if name[0].isdigit()}
    own: dict[str, Any] = {name: one for name, one in facts.items() if not name.startswith("row.")}
    own |= {name: fact for name, fact in signal.facts if name in COLUMNS and _NAME.fullmatch(str(fact))}
    own |= {"kind": clean_fact(finding.kind), "row": _nest(row), "rows": _ranking(places)}
    return own | {"about": _about(row, own)}


def _about(row: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    return (
        str(own.get("name") or "")
        or ("" if own["rows"] else names(row))
        or str(own.get("group") or own.get("model") or own.get("watch") or "")
    )


def _nest(row: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in sorted(row, key=lambda path: path.count(".")):  # nested fields win over the field itself
        *way, last = path.split(".")
        place = tree
        for step in way:
            if not isinstance(place.get(step), dict):
                place[step] = {}
            place = place[step]
        place[last] = row[path]
    return tree


def _ranking(places: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for name, one in places.items():
        place, _, field = name.partition(".")
        if place.isdigit() and field:
            rows.setdefault(int(place), {})[field] = one
    return [_nest(rows[place]) if _deep(rows[place]) else rows[place] for place in sorted(rows)]


def _deep(row: Mapping[str, Any]) -> bool:
    return any("." in name for name in row)


MOST = 9  # parts of one post: the counter stays one digit
PLAIN = 4_000  # characters, beyond which a rough measure is enough
LONG = 300  # characters of a word, beyond which it is not a URL: parsing takes quadratic time
WIDE = "\u65e5"  # weighs as much as an emoji
_COUNTER = " (9/9)"
_WORD = compile_regex(r"\s*\S+")
_ASCII = compile_regex(r"[!-~]+")  # a word or a URL must not be cut
_SENTENCE = compile_regex(r"[.!?…](?=\s)|[\u3002\uff01\uff1f]|\n")
_CLUSTER = compile_regex(r".(?:[\u0300-\u036f\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|\u200d.)*", re.DOTALL)
Length = Callable[[str], int]


def units(text: str) -> int:
    """UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def weight(text: str) -> int:
    """The weight X counts. A text far beyond every limit is only measured roughly. Raises UserError without the
    extra."""
    require_extra("x", "the length of posts on X needs")
    if len(text) > PLAIN:
        return len(text)
    return sum(map(_weight, re.findall(r"\s+|\S+", text)))


@lru_cache(maxsize=4_096)
def _weight(word: str) -> int:
    # X counts nothing across blanks, so words can be measured separately.
    parser, emoji, weigh = _load_parser()
    if len(word) <= LONG:
        return int(parser.parse_tweet(word).weightedLength)
    rules = parser.config["defaults"]
    return int(sum(weigh(one, rules) for one in emoji.sub(WIDE, word)) // rules["scale"])


@cache
def _load_parser() -> tuple[Any, Any, Any]:
    """X's own parser, its emoji pattern and its character weights. Slow to load."""
    with warnings.catch_warnings(action="ignore"):  # it reads its own files by pkg_resources, which is deprecated
        from twitter_text import parse_tweet
        from twitter_text.get_character_weight import get_character_weight
        from twitter_text.regexp.emoji import emoji

        return sys.modules[parse_tweet.__module__], emoji, get_character_weight


Measure = tuple[int, Length]
MEASURES: Mapping[str, Measure] = {
    "twitter": (280, weight),
    "telegram": (4_096, units),
    "discord": (2_000, units),
    OUTBOX: (4_096, units),
}
"""By network: its limit, and how it counts."""


def measure_post(network: str, parts: Sequence[str], measure: Measure | None = None) -> Post:
    """Measure these parts as a post. Raises UserError if the network does not accept them."""
    if not measure and network not in MEASURES:
        raise UserError(f"there is no network {network}", f"choose among {', '.join(MEASURES)}")
    limit, length = measure or MEASURES[network]
    lengths = tuple(map(length, parts))
    if not parts or not all(part.strip() for part in parts):
        raise UserError(f"a post on {network} has no text", "write one")
    if len(parts) > MOST:
        raise UserError(f"a post on {network} has {len(parts)} parts", f"shorten it to {MOST} parts at most")
    for at, long in enumerate(lengths, 1):
        if long > limit:
            raise UserError(f"part {at} for {network} has {long:,} of {limit:,} characters", "shorten it")
    return Post(network, tuple(parts), lengths, limit)


def split_text(text: str, network: str, measure: Measure | None = None) -> tuple[str, ...]:
    """Split a text into parts that the network accepts, after sentences or words, numbered such as (1/3).

    Raises UserError for a word that is too long.
    """
    limit, length = measure or MEASURES[network]
    if length(text) <= limit:
        return (text,)
    space, parts, rest = limit - length(_COUNTER), list[str](), text.strip()
    while rest and len(parts) <= MOST:
        head = _head(rest, space, length)
        parts.append(head.strip())
        rest = rest[len(head) :].strip()
    return tuple(f"{part} ({at}/{len(parts)})" for at, part in enumerate(parts, 1))


def _tear(word: str, space: int, length: Length) -> str:
    """As much of a word as fits, in a script without blanks. Raises UserError in any other."""
    whole = [match.span() for match in _ASCII.finditer(word)]
    ends = [match.end() for match in _CLUSTER.finditer(word)]
    ends = [end for end in ends if not any(begin < end < over for begin, over in whole)]
    fits = bisect_right(ends, space, key=lambda end: length(word[:end]))
    if not fits:
        raise UserError(f"a word of {len(word):,} characters fits into no part", "shorten it, or its address")
    return word[: ends[fits - 1]]


def _head(text: str, space: int, length: Length) -> str:
    """As much of the beginning as fits; whole sentences if they fill half of it, else whole words."""
    ends = [match.end() for match in _WORD.finditer(text)]
    fits = bisect_right(ends, space, key=lambda end: length(text[:end]))
    if not fits:
        return _tear(text[: ends[0]], space, length)
    head = text[: ends[fits - 1]]
    stops = [match.end() for match in _SENTENCE.finditer(text[: len(head) + 1]) if match.end() <= len(head)]
    return head[: stops[-1]] if stops and 2 * length(head[: stops[-1]]) >= space and len(head) < len(text) else head
