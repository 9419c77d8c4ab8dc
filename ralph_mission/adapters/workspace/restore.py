"""Writing and removing in a clone without following a link that a session may have left there."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from ralph_mission.adapters.git import git
from ralph_mission.adapters.workspace.files import EXECUTABLE, LINK

LEADING_OUT = frozenset(("", ".", "..", ".git"))
"""Parts of a path that lead out of a folder, nowhere, or into its repository."""


def write_file(top: str, path: str, mode: str, content: bytes) -> None:
    """Make `path` below `top` a file (or link) of git's `mode`; whatever stands in its way goes. Raises OSError."""
    where = os.path.join(os.fsencode(top), git.raw(path))
    _clear_way(os.fsencode(top), git.raw(path))
    os.makedirs(os.path.dirname(where), exist_ok=True)
    if os.path.isdir(where) and not os.path.islink(where):
        remove_folder(where)
    spare = os.path.join(os.path.dirname(where), f".{os.getpid()}.ralph-restored".encode())
    with suppress(FileNotFoundError):
        os.unlink(spare)
    if mode == LINK:
        os.symlink(content, spare)
    else:
        permissions = 0o777 if mode == EXECUTABLE else 0o666  # the user's umask has its say
        with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, permissions), "wb") as out:
            out.write(content)
    os.replace(spare, where)


def remove_path(top: str, path: str) -> None:
    """Make `path` below `top` absent, and the folders that are empty then; what lies beyond a link stays."""
    folder, name = os.path.split(git.raw(path))
    if LEADING_OUT.intersection(path.split("/")) or not _reachable(os.fsencode(top), folder):
        return
    remove_any(os.path.join(os.fsencode(top), folder, name))
    with suppress(OSError):
        while folder:
            os.rmdir(os.path.join(os.fsencode(top), folder))
            folder = os.path.dirname(folder)


def remove_any(where: bytes) -> None:
    """Have nothing at `where`: a file, a link, a pipe, a folder with all in it. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(where).st_mode):
            remove_folder(where)
        else:
            os.unlink(where)


def remove_folder(folder: bytes) -> None:
    """A folder and all in it, though a session may have locked some of it. Follows no link. Raises OSError."""
    with suppress(OSError):
        os.chmod(folder, 0o700)
    for root, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(root, name)):
                os.chmod(os.path.join(root, name), 0o700)
    shutil.rmtree(folder)


def _clear_way(top: bytes, path: bytes) -> None:
    parts = path.split(b"/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = os.path.join(top, *parts[:depth])
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
            os.unlink(folder)


def _reachable(top: bytes, folder: bytes) -> bool:
    """Whether `folder` is one all the way down: what lies beyond a link is not the clone's."""
    parts = [part for part in folder.split(b"/") if part]
    ways = (os.path.join(top, *parts[:depth]) for depth in range(1, len(parts) + 1))
    return all(os.path.isdir(way) and not os.path.islink(way) for way in ways)
