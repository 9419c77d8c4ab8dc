"""Advisory locks that the kernel drops with their holder, however it dies.

A lock is a file or a folder that is held open. Agents delete files named `*.lock` below `.git`, and with the file a
lock lets a second one in: there no lock of ours has such a name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL = 0.002  # seconds between two looks at a lock that somebody holds


def try_lock(descriptor: int, wait: float | None = 0.0) -> bool:
    """Whether an open file or folder is ours now, tried for `wait` seconds (None: until it is). Raises OSError."""
    if wait is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
        time.sleep(POLL)


@contextmanager
def hold_file(path: Path, wait: float | None = 0.0) -> Iterator[bool]:
    """Hold a lock file, which is made with its folder; False when another process or thread had it for all of `wait`
    (seconds; None: no end). Not reentrant. Raises OSError: ELOOP for a link, EINVAL for what is no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = None if wait is None else time.monotonic() + wait
    while True:
        descriptor = _open(path)
        try:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            held = try_lock(descriptor, left)
            if not held or _stands(path, descriptor):
                yield held
                return
        finally:
            os.close(descriptor)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Hold a folder, waiting for it without end: who finds it free may clean up. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try_lock(descriptor, None)
        yield
    finally:
        os.close(descriptor)


def is_held(place: Path) -> bool:
    """Whether somebody holds a file or a folder right now. Raises OSError."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    return descriptor


def _stands(path: Path, descriptor: int) -> bool:
    """Whether the lock is the one that others will look for: it may have been deleted in between."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
