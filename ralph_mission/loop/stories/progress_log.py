"""`progress.txt` as text: patterns on top, one entry per session, nothing ever taken out.

Two ways of writing an entry are read: snarktank/ralph's (`- **Learnings for future iterations:**` and a list below it)
and oh-my-claudecode's (bold headings of their own, brackets around the date).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.loop.model.state import ProgressNotes

TITLE = "# Ralph Progress Log"
PATTERNS = "## Codebase Patterns"
RULE = "---"
MAX_HEADING = 300
"""Characters of an entry's heading; a longer line is prose, or meant to keep us busy."""

_HEADING = re.compile(r"^##?\s")
_PATTERNS = re.compile(r"^##\s+codebase patterns\b", re.I)
_ENTRY = re.compile(r"^##\s+\[?(?P<when>[^\]\n]*?\d[^\]\n]*?)\]?\s+[-–—]\s+\[?(?P<name>[^\]\n]+?)\]?\s*$")  # noqa: RUF001  # people write all three dashes
_BULLET = re.compile(r"^\s*[-*+]\s+(?P<text>\S.*)$")
_LABEL = re.compile(
    r"^(?:[-*+]\s+)?(?:\*\*(?P<bold>[^*]+?)(?::\*\*|\*\*:)|(?P<plain>learnings[^:]*):)\s*(?P<rest>.*)$", re.I
)
"""A heading inside of an entry. Indented ones are not: `  - **Gotcha:** …` is a learning."""
_FAILED = re.compile(r"^\s*[-*+]\s+(?:attempted\b|failed because\b|not passed\b)", re.I)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One `## [when] - name` of the log."""

    name: str
    learnings: tuple[str, ...] = ()
    failed: bool = False


def header(now: datetime) -> str:
    """The head of a new log, as both originals write it."""
    return f"{TITLE}\nStarted: {now:%Y-%m-%d %H:%M} UTC\n\n{PATTERNS}\n(none yet)\n\n{RULE}\n"


def notes(text: str) -> ProgressNotes:
    """Patterns, learnings (oldest first) and the story whose last entry tells no failure."""
    entries = list(_entries(text))
    last = {entry.name: entry for entry in entries}
    done = [entry.name for entry in entries if not last[entry.name].failed]
    learnings = dict.fromkeys(learning for entry in entries for learning in entry.learnings)
    return ProgressNotes(patterns(text), tuple(learnings), done[-1] if done else "")


def says(text: str) -> bool:
    """Whether a log holds more than its head: an entry, a pattern, a line of somebody's own."""
    own = [line for line in _past(text) if line != TITLE and not line.startswith("Started:")]
    return bool(own or patterns(text))


def patterns(text: str) -> tuple[str, ...]:
    """The list under every `## Codebase Patterns`; of AGENTS.md and CLAUDE.md too."""
    lines = (line for block in blocks(text) if _PATTERNS.match(block) for line in _until_rule(block.splitlines()[1:]))
    found = (match["text"].strip() for line in lines if (match := _BULLET.match(line)))
    return tuple(dict.fromkeys(one for one in found if not (one.startswith("(") and one.endswith(")"))))


def blocks(text: str) -> list[str]:
    """The text cut before each heading of the first two levels; the first block is what stands above them all."""
    cut: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if _HEADING.match(line):
            cut.append([])
        cut[-1].append(line)
    return ["".join(lines) for lines in cut]


def has_lost_entries(before: str, after: str) -> bool:
    """Whether anything of the past is gone: a line outside of the patterns, or all of the patterns.

    Patterns are there to be consolidated; entries, and where they stand among each other, are not.
    """
    if after.startswith(before):
        return False
    rest = iter(_past(after))
    return any(line not in rest for line in _past(before)) or bool(patterns(before) and not patterns(after))


def restore_entries(before: str, after: str) -> str:
    """The log of before, whole, with what `after` added to it at the end, and its patterns when it has any."""
    if not has_lost_entries(before, after):
        return after
    if before.startswith(after.rstrip()):  # cut off, maybe within a line
        return before
    old, new = blocks(before), blocks(after)
    fresh = [block for block in new if _PATTERNS.match(block) and patterns(block)]
    kept = [fresh[0] if fresh and _PATTERNS.match(block) else block for block in old]
    known = {line.strip() for line in before.splitlines()}
    added = [block for block in new if not _PATTERNS.match(block) and _adds(block, known)]
    return _join_parts([*kept, *added])


def _adds(block: str, known: set[str]) -> bool:
    """Whether a block says anything that was not there; its own lines may well be."""
    return any(line.strip() and line.strip() not in known for line in block.splitlines())


def _join_parts(parts: Sequence[str]) -> str:
    return "".join(part if part.endswith("\n") or not part else f"{part}\n" for part in parts)


def _past(text: str) -> list[str]:
    lines = (line.rstrip() for block in blocks(text) for line in _outside(block))
    return [line for line in lines if line and line != RULE]


def _outside(block: str) -> list[str]:
    lines = block.splitlines()
    if not _PATTERNS.match(block):
        return lines
    return lines[1 + len(_until_rule(lines[1:])) :]


def _until_rule(lines: Sequence[str]) -> list[str]:
    end = next((place for place, line in enumerate(lines) if line.strip() == RULE), len(lines))
    return list(lines[:end])


def _entries(text: str) -> Iterator[LogEntry]:
    for block in blocks(text):
        lines = block.splitlines()
        found = _ENTRY.match(lines[0]) if lines and len(lines[0]) <= MAX_HEADING else None
        if found:
            yield LogEntry(found["name"].strip(), tuple(_learnings(lines[1:])), any(map(_FAILED.match, lines)))


def _learnings(lines: Sequence[str]) -> Iterator[str]:
    learning = False
    for line in lines:
        if line.strip() == RULE:
            learning = False
        elif label := _LABEL.match(line):
            learning = "learning" in (label["bold"] or label["plain"]).lower()
            if learning and label["rest"]:
                yield label["rest"].strip()
        elif learning and (bullet := _BULLET.match(line)):
            yield bullet["text"].strip()
