"""Who wrote a line and when, from `git blame`, for a bounded number of files and seconds.

The commits between two looks: who made them, when, and which files each touched.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.values import dataclass

FILES = 30  # blamed in one look
LINES = 50  # of one file
SECONDS = 5.0  # for all of them
AT_A_TIME = 4
LATEST = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())
DIGITS = 18  # of a time that are read: the calendar ends long before

Place = tuple[str, int]
"""A path and a 1-based line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a line comes from."""

    author: str
    at: datetime


def origins(
    git: Git, commit: str, places: Mapping[str, Sequence[int]], seconds: float = SECONDS
) -> dict[Place, Origin]:
    """The origins of lines, by path: of the first `FILES` paths, as far as `seconds` reach.

    Lines whose history a shallow repository does not have are left out.
    """
    deadline = time.monotonic() + seconds
    shallow = (git.common_dir / "shallow").exists()

    def one(path: str) -> dict[Place, Origin]:
        left = deadline - time.monotonic()
        found = _blame(git, commit, path, places[path][:LINES], left) if left > 0 else b""
        return {(path, line): origin for line, origin in _read(found, shallow)}

    if not places:
        return {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return {place: origin for found in pool.map(one, list(places)[:FILES]) for place, origin in found.items()}


def _blame(git: Git, commit: str, path: str, lines: Sequence[int], seconds: float) -> bytes:
    ranges = [part for line in lines for part in ("-L", f"{line},{line}")]
    flags = ("--line-porcelain", "--no-textconv", "--ignore-revs-file=")
    try:
        return git.run("blame", *flags, *ranges, commit, "--", path, timeout=seconds)
    except GitError:  # too slow, or a history that cannot be read: a line without an author then
        return b""


def _read(raw: bytes, shallow: bool) -> Iterator[tuple[int, Origin]]:
    facts: dict[bytes, bytes] = {}
    number = 0
    for line in raw.split(b"\n"):
        name, _, value = line.partition(b" ")
        if line.startswith(b"\t"):
            if not (shallow and b"boundary" in facts):
                yield number, _origin(facts)
            facts, number = {}, 0
        elif not number and value:
            number = int(value.split()[1])
        else:
            facts[name] = value


def _origin(facts: Mapping[bytes, bytes]) -> Origin:
    when = facts.get(b"author-time", b"").decode("ascii", "replace")
    return Origin(facts.get(b"author", b"").decode("utf-8", "replace"), moment(when))


def moment(told: str) -> datetime:
    """A time as git tells it. Whoever made a commit chose it, be it in a year that no calendar has."""
    return datetime.fromtimestamp(min(int(told[:DIGITS] or 0), LATEST), UTC)


MOST = 1_000  # commits read at most


@dataclass(frozen=True, slots=True)
class HistoryCommit:
    """One commit; a merge has no paths of its own."""

    origin: Origin
    paths: tuple[str, ...]


def history(git: Git, *revisions: str) -> tuple[HistoryCommit, ...]:
    """The newest `MOST` commits among `revisions`, as `git log` takes them."""
    fence = "\x01" + os.urandom(8).hex()  # a file may have any name, but not one that nobody knows yet
    shape = ("-z", "--name-only", "--no-renames", "--no-show-signature", f"--format={fence}%an%x00%at")
    raw = git.run("log", *shape, f"--max-count={MOST}", *revisions, "--")
    records = raw.decode("utf-8", "surrogateescape").split(fence)[1:]
    return tuple(_commit(record) for record in records)


def sole_origins(commits: Sequence[HistoryCommit]) -> dict[str, Origin]:
    """By path, for files that one commit alone touched: whatever is new in them comes from it."""
    touched = Counter(path for commit in commits for path in commit.paths)
    complete = len(commits) < MOST
    return {path: one.origin for one in commits for path in one.paths if complete and touched[path] == 1}


def _commit(record: str) -> HistoryCommit:
    author, at, rest = record.split("\0", 2)  # AUTHOR NUL TIME NUL [LF PATH NUL PATH NUL …]
    name = author.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    paths = rest.removeprefix("\n").split("\0")
    return HistoryCommit(Origin(name, moment(at)), tuple(path for path in paths if path))
