"""What is remembered beyond one run, within a budget: the newest entries, in the order of the file."""

from __future__ import annotations

import re
from itertools import pairwise

from ralph_mission.loop.framing import tail

ENTRY = re.compile(r"^### ", re.MULTILINE)
SECTION = re.compile(r"^## .*$", re.MULTILINE)
CREATED = re.compile(r"\bcreated:\s*(\d{4}-\d\d-\d\d)")


def within(text: str, budget: int) -> tuple[str, int]:
    """The memories that fit into `budget` characters, and how many were left out.

    An entry starts with `### ` (`memories.md` of ralph-orchestrator) and goes whole or not at all; the newest
    by `created:` stay, then those further down. A text without entries keeps its tail, cut at a line.
    """
    if len(text) <= budget or budget <= 0:
        return (text, 0) if budget > 0 else ("", 0)
    entries = _entries(text)
    if not entries:
        kept, _ = tail(text, budget)
        return kept, 1
    chosen = _newest(entries, budget)
    return "\n".join(entries[place][1].rstrip() for place in sorted(chosen)), len(entries) - len(chosen)


def _entries(text: str) -> list[tuple[str, str]]:
    """(date, text) of each entry, in the file's order, without the headings of sections."""
    starts = [match.start() for match in ENTRY.finditer(text)]
    pieces = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    return [(_date(piece), SECTION.split(piece)[0]) for piece in pieces]


def _date(piece: str) -> str:
    found = CREATED.search(piece)
    return found[1] if found else ""


def _newest(entries: list[tuple[str, str]], budget: int) -> set[int]:
    """Places of the entries that fit, newest first; a long one does not keep an older short one out."""
    chosen: set[int] = set()
    for place in sorted(range(len(entries)), key=lambda place: (entries[place][0], place), reverse=True):
        size = len(entries[place][1].rstrip()) + 1
        if size <= budget:
            budget -= size
            chosen.add(place)
    return chosen
