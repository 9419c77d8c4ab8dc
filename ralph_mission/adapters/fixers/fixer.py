"""A fixer: a name, a version, and a function from a commit's tree to fixes.

A fixer reads blobs and returns values; it changes nothing in the repository.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field
from importlib import metadata
from pathlib import Path
from typing import Any

from ralph_mission.adapters.git.git import Git, TreeEntry
from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.mission.model.mission import Quote, SignalPart
from ralph_mission.safety.patch import EXECUTABLE, REGULAR, FileChange, line_hunks
from ralph_mission.values import compile_regex, dataclass

LARGEST = 1_000_000
"""Bytes of the largest file a fixer reads."""
CODE = compile_regex(r"^[A-Z]{1,4}\d{2,4} ")
QUOTED = 10  # corrections of one file that are shown
MOST_PARTS = 50  # corrections of a file that are tracked; larger changes are never made unasked


def installed_version(name: str) -> str:
    """The version of an installed package, without parsing the rest of its metadata where it is a wheel's."""
    text = metadata.distribution(name).read_text("METADATA") or ""
    return text.partition("\nVersion: ")[2].partition("\n")[0].strip() or metadata.version(name)


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction: its place (1-based), a text for people, and its normalised line."""

    line: int
    what: str
    context: str

    @property
    def essence(self) -> str:
        """Its identity, independent of its place."""
        return f"{self.what} @ {self.context}"


@dataclass(frozen=True, slots=True)
class Fix:
    """A file as it is and as it should be."""

    path: str
    mode: str
    old: bytes
    new: bytes
    corrections: tuple[Correction, ...]

    @staticmethod
    def load(stored: Mapping[str, Any]) -> Fix:
        """The inverse of `dump`. Raises KeyError, TypeError or AttributeError."""
        corrections = tuple(Correction(**entry) for entry in stored["corrections"])
        return Fix(stored["path"], stored["mode"], stored["old"].encode(), stored["new"].encode(), corrections)

    def dump(self) -> dict[str, object]:
        """As JSON."""
        return {**asdict(self), "old": self.old.decode(), "new": self.new.decode()}

    def change(self) -> FileChange:
        """It as a part of a patch."""
        return FileChange(self.path, self.mode, self.mode, self.old, self.new)


class Unfinished(Exception):
    """Raised by a fixer after its last fix when files remain unchecked; the next call continues with them."""


@dataclass(frozen=True, slots=True)
class CommitTree:
    """The regular files of a commit, a working folder, and a deadline (monotonic) for looking at more files.

    `memo`: what the fixer remembers from look to look, as JSON.
    """

    git: Git
    commit: str
    entries: tuple[TreeEntry, ...]
    scratch: Path
    deadline: float
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def at(git: Git, commit: str, scratch: Path, seconds: float, memo: dict[str, Any] | None = None) -> CommitTree:
        """The tree of `commit`; files larger than LARGEST are left out."""
        files = [entry for entry in git.listing(commit) if entry.mode in (REGULAR, EXECUTABLE)]
        sizes = git.sizes(entry.oid for entry in files)
        entries = tuple(e for e in files if sizes.get(e.oid, LARGEST + 1) <= LARGEST)
        return CommitTree(git, commit, entries, scratch, time.monotonic() + seconds, {} if memo is None else memo)

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline has passed. A fixer that stops for it raises Unfinished."""
        return time.monotonic() > self.deadline

    def texts(self, matches: Callable[[str], bool]) -> Iterator[tuple[TreeEntry, str]]:
        """The UTF-8 texts among the files whose path is wanted, in order; binary files are left out."""
        chosen = [entry for entry in self.entries if matches(entry.path)]
        contents = self.git.each_blob([entry.oid for entry in chosen]) if chosen else ()
        for entry, content in zip(chosen, contents, strict=False):
            if content is not None and (text := _decode(content)) is not None:
                yield entry, text

    def read(self, path: str) -> str:
        """A file's text, or ""."""
        return next((text for _, text in self.texts(lambda other: other == path)), "")


def list_corrections(fix: Fix, most: int) -> list[str]:
    """The first of its corrections for people, a line each, and how many more there are."""
    lines = [f"line {one.line}: {one.what}" for one in fix.corrections[:most]]
    return [*lines, f"and {len(fix.corrections) - most} more"] if len(fix.corrections) > most else lines


def quote_corrections(fix: Fix, commit: str) -> tuple[Quote, ...]:
    """The corrections for people, without linters' codes."""
    texts = ((CODE.sub("", one.what), one.line) for one in fix.corrections[:QUOTED])
    return tuple(Quote(what, fix.path, line, commit) for what, line in texts)


def parts_of(fix: Fix) -> tuple[SignalPart, ...]:
    """The corrections one by one, each identified by what its line becomes."""
    if len(fix.corrections) > MOST_PARTS:
        return ()
    old, new = fix.old.splitlines(), fix.new.splitlines()
    becomes = {
        line + 1: b" ".join(new[c:d]).decode("utf-8", "replace")
        for a, b, c, d in line_hunks(old, new)
        for line in range(a, max(b, a + 1))
    }
    return tuple(
        SignalPart(one.essence, f"{one.what} @ {normalise_line(becomes.get(one.line, '')) or one.context}", one.line)
        for one in fix.corrections
    )


@dataclass(frozen=True, slots=True)
class Fixer:
    """A deterministic fixer. `kind`: of its findings. `fixes` may raise UserError, and Unfinished at its end."""

    name: str
    kind: str
    version: Callable[[], str]
    fixes: Callable[[CommitTree], Iterable[Fix]]


def _decode(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
