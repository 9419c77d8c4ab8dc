"""Changes, measured on blobs and never on what a diff claims; and their compact form.

A `Patch` holds the full old and new content of every changed path, so nothing that only a diff tool believes
(attributes, renames, binary heuristics) can hide a line. A `FileDelta` is the same as line edits against a known base,
which can be stored: `edits(old, new)` and `apply(old, edits)` are inverse for UTF-8 text; anything else has
no compact form and never goes into an automatic pull.

Lines are compared by Myers' O(ND) with a bounded cost, so a hostile file cannot make it quadratic. Where the budget
runs out the whole middle counts as replaced: more than really changed, never less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ralph_mission.values import dataclass

REGULAR = "100644"
EXECUTABLE = "100755"
SYMLINK = "120000"
GITLINK = "160000"

WIDTH = 500
"""Bytes of a line that counts as one: a paragraph of some eighty words.

Every further 500 bytes count as another line, so an 800 kB line counts as 1,600, and prose with one paragraph per line
is not penalised.
"""


Line = TypeVar("Line", str, bytes)
Span = tuple[int, int, int, int]
"""`old[a:b]` became `new[c:d]`, 0-based and half-open."""

DEEPEST = 500
"""The most edits looked for: ten times the largest automatic change; beyond that the exact number does not matter."""
BUDGET = 4_000_000
"""Steps of the inner loop, about a second."""
LARGEST_SHOWN = 400_000
"""Bytes of a file, before and after, whose lines are shown to a person."""


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


def unified_diff(patch: Patch) -> str:
    """The patch for people to read: every changed line with three around it; a binary or large file by its size."""
    return "\n".join(line for change in patch.changes for line in _diff_lines(change))


def _diff_lines(change: FileChange) -> Iterator[str]:
    from difflib import unified_diff as unified_lines

    old, new = change.old or b"", change.new or b""
    if b"\0" in old + new or len(old + new) > LARGEST_SHOWN:
        yield f"{change.path}: {len(old)} bytes become {len(new)}"
        return
    before, after = (side.decode("utf-8", "replace").splitlines() for side in (old, new))
    names = (
        f"a/{change.path}" if change.old_mode else "/dev/null",
        f"b/{change.path}" if change.new_mode else "/dev/null",
    )
    yield from unified_lines(before, after, *names, lineterm="")


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
    """Measure `patch`. A rename is a deletion and an addition; an empty new file counts 1."""
    return Measure(tuple(_measure(change) for change in patch.changes))


def split_lines(content: bytes) -> list[str]:
    """The lines of a blob, ends kept, at every separator that any editor or parser honours.

    `str.splitlines` knows them all: \\n \\r \\r\\n \\v \\f \\x1c-\\x1e U+0085 U+2028 U+2029.
    """
    return content.decode("utf-8", "surrogateescape").splitlines(keepends=True)


def patch_id(path: str, deleted: Iterable[bytes], added: Iterable[bytes]) -> str:
    """Twelve hex digits shared by changes of a file that delete and add the same lines, wherever they are.

    As `git patch-id`: white space and line numbers do not count.
    """
    sides = (b"".join(b"".join(lines).split()) for lines in (deleted, added))
    raw = b"\0".join((path.encode("utf-8", "surrogateescape"), *sides))
    return hashlib.sha256(raw).hexdigest()[:12]


def patch_ids(patch: Patch) -> frozenset[str]:
    """The id of each file's change."""
    return frozenset(
        patch_id(
            change.path, *([line.encode("utf-8", "surrogateescape") for line in side] for side in touched_lines(change))
        )
        for change in patch.changes
    )


def touched_lines(change: FileChange) -> tuple[list[str], list[str]]:
    """The deleted and the added lines of one change, in order."""
    old, new = split_lines(change.old or b""), split_lines(change.new or b"")
    if _type(change.old_mode) != _type(change.new_mode):
        return old, new  # a file that becomes a link shares no lines with it
    spans = changed_spans(old, new)
    return [line for a, b, _, _ in spans for line in old[a:b]], [line for _, _, c, d in spans for line in new[c:d]]


def is_binary(content: bytes | None) -> bool:
    """Whether this cannot be reviewed as text."""
    if not content:
        return False
    try:
        return "\0" in content.decode()
    except UnicodeDecodeError:
        return True


def _measure(change: FileChange) -> FileMeasure:
    deleted, added = touched_lines(change)
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


# --- the compact form ------------------------------------------------------------------


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
    """The line edits that turn `old` into `new`. Raises UnicodeDecodeError if not UTF-8."""
    before, after = _lines(old), _lines(new)
    return tuple(Edit(a, b - a, tuple(after[c:d])) for a, b, c, d in changed_spans(before, after))


def apply(old: bytes, changes: tuple[Edit, ...]) -> bytes:
    """Apply the edits to `old`. Raises ValueError if they do not fit."""
    lines = _lines(old)
    for edit in reversed(changes):
        if edit.start + edit.delete > len(lines):
            raise ValueError(f"edit at line {edit.start + 1} reaches past the end of the file")
        lines[edit.start : edit.start + edit.delete] = edit.insert
    return "".join(lines).encode()


def deltas(patch: Patch) -> tuple[FileDelta, ...]:
    """The compact form of a patch. Raises UnicodeDecodeError if a side is not UTF-8."""
    return tuple(_delta(change) for change in patch.changes)


def sketch(files: Iterable[FileDelta], base: str) -> Patch:
    """A patch with the paths, modes, sizes and new text of `files`, to judge them without the old text.

    Every deleted line is represented by an empty one.
    """
    return Patch(base, tuple(_sketch_file(file) for file in files))


def _sketch_file(file: FileDelta) -> FileChange:
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


# --- which lines differ -----------------------------------------------------------------


def changed_spans(old: Sequence[Line], new: Sequence[Line]) -> tuple[Span, ...]:
    """The spans that differ, in order, disjoint; minimal within the budget."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    return tuple((a + head, b + head, c + head, d + head) for a, b, c, d in _middle(before, after))


def line_hunks(old: Sequence[Line], new: Sequence[Line]) -> tuple[Span, ...]:
    """The spans that differ; replacements of equal length line by line."""
    return tuple(
        span
        for a, b, c, d in changed_spans(old, new)
        for span in ([(a + i, a + i + 1, c + i, c + i + 1) for i in range(b - a)] if b - a == d - c else [(a, b, c, d)])
    )


def _common(old: Sequence[Line], new: Sequence[Line]) -> int:
    shorter = min(len(old), len(new))
    return next((index for index in range(shorter) if old[index] != new[index]), shorter)


def _middle(old: Sequence[Line], new: Sequence[Line]) -> list[Span]:
    if not old and not new:
        return []
    numbers: dict[Line, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    trace = _frontiers(a, b, min(DEEPEST, BUDGET // (len(a) + len(b))))
    return [(0, len(a), 0, len(b))] if trace is None else _spans(trace, len(a), len(b))


def _frontiers(a: list[int], b: list[int], deepest: int) -> list[dict[int, int]] | None:
    """How far each diagonal got before each edit; None if more than `deepest` edits are needed."""
    frontier, trace = {1: 0}, []
    for depth in range(deepest + 1):
        trace.append(dict(frontier))
        for k in range(-depth, depth + 1, 2):
            x = frontier[k + 1] if _goes_down(frontier, k, depth) else frontier[k - 1] + 1
            while x < len(a) and 0 <= x - k < len(b) and a[x] == b[x - k]:
                x += 1
            frontier[k] = x
            if x >= len(a) and x - k >= len(b):
                return trace
    return None


def _goes_down(frontier: dict[int, int], k: int, depth: int) -> bool:
    return k == -depth or (k != depth and frontier[k - 1] < frontier[k + 1])


def _spans(trace: list[dict[int, int]], x: int, y: int) -> list[Span]:
    """Walk back from the end: the edits, joined where they touch."""
    spans: list[Span] = []
    for depth in range(len(trace) - 1, 0, -1):
        down = _goes_down(trace[depth], x - y, depth)
        k = x - y + (1 if down else -1)
        x = trace[depth][k]
        y = x - k
        edit = (x, x, y, y + 1) if down else (x, x + 1, y, y)
        if spans and spans[-1][0] == edit[1] and spans[-1][2] == edit[3]:
            edit = (edit[0], spans[-1][1], edit[2], spans.pop()[3])
        spans.append(edit)
    return spans[::-1]
