"""Whether people are already at work on the lines that a finding is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ralph_mission.mission.model.effects import Effect, OpenPull, PushBranch
from ralph_mission.mission.model.mission import Finding
from ralph_mission.mission.model.threads import Pull, Touch
from ralph_mission.safety.detect import closing_keywords
from ralph_mission.safety.patch import Edit, Patch, edits, patch_ids

_NUMBER = re.compile(r"(?<!\d)\d{1,18}$")
"""What a reference ends in. No forge counts further, and some thousand digits are none that `int` takes."""


def other_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Open pulls of anybody but us."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state == "open")


def recent(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Pulls of anybody but us that are open, or were merged a short time ago."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state in ("open", "merged"))


def closes(pull: Pull) -> frozenset[int]:
    """The issues that merging this pull closes, by what its title and text say."""
    said = closing_keywords(f"{pull.title}\n\n{pull.body}")
    return frozenset(int(number) for words in said for number in _NUMBER.findall(words))


def same_change(pull: Pull, patch: Patch | None) -> bool:
    """Whether a pull makes every change of a patch, file by file, wherever the lines stand there."""
    return patch is not None and bool(patch.changes) and patch_ids(patch) <= pull.patch_ids


def does_the_same(pull: Pull, effect: Effect) -> bool:
    """Whether a pull makes the change that an effect would send, or changes a line that it changes."""
    ids = frozenset(effect.patch_ids) if isinstance(effect, OpenPull) else frozenset()
    return bool(ids and ids <= pull.patch_ids) or _meet(pull.touches, _touched_lines(effect))


def _touched_lines(effect: Effect) -> tuple[Touch, ...]:
    if isinstance(effect, PushBranch):
        return tuple(_touch(file.path, edit) for file in effect.files for edit in file.edits)
    return effect.touches if isinstance(effect, OpenPull) else ()


def _meet(some: Iterable[Touch], others: Sequence[Touch]) -> bool:
    return any(a.path == b.path and a.first <= b.last and b.first <= a.last for a in some for b in others)


def touched_by(patch: Patch) -> tuple[Touch, ...]:
    """The lines of the old files that a patch changes. Raises UnicodeDecodeError where one is not UTF-8."""
    return tuple(
        _touch(change.path, edit) for change in patch.changes for edit in edits(change.old or b"", change.new or b"")
    )


def _touch(path: str, edit: Edit) -> Touch:
    """Where nothing goes, the line below which something comes counts as touched."""
    return Touch(path, edit.start + 1, edit.start + max(edit.delete, 1))


def touches(pull: Pull, finding: Finding) -> bool:
    """Whether a pull changes a line that the finding stands on or that its own patch changes."""
    signal = finding.signal
    own = [touch for touch in touched_by(signal.patch) if touch.path == signal.path] if signal.patch else []
    here = [Touch(signal.path, signal.line, signal.line)] if signal.line else []
    return _meet(pull.touches, [*own, *here])


def drop_touched(members: Sequence[Finding], pulls: Sequence[Pull]) -> Sequence[Finding]:
    """What one proposal is about, without the members that a pull touches: they must not hold up the others.

    Where every member is touched they all stay: whoever judges them says why they wait.
    """
    return [member for member in members if not any(touches(pull, member) for pull in pulls)] or members
