"""What has to outlive a crash of the machine, and not of the process alone."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path


def write(path: Path, content: bytes, mode: int = 0o666, *, lasting: bool = True) -> None:
    """Write a file so that after a crash it is either the old or the new one; makes the folder. Raises OSError.

    `mode` is that of a new file; one that stands keeps its own, and its owner. A link gives way, and what it leads to
    stays as it is. What is not `lasting` may be lost when the machine goes down: a cache waits for no disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{threading.get_native_id()}")  # as no other process or thread is called
    try:
        scratch.unlink(missing_ok=True)  # of one that was killed and had our number, or somebody's link
        with open(scratch, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            _keep(file.fileno(), path)
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


def sync(folder: Path) -> None:
    """Have the disk know the names in a folder: renaming and making files is safe only then. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
