"""Files that are written whole or not at all, locks that the kernel drops with their holder, and folders of ours where
sessions write, too.

A kill, a full disk or a crash of the machine leaves the old file or the new one.

A lock is a file or a folder that is held open. Agents delete files named `*.lock` below `.git`, and with the file a
lock lets a second one in: there no lock of ours has such a name.

A link in the place of a folder or file of ours would have us write, or read, somewhere else. At `bwrap` we reach
further than the session that made the link, so it is never followed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any


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


def remove_drafts(path: Path) -> None:
    """Take away what killed writes of this file left beside it. Nobody may be writing it now. Raises OSError."""
    start = f".{path.name}."
    if path.parent.is_dir():
        for name in os.listdir(path.parent):
            if name.startswith(start) and name.removeprefix(start).isdecimal():
                (path.parent / name).unlink(missing_ok=True)


def append(descriptor: int, content: bytes, path: Path) -> None:
    """Add `content` to the open file, which is called `path`: all of it or nothing. Raises OSError."""
    size = os.fstat(descriptor).st_size
    if os.write(descriptor, content) < len(content):  # one write: an agent may append at the same moment
        os.ftruncate(descriptor, size)  # the disk is full, or a limit is reached
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def add_line(path: Path, line: str) -> None:
    """Have a file hold a line, which is added at its end where it is missing; makes the file. Raises OSError."""
    content = path.read_bytes() if path.exists() else b""
    if line.encode() not in content.splitlines():
        gap = b"\n" if content and not content.endswith(b"\n") else b""
        write(path, content + gap + line.encode() + b"\n")


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
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
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


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a file that is no link, never waited for. A second name, as a copy by links makes one, is no
    harm: nobody reads there what is not ours. Raises OSError: ELOOP for a link, EINVAL for what is no file."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
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


RALPH = ".ralph"
RALPH_IN_GIT = "ralph"
"""What it is called in a git directory: that of a bare repository, or one that stands apart from its work tree."""
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""To hold a folder; where it can be, also one that may be entered and not read."""


def links(top: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Which of the folders `names` below `top`, or of those that lead there, are links: the topmost first."""
    ways = {str(way) for name in names for way in (PurePath(name), *PurePath(name).parents) if way.name}
    return tuple(way for way in sorted(ways) if (top / way).is_symlink())


def unlink(top: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Take those links away; gives what they were called. What they name stays as it is."""
    gone = links(top, names)
    for name in gone:
        (top / name).unlink(missing_ok=True)
    return gone


def own(folder: Path) -> Path:
    """`folder`, once no link stands in its place or on the way to it from `.ralph` on, or `ralph` in a git directory.

    Whoever writes or removes in a folder of ours asks first: what a session left there outlives a loop that was killed.
    Raises OSError: ELOOP, with the link's name.
    """
    top = top_of(folder)
    if found := links(top, (str(folder.relative_to(top)),)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(top / found[0]))
    return folder


def stays(path: Path, top: Path) -> bool:
    """Whether `path` is in the work tree `top` wherever its links lead, and not where git keeps its own."""
    base, real = Path(os.path.realpath(top)), Path(os.path.realpath(path))
    return real.is_relative_to(base) and ".git" not in (name.casefold() for name in real.relative_to(base).parts)


def keep_within(path: Path, top: Path) -> tuple[str, ...]:
    """Take away the links on the way to `path` that lead out of the work tree `top`, or to no folder, for whoever is
    about to write there; gives what they were called.

    Those that stay in it are people's, and so is whatever stands elsewhere. Raises OSError.
    """
    ways = path.relative_to(top).parents if path.is_relative_to(top) else ()
    return tuple(str(way) for way in reversed(ways) if way.name and _is_taken(top / way, top))


def _is_taken(way: Path, top: Path) -> bool:
    wrong = way.is_symlink() and not (stays(way, top) and _had(way))
    if wrong:
        way.unlink()  # what was behind it is not there any more
    return wrong


def _had(way: Path) -> bool:
    """Whether a link leads to a folder, which is made where nothing stands yet."""
    with suppress(OSError):
        Path(os.path.realpath(way)).mkdir(parents=True, exist_ok=True)
    return way.is_dir()


# --- reading -------------------------------------------------------------------------


def open_plain(path: Path, top: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the plain file `path` below `top`, by no link at any component, never waited for.

    Each folder is held while the next one is opened in it, so that nobody exchanges one in between. Raises OSError:
    ELOOP or ENOTDIR for a link, EISDIR for what is no file, EPERM for a file that may be somebody else's too.
    """
    names = PurePath(os.path.normpath(path.relative_to(top))).parts  # no link is followed, so `..` is where it says
    if not names or ".." in names:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with _hold_folders(top, names[:-1]) as folder:
        wanted = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(names[-1], wanted, 0o666, dir_fd=folder)
        if wrong := _why_not(os.fstat(descriptor), os.fstat(folder)):
            os.close(descriptor)
            raise OSError(wrong, os.strerror(wrong), str(path))
        return descriptor


def within(path: Path, top: Path, flags: int = os.O_RDONLY) -> int:
    """The same in a work tree `top`, where people have links: by those that stay in it, but for `.ralph` and `.git`.

    ELOOP for one that leads out, or to where git keeps its own.
    """
    if path.is_relative_to(top) and RALPH in path.relative_to(top).parts:
        return open_plain(path, top, flags)
    if not stays(path, top):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    base, real = Path(os.path.realpath(top)), Path(os.path.realpath(path))
    return open_plain(real, base, flags)  # a link that appears meanwhile is not followed any more


def top_of(path: Path) -> Path:
    """From where on no link on the way to `path` is followed: above the outermost `.ralph`, or the `ralph` of a git
    directory, else its own folder."""
    names = path.parts
    if RALPH in names:
        return Path(*names[: names.index(RALPH)])
    return next((way.parent for way in (*reversed(path.parents), path) if _in_git(way)), path.parent)


def _in_git(way: Path) -> bool:
    return way.name == RALPH_IN_GIT and (way.parent / "HEAD").is_file()


def content(path: Path, cap: int) -> bytes | None:
    """At most `cap` bytes of a file that a session may have written; None for anything but a plain file of ours."""
    with suppress(OSError), open(open_plain(path, top_of(path)), "rb") as file:
        return file.read(cap)
    return None


def read_json(path: Path, cap: int) -> Any:
    """What such a file says as JSON; None for what is none, or is nested so deeply that reading it would end us."""
    with suppress(ValueError, RecursionError):
        return json.loads(content(path, cap) or b"null")
    return None


def plain(path: Path) -> bool:
    """Whether nothing but a plain file of ours stands there, or nothing at all."""
    try:
        os.close(open_plain(path, top_of(path)))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def _hold_folders(top: Path, names: Iterable[str]) -> Iterator[int]:
    folder = os.open(top, FOLDER)
    try:
        for name in names:
            inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _why_not(found: os.stat_result, folder: os.stat_result) -> int:
    """Why a file may not be read, 0 when it may.

    A second name is how somebody else's file gets here that its maker could not read. Owners alone tell nothing: what
    a session made belongs to its user, or to whom the folder belongs. What everybody may read is no secret.
    """
    if not stat.S_ISREG(found.st_mode):
        return errno.EISDIR
    known = found.st_uid in (os.geteuid(), folder.st_uid) or found.st_mode & stat.S_IROTH
    return errno.EPERM if found.st_nlink > 1 or not known else 0
