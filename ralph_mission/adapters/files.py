"""Atomic writes, locks that the kernel releases with their holder, safe access to folders where sessions also write,
and a cache on disk.

A kill, a full disk or a crash of the machine leaves the old file or the new one.

A lock is a file or folder held open. Agents delete files named `*.lock` below `.git`, which would let a second holder
in, so our locks there have other names.

A link in place of one of our folders or files would make us read or write elsewhere. At `bwrap` we can reach more than
the session that made the link, so links are never followed.

A cache is a folder with one JSON file per key; the newest ones stay. Unreadable files count as absent, and an
unwritable folder is not an error.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

from ralph_mission.values import dataclass

CAP = 64_000_000  # bytes of a cached value


def write(path: Path, content: bytes, mode: int = 0o666, *, lasting: bool = True, keep: bool = True) -> None:
    """Write a file atomically, creating its folder. Raises OSError.

    `mode`: of a new file; an existing one keeps mode and owner, unless `keep` is False. A link is replaced, and its
    target stays as it is. If not `lasting`, the write may be lost when the machine crashes, which is fine for a cache.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{threading.get_native_id()}")  # unique to this process and thread
    try:
        scratch.unlink(missing_ok=True)  # of a killed process with our id, or somebody's link
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
    except BaseException:  # an interrupt leaves no temporary file, either
        with suppress(OSError):
            scratch.unlink()
        raise
    if lasting:
        sync(path.parent)


def replace_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Make a file in a folder of ours say `text`, atomically, as others read it at the same time; a link is replaced.
    Raises OSError."""
    content = text.encode()
    with suppress(OSError):
        found = path.lstat()
        if (found.st_mode, found.st_nlink) == (stat.S_IFREG | mode, 1) and path.read_bytes() == content:
            return
    write(path, content, mode, lasting=False, keep=False)


def remove_drafts(path: Path) -> None:
    """Remove temporary files that killed writes left. Nobody may be writing the file now. Raises OSError."""
    start = f".{path.name}."
    if path.parent.is_dir():
        for name in os.listdir(path.parent):
            if name.startswith(start) and name.removeprefix(start).isdecimal():
                (path.parent / name).unlink(missing_ok=True)


def append(descriptor: int, content: bytes, path: Path) -> None:
    """Append `content` to the open file `path`: all or nothing. Raises OSError."""
    size = os.fstat(descriptor).st_size
    if os.write(descriptor, content) < len(content):  # one write, as an agent may append at the same time
        os.ftruncate(descriptor, size)  # the disk is full, or a limit is reached
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def add_line(path: Path, line: str) -> None:
    """Add a line to a file unless it is there; creates the file. Raises OSError."""
    content = path.read_bytes() if path.exists() else b""
    if line.encode() not in content.splitlines():
        gap = b"\n" if content and not content.endswith(b"\n") else b""
        write(path, content + gap + line.encode() + b"\n")


def sync(folder: Path) -> None:
    """Sync a folder, so that created and renamed files survive a crash. Raises OSError."""
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
        with suppress(OSError):  # only root can; anybody else becomes its owner
            os.fchown(descriptor, found.st_uid, found.st_gid)


POLL = 0.002  # seconds between attempts to lock


def try_lock(descriptor: int, wait: float | None = 0.0) -> bool:
    """Try to lock an open file or folder for `wait` seconds (None: for ever); whether it is ours. Raises OSError."""
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


def boot_id() -> str:
    """The running kernel's own id, by which a holder is known to be of an earlier boot; "" where there is none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


@contextmanager
def hold_file(path: Path, wait: float | None = 0.0) -> Iterator[bool]:
    """Hold a lock file, creating it and its folder; False if another process or thread held it for all of `wait`
    (seconds; None: for ever). Not reentrant. Raises OSError: ELOOP for a link, EINVAL for anything but a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = None if wait is None else time.monotonic() + wait
    while True:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            success = try_lock(descriptor, left)
            if not success or _stands(path, descriptor):
                yield success
                return
        finally:
            os.close(descriptor)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Hold a folder, waiting for it: whoever holds it may clean up. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try_lock(descriptor, None)
        yield
    finally:
        os.close(descriptor)


def is_held(place: Path) -> bool:
    """Whether somebody holds a file or a folder right now; two that ask do not see each other. Raises OSError: ELOOP
    for a link."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file that is not a link, without blocking. Hard links are fine: nothing foreign is read here.
    Raises OSError: ELOOP for a link, EINVAL for anything but a file."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    return descriptor


def _stands(path: Path, descriptor: int) -> bool:
    """Whether the lock file is still in place, as it may have been deleted in between."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


RALPH = ".ralph"
RALPH_IN_GIT = "ralph"
"""Our folder's name in a git directory (bare, or separate from its work tree)."""
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags to hold a folder, where possible also one without read permission."""


def links(top: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Which folders `names` below `top`, or on the way there, are links; topmost first."""
    ways = {str(way) for name in names for way in (PurePath(name), *PurePath(name).parents) if way.name}
    return tuple(way for way in sorted(ways) if (top / way).is_symlink())


def unlink(top: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Remove those links; returns their names. Their targets stay as they are."""
    gone = links(top, names)
    for name in gone:
        (top / name).unlink(missing_ok=True)
    return gone


def own(folder: Path) -> Path:
    """`folder`, if neither it nor its path from `.ralph` on (or `ralph` in a git directory) is a link.

    Called before writing or deleting in our folders, as a session's links outlive a killed loop. Raises OSError: ELOOP,
    with the link's name.
    """
    top = top_of(folder)
    if found := links(top, (str(folder.relative_to(top)),)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(top / found[0]))
    return folder


def stays(path: Path, top: Path) -> bool:
    """Whether `path`, links resolved, is in the work tree `top` and not in its git directory."""
    base, real = Path(os.path.realpath(top)), Path(os.path.realpath(path))
    return real.is_relative_to(base) and ".git" not in (name.casefold() for name in real.relative_to(base).parts)


def keep_within(path: Path, top: Path) -> tuple[str, ...]:
    """Before writing to `path`, remove links on the way that lead out of the work tree `top`, or to no folder; returns
    their names.

    Links within the work tree belong to people and stay. Raises OSError.
    """
    ways = path.relative_to(top).parents if path.is_relative_to(top) else ()
    return tuple(str(way) for way in reversed(ways) if way.name and _is_taken(top / way, top))


def _is_taken(way: Path, top: Path) -> bool:
    wrong = way.is_symlink() and not (stays(way, top) and _had(way))
    if wrong:
        way.unlink()  # its target is gone
    return wrong


def _had(way: Path) -> bool:
    """Whether a link leads to a folder, which is created if missing."""
    with suppress(OSError):
        Path(os.path.realpath(way)).mkdir(parents=True, exist_ok=True)
    return way.is_dir()


# --- reading -------------------------------------------------------------------------


def open_plain(path: Path, top: Path, flags: int = os.O_RDONLY) -> int:
    """Open the plain file `path` below `top`, without following any link and without blocking.

    Each folder is held while the next one is opened in it, so that none can be swapped in between. Raises OSError:
    ELOOP or ENOTDIR for a link, EISDIR for anything but a file, EPERM for a file that may also be somebody else's.
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
    """The same in a work tree `top`, following people's links within it, except below `.ralph` and `.git`.

    ELOOP for a link that leads out, or into the git directory.
    """
    if path.is_relative_to(top) and RALPH in path.relative_to(top).parts:
        return open_plain(path, top, flags)
    if not stays(path, top):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    base, real = Path(os.path.realpath(top)), Path(os.path.realpath(path))
    return open_plain(real, base, flags)  # a link that appears meanwhile is not followed


def top_of(path: Path) -> Path:
    """The folder below which no link on the way to `path` is followed: the one above the outermost `.ralph`, or the git
    directory of `ralph`, else its own folder."""
    names = path.parts
    if RALPH in names:
        return Path(*names[: names.index(RALPH)])
    return next((way.parent for way in (*reversed(path.parents), path) if _in_git(way)), path.parent)


def _in_git(way: Path) -> bool:
    return way.name == RALPH_IN_GIT and (way.parent / "HEAD").is_file()


def content(path: Path, cap: int) -> bytes | None:
    """At most `cap` bytes of a file that a session may have written; None unless it is a plain file of ours."""
    with suppress(OSError), open(open_plain(path, top_of(path)), "rb") as file:
        return file.read(cap)
    return None


def read_json(path: Path, cap: int) -> Any:
    """Such a file as JSON; None if it is invalid, or nested too deeply to parse."""
    with suppress(ValueError, RecursionError):
        return json.loads(content(path, cap) or b"null")
    return None


def plain(path: Path) -> bool:
    """Whether there is a plain file of ours, or nothing."""
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
    """The error code why a file may not be read, or 0.

    A hard link can expose somebody else's file that the session could not read. Owners prove nothing: a session's files
    belong to its user, or to the folder's owner. World-readable files are no secret.
    """
    if not stat.S_ISREG(found.st_mode):
        return errno.EISDIR
    known = found.st_uid in (os.geteuid(), folder.st_uid) or found.st_mode & stat.S_IROTH
    return errno.EPERM if found.st_nlink > 1 or not known else 0


@dataclass(frozen=True, slots=True)
class FileCache:
    """`folder` None caches nothing; at most `most` files stay."""

    folder: Path | None
    most: int = 20
    cap: int = CAP

    def get(self, name: str) -> Any:
        """The stored value, or None."""
        return None if self.folder is None else read_json(self.folder / f"{name}.json", self.cap)

    def put(self, name: str, value: object) -> None:
        """Store a value as JSON."""
        if self.folder is not None:
            with suppress(OSError):
                write(own(self.folder) / f"{name}.json", json.dumps(value).encode(), lasting=False)

    def tidy(self) -> None:
        """Remove the oldest files."""
        if self.folder is not None:
            with suppress(OSError):
                found = own(self.folder).glob("*.json")
                for old in sorted(found, key=lambda file: file.stat().st_mtime_ns)[: -self.most]:
                    old.unlink(missing_ok=True)


def cache_key(*parts: str) -> str:
    """The file name for a key."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
