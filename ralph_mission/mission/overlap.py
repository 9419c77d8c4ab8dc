"""Whether people are already at work on the lines that a finding is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ralph_mission.mission.model import Finding, Pull
from ralph_mission.safety.edits import edits
from ralph_mission.safety.patch import Patch, patch_ids
from ralph_mission.safety.text import closing_keywords


def others(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Open pulls of anybody but us."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state == "open")


def recent(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Pulls of anybody but us that are open, or were merged a short time ago."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state in ("open", "merged"))


def closes(pull: Pull) -> frozenset[int]:
    """The issues that merging this pull closes, by what its title and text say."""
    said = closing_keywords(f"{pull.title}\n\n{pull.body}")
    return frozenset(int(number) for words in said for number in re.findall(r"\d+$", words))


def same_change(pull: Pull, patch: Patch | None) -> bool:
    """Whether a pull makes every change of a patch, file by file, wherever the lines stand there."""
    return patch is not None and bool(patch.changes) and patch_ids(patch) <= pull.patch_ids


def touches(pull: Pull, finding: Finding) -> bool:
    """Whether a pull changes a line that the finding stands on or that its own patch changes."""
    lines = [*_changed_lines(finding), *([finding.signal.line] if finding.signal.line else [])]
    return any(
        touch.path == finding.signal.path and any(touch.first <= line <= touch.last for line in lines)
        for touch in pull.touches
    )


def untouched(members: Sequence[Finding], pulls: Sequence[Pull]) -> Sequence[Finding]:
    """What one proposal is about, without the members that a pull touches: they must not hold up the others.

    Where every member is touched they all stay: whoever judges them says why they wait.
    """
    return [member for member in members if not any(touches(pull, member) for pull in pulls)] or members


def _changed_lines(finding: Finding) -> Iterator[int]:
    """1-based lines of the old file that the finding's own patch changes."""
    for change in finding.signal.patch.changes if finding.signal.patch else ():
        for edit in edits(change.old or b"", change.new or b""):
            yield from range(edit.start + 1, edit.start + 1 + max(edit.delete, 1))
