"""A patch in its compact, storable form: line edits against a known base.

Text in, text out. `edits(old, new)` and `apply(old, edits)` are each other's inverse for
UTF-8 text; anything else has no compact form and never goes into an automatic pull.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ralph_mission.safety.lines import changed
from ralph_mission.safety.patch import REGULAR, FileChange, Patch


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `delete` lines from 0-based line `start` of the old file by `insert` (ends kept)."""

    start: int
    delete: int
    insert: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileDelta:
    """One path's change. `mode` "" deletes the path; a new file is edits against nothing."""

    path: str
    mode: str
    edits: tuple[Edit, ...]


def edits(old: bytes, new: bytes) -> tuple[Edit, ...]:
    """The line edits that turn `old` into `new`. Raises UnicodeDecodeError when not UTF-8."""
    before, after = _lines(old), _lines(new)
    return tuple(Edit(a, b - a, tuple(after[c:d])) for a, b, c, d in changed(before, after))


def apply(old: bytes, changes: tuple[Edit, ...]) -> bytes:
    """`old` with the edits made. Raises ValueError when they do not fit it."""
    lines = _lines(old)
    for edit in reversed(changes):
        if edit.start + edit.delete > len(lines):
            raise ValueError(f"edit at line {edit.start + 1} reaches past the end of the file")
        lines[edit.start : edit.start + edit.delete] = edit.insert
    return "".join(lines).encode()


def deltas(patch: Patch) -> tuple[FileDelta, ...]:
    """The compact form of a patch. Raises UnicodeDecodeError when a side is not UTF-8."""
    return tuple(_delta(change) for change in patch.changes)


def sketch(files: Iterable[FileDelta], base: str) -> Patch:
    """A patch of the same paths, modes, size and new text as `files`, for judging them where the old text is not known.

    Every line that goes stands for itself as an empty one.
    """
    return Patch(base, tuple(_sketched(file) for file in files))


def _sketched(file: FileDelta) -> FileChange:
    gone = b"\n" * sum(edit.delete for edit in file.edits)
    come = "".join(line for edit in file.edits for line in edit.insert).encode()
    if not file.mode:
        return FileChange(file.path, REGULAR, "", b"\n", None)
    return FileChange(file.path, REGULAR if gone else "", file.mode, gone or None, come)


def _delta(change: FileChange) -> FileDelta:
    if change.new is None:
        return FileDelta(change.path, "", ())
    return FileDelta(change.path, change.new_mode, edits(change.old or b"", change.new))


def _lines(text: bytes) -> list[str]:
    # Only "\n" ends a line here: other separators must survive byte for byte.
    parts = text.decode().split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
