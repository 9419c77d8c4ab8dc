"""The commits between two looks: who made them, when, and which files each touched."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ralph_mission.gateways.git import Git
from ralph_mission.observers.blame import Origin, moment

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
