"""Whose turn it is to be read in full, and what is remembered of that from look to look.

A look reads a few; a round is over when every one has had its turn, and then a new one begins. New
activity gives a thing another turn in the same round. What looks like a question comes first, and
authors take turns, so that one who files thousands hides nobody else's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, zip_longest
from typing import Any, TypeVar

from ralph_mission.mission.threads import Issue, Pull

ROUND = 500  # things remembered as read; beyond it, the lowest numbers get another turn early
_RANGES = re.compile(r"(?:\d{1,9}(?:-\d{1,9})?(?:,|$))*")

Item = TypeVar("Item", Issue, Pull)
Told = tuple[str, int]  # kind, number


@dataclass(frozen=True, slots=True)
class ForgeCursor:
    """What is remembered: when we looked, since when we count, what was read in this round and what waits."""

    at: datetime | None = None
    since: datetime | None = None  # the start of the window that `forge_pulse` counts in
    stars: int | None = None  # at that moment
    read: frozenset[int] = frozenset()
    told: frozenset[Told] = frozenset()

    @classmethod
    def parse(cls, text: str) -> ForgeCursor:
        """From the memory file; what cannot be read is a first look."""
        try:
            kept = json.loads(text)
            told = {(str(kind), number) for kind, ranges in kept["told"].items() for number in _numbers(ranges)}
            return cls(
                _moment(kept["at"]),
                _moment(kept["since"]),
                _whole(kept.get("stars")),
                frozenset(_numbers(kept["read"])),
                frozenset(told),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls()

    def dump(self) -> str:
        """On one line, as short as may be."""
        kinds = sorted({kind for kind, _ in self.told})
        kept = {
            "at": self.at.isoformat(timespec="seconds") if self.at else None,
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "stars": self.stars,
            "read": _ranges(sorted(self.read)[-ROUND:]),
            "told": {kind: _ranges(sorted(n for of, n in self.told if of == kind)) for kind in kinds},
        }
        return json.dumps(kept, separators=(",", ":"))


def next_up(items: Sequence[Item], read: frozenset[int], most: int) -> tuple[list[Item], frozenset[int]]:
    """At most `most` of `items` that have not had their turn, and who had it in this round."""
    everyone = frozenset(item.number for item in items)
    had = read & everyone
    had = had if had != everyone else frozenset()
    unread = [item for item in items if item.number not in had]
    chosen: list[Item] = fair([item for item in unread if _may_ask(item)], most)
    chosen += fair([item for item in unread if not _may_ask(item)], most - len(chosen))
    return chosen, had


def fair(items: Iterable[Item], most: int) -> list[Item]:
    """At most `most` items, the latest activity first, authors taking turns."""
    by_author: dict[int, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.updated_at, reverse=True):
        by_author.setdefault(item.author.id, []).append(item)
    turns = (item for turn in zip_longest(*by_author.values()) for item in turn if item is not None)
    return list(islice(turns, most))


def _may_ask(item: Issue | Pull) -> bool:
    return item.title.rstrip().endswith("?") or "question" in {label.casefold() for label in item.labels}


def _moment(text: Any) -> datetime | None:
    if text is None:
        return None
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError
    return when


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _ranges(numbers: Sequence[int]) -> str:
    """`[1, 2, 3, 7]` as `1-3,7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _numbers(ranges: str) -> set[int]:
    if not _RANGES.fullmatch(ranges):
        raise ValueError
    found: set[int] = set()
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        found |= set(islice(range(int(first), int(last or first) + 1), ROUND))
        if len(found) > 2 * ROUND:
            raise ValueError
    return found
