"""What git waits for ever at in a work tree: it opens whatever bears a name that means something to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

IGNORES = ".gitignore"
READ_BY_GIT = (IGNORES, ".gitattributes", ".gitmodules")
POINTER = 1 << 16  # bytes of the file that a nested repository may be named by


def status_of(where: str) -> os.stat_result | None:
    """`lstat`, None when nothing is there."""
    try:
        return os.lstat(where)
    except (FileNotFoundError, NotADirectoryError):
        return None


def special(mode: int) -> bool:
    """Whether it is a pipe, a socket or a device."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def blocking(top: str) -> Iterator[str]:
    """What git waits for ever at, in the whole work tree: pipes of git's names, and heads of nested repositories."""
    for root, folders, names in os.walk(top):
        inside = root[len(top) + 1 :]
        ours = {".git", *([".ralph"] if root == top else [])}
        found = [name for name in READ_BY_GIT if name in names and _special(f"{root}/{name}")]
        found += [f".git{inner}" for inner in ("", "/HEAD") if inside and _blocks(f"{root}/.git", inner)]
        yield from (f"{inside}/{name}" if inside else name for name in found)
        folders[:] = [name for name in folders if name not in ours]


def _blocks(repository: str, inner: str) -> bool:
    if inner or not os.path.isfile(repository):
        return _special(repository + inner)
    with open(repository, "rb") as file:
        target = os.fsdecode(file.read(POINTER).removeprefix(b"gitdir:").strip())
    return "\0" not in target and _special(os.path.join(os.path.dirname(repository), target, "HEAD"))


def _special(where: str) -> bool:
    status = status_of(where)
    return status is not None and special(status.st_mode)
