"""Folders and files of ours in what a session may write: a link in the place of one would have us write, or read,
somewhere else.

At `bwrap` we reach further than the session that made the link, so it is never followed.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

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
