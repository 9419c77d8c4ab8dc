"""What has to outlive a crash of the machine, and not of the process alone."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def write(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file so that after a crash it is either the old or the new one; makes the folder. Raises OSError.

    `mode` is that of a new file; one that stands keeps its own. A link gives way, and what it leads to stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)  # of one that was killed and had our number, or somebody's link
        with open(scratch, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            _keep_mode(file.fileno(), path)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
        raise
    sync(path.parent)


def _keep_mode(descriptor: int, path: Path) -> None:
    with suppress(FileNotFoundError):
        found = path.lstat().st_mode
        if stat.S_ISREG(found):
            os.fchmod(descriptor, stat.S_IMODE(found))


def sync(folder: Path) -> None:
    """Have the disk know the names in a folder: renaming and making files is safe only then. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
