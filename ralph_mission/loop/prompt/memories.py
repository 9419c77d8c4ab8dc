"""What is remembered beyond one run, within a budget: the newest entries, in the order of the file.

How `memories.md` reads and grows: the Markdown of ralph-orchestrator, sections of quoted blocks. Pure.

## Patterns

### mem-1737372000-a1b2
> What is worth knowing, in one or more lines
<!-- tags: imports, structure | created: 2025-01-20 -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from ralph_mission.loop.prompt.framing import tail

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


KINDS = {"pattern": "Patterns", "decision": "Decisions", "fix": "Fixes", "context": "Context"}
"""What a memory is -> the section it stands in."""
EMPTY = "# Memories\n\n" + "\n".join(f"## {section}\n" for section in KINDS.values())

SECTION_LINE = re.compile(rf"## ({'|'.join(KINDS.values())})\s*")
HEADING = re.compile(r"### (mem-\d+-[0-9a-f]{4})\s*")
QUOTED = re.compile(r">(?: (.*))?")
META = re.compile(r"\s*<!-- tags: ([^|]*) \| created: (\d{4}-\d{2}-\d{2}) -->\s*")
UNFIT = re.compile(r"[^\w ./:@#+-]|--+")  # what would end a tag, or the comment the tags stand in


@dataclass(frozen=True, slots=True)
class LoopMemory:
    """One thing that was learned. `created` is a date, YYYY-MM-DD, "" when nobody wrote it down."""

    id: str
    content: str
    kind: str = "pattern"
    tags: tuple[str, ...] = ()
    created: str = ""


def parse_memories(text: str) -> tuple[LoopMemory, ...]:
    """The memories of a file, in its order; what is none is passed over."""
    kind, blocks = "pattern", list[tuple[str, str, list[str]]]()
    names = {section: name for name, section in KINDS.items()}
    for line in text.splitlines():
        if section := SECTION_LINE.fullmatch(line):
            kind = names[section[1]]
        elif heading := HEADING.fullmatch(line):
            blocks.append((heading[1], kind, []))
        elif blocks:
            blocks[-1][2].append(line)
    return tuple(memory for id, kind, lines in blocks if (memory := _memory(id, kind, lines)).content)


def insert_memory(text: str, memory: LoopMemory) -> str:
    """The file with one more memory, on top of its section; everything else stays as it is."""
    section = f"## {KINDS[memory.kind]}"
    lines = (text.rstrip("\n") or EMPTY.rstrip("\n")).split("\n")
    at = next((number for number, line in enumerate(lines, 1) if line.rstrip() == section), 0)
    if not at:
        lines, at = [*lines, "", section], len(lines) + 2
    return "\n".join((*lines[:at], *_block(memory), *lines[at:])) + "\n"


def find_memories(memories: tuple[LoopMemory, ...], query: str) -> tuple[LoopMemory, ...]:
    """The memories that hold every word of the query, in any case, in their text or tags; all for an empty one."""
    words = query.casefold().split()
    return tuple(memory for memory in memories if all(word in _search_text(memory) for word in words))


def tag(text: str) -> str:
    """A tag that stays one in the file; "" when nothing is left."""
    return " ".join(UNFIT.sub(" ", text).split())


def _search_text(memory: LoopMemory) -> str:
    return "\n".join((memory.content, *memory.tags)).casefold()


def _memory(id: str, kind: str, lines: list[str]) -> LoopMemory:
    content = "\n".join(quoted[1] or "" for line in lines if (quoted := QUOTED.fullmatch(line)))
    meta = next((match for line in lines if (match := META.fullmatch(line))), None)
    tags = tuple(name.strip() for name in meta[1].split(",") if name.strip()) if meta else ()
    return LoopMemory(id, content.strip(), kind, tags, meta[2] if meta else "")


def _block(memory: LoopMemory) -> list[str]:
    quoted = [f"> {line}" for line in memory.content.splitlines()]
    return ["", f"### {memory.id}", *quoted, f"<!-- tags: {', '.join(memory.tags)} | created: {memory.created} -->"]
