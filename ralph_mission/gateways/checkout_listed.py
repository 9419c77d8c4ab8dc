"""What `git ls-files` says of a work tree: the index, what is beside it, and what git does not enter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ralph_mission.gateways.checkout_flags import PLAIN, Flags, flagged
from ralph_mission.gateways.git import GitError

GITLINK = "160000"
OURS = ".ralph/"
"""The engine's own folder, where a repository does not leave it out: the desk answers for it."""
NO_PATH = re.compile(r"(?:^|/)(?:\.{0,2}|\.git)(?:/|$)", re.IGNORECASE)
"""What git lets into no index: it leads out of the checkout or into the repository. A forged index holds it."""
NO_ROW = re.compile(r"[\t/](?:\.{0,2}|\.git)[/\0]", re.IGNORECASE)
"""What such a path leaves in the list as a whole, and some a harmless one too."""
Index = Mapping[str, tuple[str, str]]
"""Path -> (mode, object id)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What `ls-files` says: paths of the index and untracked ones, folders above them, folders it does not enter."""

    index: Index
    paths: tuple[str, ...]
    folders: tuple[str, ...]
    nested: tuple[str, ...]
    flags: Flags

    @staticmethod
    def of(index: Index, others: Iterable[str], flags: Flags) -> Listed:
        others = [path for path in others if not path.startswith(OURS)]
        paths = tuple(dict.fromkeys((*index, *(path for path in others if not path.endswith("/")))))
        links = (path for path, (mode, _) in index.items() if mode == GITLINK)
        nested = (*(path.rstrip("/") for path in others if path.endswith("/")), *links)
        return Listed(index, paths, tuple(sorted(_folders(paths))), nested, flags)


def listing(rows: Sequence[str]) -> Listed:
    """Of rows of `ls-files -v -s`, and others after `? `. Raises GitError where the index leads out of the tree."""
    doubtful = NO_ROW.search("\0".join(rows)) is not None
    index: dict[str, tuple[str, str]] = {}
    others, flags = [], {}
    for row in rows:
        if row.startswith("? "):
            others.append(row[2:])
        elif row:
            path, entry = _entry(row)
            if doubtful and NO_PATH.search(path):
                raise GitError(("ls-files",), 0, f"the index names {path!r}")
            index[path] = entry
            if flagged(row[0]):
                flags[path] = row[0]
    return Listed.of(index, others, flags)


def updated(last: Listed, before: Sequence[str], rows: Sequence[str]) -> Listed | None:
    """The list with what some of its paths are now, None when it differs in more: a session commits a few files."""
    if len(before) != len(rows):
        return None
    pairs = [(old, new) for old, new in zip(before, rows, strict=True) if old != new]
    if not all(old[0] == new[0] == PLAIN and _entry(old)[0] == _entry(new)[0] for old, new in pairs):
        return None  # neither flagged nor one of several of its path
    if any(row.startswith(f"{PLAIN} {GITLINK} ") for pair in pairs for row in pair):
        return None  # what is a repository of its own is listed apart
    return replace(last, index={**last.index, **dict(_entry(new) for _, new in pairs)})


def _entry(row: str) -> tuple[str, tuple[str, str]]:
    """Path, and mode and object id, of a row of `ls-files -v -s`."""
    meta, path = row[2:].split("\t", 1)
    return path, (meta[:6], meta[7:-2])


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for folder in {path.rpartition("/")[0] for path in paths}:
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


NOTHING = Listed.of({}, [], {})
"""The list of an empty tree."""
