"""What a change really is: measured on blobs, never on what a diff says of itself.

A `Patch` holds the full old and new content of every changed path, so nothing that
only a diff tool believes (attributes, renames, binary heuristics) can hide a line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from ralph_mission.safety.lines import changed

REGULAR = "100644"
EXECUTABLE = "100755"
SYMLINK = "120000"
GITLINK = "160000"

WIDTH = 500
"""Bytes that one line may have and still count as one: a paragraph of some eighty words.

Every further 500 bytes begun count as another line, so an 800 kB line counts as 1,600 and
prose that is written one paragraph a line is not punished.
"""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path before and after. `None` content: the path did not, or does not, exist.

    `path` is the raw path decoded as UTF-8 with `surrogateescape`, relative, with `/`.
    Modes are git's six octal digits, "" where there is no file. The content of a symbolic
    link is its target, that of a gitlink the commit id in hex.
    """

    path: str
    old_mode: str
    new_mode: str
    old: bytes | None
    new: bytes | None


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes against the tree of commit `base` (a full object id)."""

    base: str
    changes: tuple[FileChange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every changed path, in order."""
        return tuple(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class FileMeasure:
    """The size of one path's change.

    `status` is A, M, D or T (the type changed); `lines` is added + deleted in units of
    `WIDTH`, at least 1 for any change at all; `bytes` is the length of those lines; `mode`
    is the new mode, "" for a deletion; `binary` means a side holds NUL or is not UTF-8.
    """

    path: str
    status: str
    lines: int
    bytes: int
    mode: str
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """The size of a whole patch."""

    files: tuple[FileMeasure, ...]

    @property
    def lines(self) -> int:
        """Added + deleted lines of all files."""
        return sum(file.lines for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of the added and deleted lines of all files."""
        return sum(file.bytes for file in self.files)


def measure(patch: Patch) -> Measure:
    """How large `patch` is. A rename is a deletion and an addition; an empty new file counts 1."""
    return Measure(tuple(_measure(change) for change in patch.changes))


def split(content: bytes) -> list[str]:
    """The lines of a blob, ends kept, at every separator that any editor or parser honours.

    `str.splitlines` knows them all: \\n \\r \\r\\n \\v \\f \\x1c-\\x1e U+0085 U+2028 U+2029.
    """
    return content.decode("utf-8", "surrogateescape").splitlines(keepends=True)


def patch_id(path: str, deleted: Iterable[bytes], added: Iterable[bytes]) -> str:
    """Twelve hex digits that two changes of a file share when they delete and add the same, wherever it stands.

    As `git patch-id`: white space and line numbers do not count.
    """
    sides = (b"".join(b"".join(lines).split()) for lines in (deleted, added))
    raw = b"\0".join((path.encode("utf-8", "surrogateescape"), *sides))
    return hashlib.sha256(raw).hexdigest()[:12]


def patch_ids(patch: Patch) -> frozenset[str]:
    """The id of each file's change."""
    return frozenset(
        patch_id(change.path, *([line.encode("utf-8", "surrogateescape") for line in side] for side in touched(change)))
        for change in patch.changes
    )


def touched(change: FileChange) -> tuple[list[str], list[str]]:
    """The deleted and the added lines of one change, in order."""
    old, new = split(change.old or b""), split(change.new or b"")
    if _type(change.old_mode) != _type(change.new_mode):
        return old, new  # a file that becomes a link shares nothing with it
    spans = changed(old, new)
    return [line for a, b, _, _ in spans for line in old[a:b]], [line for _, _, c, d in spans for line in new[c:d]]


def is_binary(content: bytes | None) -> bool:
    """Whether no person could review this as text."""
    if not content:
        return False
    try:
        return "\0" in content.decode()
    except UnicodeDecodeError:
        return True


def _measure(change: FileChange) -> FileMeasure:
    deleted, added = touched(change)
    sizes = [_size(line) for line in (*deleted, *added)]
    binary = is_binary(change.old) or is_binary(change.new)
    return FileMeasure(change.path, _status(change), max(1, _units(sizes)), sum(sizes), change.new_mode, binary)


def _size(line: str) -> int:
    return len(line.encode("utf-8", "surrogateescape"))


def _units(sizes: Iterable[int]) -> int:
    return sum(max(1, -(-size // WIDTH)) for size in sizes)


def _status(change: FileChange) -> str:
    was = change.old is not None or bool(change.old_mode)
    stays = change.new is not None or bool(change.new_mode)
    if not (was and stays):
        return "A" if stays else "D"
    return "M" if _type(change.old_mode) == _type(change.new_mode) else "T"


def _type(mode: str) -> str:
    return mode[:3] if mode else "100"
