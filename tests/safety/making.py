"""Patches by hand, for tests of pure code."""

from __future__ import annotations

from ralph_mission.safety.patch import REGULAR, FileChange, Patch

BASE = "0" * 40


def change(
    path: str = "src/app.py",
    old: bytes | None = b"",
    new: bytes | None = b"",
    old_mode: str = REGULAR,
    new_mode: str = REGULAR,
) -> FileChange:
    """One change; a side that is None has no mode either."""
    return FileChange(path, old_mode if old is not None else "", new_mode if new is not None else "", old, new)


def patch(*changes: FileChange) -> Patch:
    """A patch of some changes."""
    return Patch(BASE, changes)


def numbered(count: int, word: str = "value") -> bytes:
    """`count` different lines of ordinary source."""
    return b"".join(b"%s_%d = %d\n" % (word.encode(), index, index) for index in range(count))
