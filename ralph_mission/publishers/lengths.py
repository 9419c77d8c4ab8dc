"""How long a text is on each network, and how a long one becomes several.

X counts by weight: an address is 23, an emoji 2, as its own published parser does. Telegram and Discord count
characters; where it is not said of what kind, the larger count is taken: UTF-16 units.
"""

from __future__ import annotations

import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from ralph_mission.extras import require_extra
from ralph_mission.mission.posts import OUTBOX, Post
from ralph_mission.trouble import UserError

MOST = 9  # parts of one post: the counter stays one digit
PLAIN = 4_000  # characters, beyond which nobody has to look closer
LONG = 300  # characters of one word, beyond which it is no address: telling costs the square of its length
WIDE = "\u65e5"  # weighs as much as an emoji
_COUNTER = " (9/9)"
_WORD = re.compile(r"\s*\S+")
_ASCII = re.compile(r"[!-~]+")  # a word or an address: cut in two it is another one, or none
_SENTENCE = re.compile(r"[.!?…](?=\s)|[\u3002\uff01\uff1f]|\n")
_CLUSTER = re.compile(r".(?:[\u0300-\u036f\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|\u200d.)*", re.DOTALL)
Length = Callable[[str], int]


def units(text: str) -> int:
    """UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def weight(text: str) -> int:
    """What X counts. A text far beyond every limit is only measured roughly. Raises Trouble without the extra."""
    require_extra("x", "the length of posts on X needs")
    if len(text) > PLAIN:
        return len(text)
    return sum(map(_weight, re.findall(r"\s+|\S+", text)))


@lru_cache(maxsize=4_096)
def _weight(word: str) -> int:
    # Nothing that X counts as one goes over a blank, so words can be counted alone.
    parser, emoji, weigh = _load_parser()
    if len(word) <= LONG:
        return int(parser.parse_tweet(word).weightedLength)
    rules = parser.config["defaults"]
    return int(sum(weigh(one, rules) for one in emoji.sub(WIDE, word)) // rules["scale"])


@cache
def _load_parser() -> tuple[Any, Any, Any]:
    """X's own parser, its pattern of emoji and its weight of a character. It takes a while to load."""
    with warnings.catch_warnings(action="ignore"):  # it reads its own files by pkg_resources, which is deprecated
        from twitter_text import parse_tweet
        from twitter_text.get_character_weight import get_character_weight
        from twitter_text.regexp.emoji import emoji

        return sys.modules[parse_tweet.__module__], emoji, get_character_weight


MEASURES: Mapping[str, tuple[int, Length]] = {
    "twitter": (280, weight),
    "telegram": (4_096, units),
    "discord": (2_000, units),
    OUTBOX: (4_096, units),
}
"""By network: how much it takes, and how it counts."""


def measure_post(network: str, parts: Sequence[str]) -> Post:
    """These very parts as a post. Raises Trouble for what the network does not take."""
    if network not in MEASURES:
        raise UserError(f"there is no network {network}", f"choose among {', '.join(MEASURES)}")
    limit, length = MEASURES[network]
    lengths = tuple(map(length, parts))
    if not parts or not all(part.strip() for part in parts):
        raise UserError(f"a post on {network} has no text", "write one")
    if len(parts) > MOST:
        raise UserError(f"a post on {network} has {len(parts)} parts", f"shorten it to {MOST} parts at most")
    for at, long in enumerate(lengths, 1):
        if long > limit:
            raise UserError(f"part {at} for {network} has {long:,} of {limit:,} characters", "shorten it")
    return Post(network, tuple(parts), lengths, limit)


def split_text(text: str, network: str) -> tuple[str, ...]:
    """The text as parts that the network takes, cut after sentences or words and counted, such as (1/3).

    Raises Trouble for a word that is too long.
    """
    limit, length = MEASURES[network]
    if length(text) <= limit:
        return (text,)
    room, parts, rest = limit - length(_COUNTER), list[str](), text.strip()
    while rest and len(parts) <= MOST:
        head = _head(rest, room, length)
        parts.append(head.strip())
        rest = rest[len(head) :].strip()
    return tuple(f"{part} ({at}/{len(parts)})" for at, part in enumerate(parts, 1))


def _tear(word: str, room: int, length: Length) -> str:
    """As much of a word as there is room for, in a script that has no blanks. Raises Trouble where it has letters."""
    whole = [match.span() for match in _ASCII.finditer(word)]
    ends = [match.end() for match in _CLUSTER.finditer(word)]
    ends = [end for end in ends if not any(begin < end < over for begin, over in whole)]
    fits = bisect_right(ends, room, key=lambda end: length(word[:end]))
    if not fits:
        raise UserError(f"a word of {len(word):,} characters fits into no part", "shorten it, or its address")
    return word[: ends[fits - 1]]


def _head(text: str, room: int, length: Length) -> str:
    """As much of the beginning as there is room for; whole sentences if they fill half of it, else whole words."""
    ends = [match.end() for match in _WORD.finditer(text)]
    fits = bisect_right(ends, room, key=lambda end: length(text[:end]))
    if not fits:
        return _tear(text[: ends[0]], room, length)
    head = text[: ends[fits - 1]]
    stops = [match.end() for match in _SENTENCE.finditer(text[: len(head) + 1]) if match.end() <= len(head)]
    return head[: stops[-1]] if stops and 2 * length(head[: stops[-1]]) >= room and len(head) < len(text) else head
