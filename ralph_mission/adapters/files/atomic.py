"""What is written whole or not at all: a kill, a full disk or a crash of the machine leaves the old or the new."""

from __future__ import annotations

import errno
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path


def write(path: Path, content: bytes, mode: int = 0o666, *, lasting: bool = True, keep: bool = True) -> None:
    """Write a file so that after a crash it is either the old or the new one; makes the folder. Raises OSError.

    `mode` is that of a new file; one that stands keeps its own, and its owner, unless `keep` is False. A link gives
    way, and what it leads to stays as it is. What is not `lasting` may be lost when the machine goes down: a cache
    waits for no disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{threading.get_native_id()}")  # as no other process or thread is called
    try:
        scratch.unlink(missing_ok=True)  # of one that was killed and had our number, or somebody's link
        with open(scratch, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if keep:
                _keep(file.fileno(), path)
            else:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:  # an interruption leaves no draft, either
        with suppress(OSError):
            scratch.unlink()
        raise
    if lasting:
        sync(path.parent)


def append(descriptor: int, content: bytes, path: Path) -> None:
    """Add `content` to the open file, which is called `path`: all of it or nothing. Raises OSError."""
    size = os.fstat(descriptor).st_size
    if os.write(descriptor, content) < len(content):  # one write: an agent may append at the same moment
        os.ftruncate(descriptor, size)  # the disk is full, or a limit is reached
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def sync(folder: Path) -> None:
    """Have the disk know the names in a folder: renaming and making files is safe only then. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep(descriptor: int, path: Path) -> None:
    with suppress(FileNotFoundError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            _give(descriptor, found)
            os.fchmod(descriptor, stat.S_IMODE(found.st_mode))


def _give(descriptor: int, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        with suppress(OSError):  # only root can; whoever else may replace it is its owner from now on
            os.fchown(descriptor, found.st_uid, found.st_gid)
