"""The examples of the CommonMark specification, and those that may not stay what they are, each for a reason.

The data is CommonMark's, under CC-BY-SA 4.0: see `data/README.md`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from markdown_it import MarkdownIt

DATA = Path(__file__).parent / "data" / "commonmark.json"
MUST_GO = MappingProxyType(
    {
        "a tag, or an address between angle brackets": (
            14, 21, 31, *range(148, 177), 178, 180, 181, 182, *range(184, 192), 195, 201, 344, 475, 476, 477, 489,
            491, 492, 493, 494, 499, 524, 536, 580, 597, 604, 605, *range(613, 618), 623, 627, 628, 629, 630, 631,
            642, 643,
        ),
        "a comment, which no reader sees": (177, 179, 183, 308, 309, 625, 626),
        "an address of a host that is not allowed": (
            20, 346, 480, 481, 501, 526, 538, 594, 595, 600, 602, 603, 608, 611,
        ),
        "an address of a scheme that is not allowed": (596, 598, 599, 601),
        "a name behind an @ that is no address": (606,),
        "a slash and a word that begin a line": (193, 198),
    }
)  # fmt: skip  # by reason
"""What renders differently once it was made harmless, by the number of the example."""
CHANGED = MappingProxyType({number: reason for reason, numbers in MUST_GO.items() for number in numbers})


@dataclass(frozen=True, slots=True)
class Example:
    """One of them."""

    number: int
    section: str
    markdown: str

    def __str__(self) -> str:
        return f"{self.number}-{self.section.replace(' ', '-')}"


def examples() -> tuple[Example, ...]:
    """All of them, in order."""
    raw = json.loads(DATA.read_text("utf-8"))
    return tuple(Example(one["example"], one["section"], one["markdown"]) for one in raw)


def rendered(markdown: str) -> str:
    """As a reader gets it."""
    return str(MarkdownIt("commonmark").render(markdown))
