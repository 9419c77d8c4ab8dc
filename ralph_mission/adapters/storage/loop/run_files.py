"""The files of a loop: their place in a checkout, and safe writes despite kills, other processes and agents.

The place is found without git, as agents look hundreds of times. Replacing and appending are atomic. New files follow
the umask, replaced ones keep their mode. They contain no secrets.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from ralph_mission.adapters import files
from ralph_mission.adapters.files import RALPH
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PathChange

STRANGE = "move it away, then run again"


def read(path: Path, cap: int, top: Path | None = None) -> bytes | None:
    """The content of a file, or None. Raises UserError beyond `cap` bytes and for anything but a file.

    Below `.ralph`, or `ralph` in a git directory, links are not followed, nor in a work tree `top` those that lead out
    of it, and hard links are refused: sessions write there, and we can reach more than they can. Elsewhere links are
    the owner's.
    """
    if top is None and files.top_of(path) == path.parent:
        return read_named(path, cap)
    return _read(
        path,
        cap,
        lambda: files.within(path, top) if top else files.open_plain(path, files.top_of(path)),
    )


def read_objects(path: Path, cap: int) -> list[dict[str, Any]]:
    """The JSON objects of a file, one per line; other lines are skipped. Raises UserError, as `read`."""
    found = []
    for line in (read(path, cap) or b"").split(b"\n"):
        with suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [value for value in found if isinstance(value, dict)]


def dump_object(values: Mapping[str, Any]) -> bytes:
    """A JSON object as one line, without its end."""
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")


def parse_moment(found: object) -> datetime | None:
    """A time in one of them, by default in UTC; None for anything else."""
    try:
        at = datetime.fromisoformat(str(found))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def read_named(path: Path, cap: int) -> bytes | None:
    """The same for a file named by an owner, following links."""
    # Not blocking: an agent may have left a pipe.
    return _read(path, cap, lambda: os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


def _read(path: Path, cap: int, opened: Callable[[], int]) -> bytes | None:
    try:
        descriptor = opened()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _strange(path, error) from None
    with _regular(path, descriptor) as file:
        size = os.fstat(descriptor).st_size  # allocating for the cap would take longer than reading
        content = file.read(min(cap, size) + 1)
        if len(content) > size:  # it grew, or is a kernel file without a size
            content += file.read(cap + 1 - len(content))
    if len(content) > cap:
        raise UserError(f"{path} is larger than {cap:,} bytes", "shorten it or move it away, then run again")
    return content


def write(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Write a file atomically, moving aside whatever a session left in the way. Raises OSError."""
    _make_folder(path.parent)
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            aside(path)
    files.write(path, content, lasting=lasting)


def append(path: Path, line: bytes, lasting: bool = True) -> None:
    """Append a line under the file's lock, durably by default; creates the file. A torn last line is terminated first,
    so that only it is unreadable. Raises OSError, and UserError if the lock stays taken or it is not a file."""
    with hold_file_lock(path):
        add(path, line, lasting)


def add(path: Path, line: bytes, lasting: bool = True) -> None:
    """As `append`, for callers that already hold a common lock."""
    _make_folder(path.parent)
    descriptor = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK)
    try:
        files.append(descriptor, line_end(descriptor) + line.rstrip(b"\n") + b"\n", path)
        if lasting:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file; a folder in its place is moved aside. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            aside(path)
        else:
            path.unlink()


def aside(path: Path) -> Path:
    """Rename whatever is in the way, for a person to look at. Raises OSError."""
    place = name_aside(path)
    path.rename(place)
    return place


def name_aside(path: Path) -> Path:
    """A name beside `path` for something moved aside."""
    return path.with_name(f"{path.name}.{time.time_ns()}.aside")


@contextmanager
def hold_file_lock(path: Path, wait: float = 30) -> Iterator[None]:
    """Lock `path` for reading and writing, among processes and threads; creates the folder. Not reentrant.

    The lock is a file beside it, `<name>.lock`, because the file itself is replaced; the kernel releases it when its
    holder dies. Raises UserError after `wait` seconds.
    """
    lock = path.with_name(f"{path.name}.lock")
    _make_folder(path.parent)
    with ExitStack() as stack:
        try:
            success = stack.enter_context(files.hold_file(lock, wait))
        except OSError as error:
            raise _strange(lock, error) from None
        if not success:
            what = f"another process has held {lock} for {wait:g} seconds"
            raise UserError(what, f"see who: fuser {lock}; then run again")
        yield


def _make_folder(folder: Path) -> None:
    """Create the folder. Below `.ralph`, anything in the way, such as a session's link, is moved aside."""
    for place in _folders_of_ours(folder):
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                aside(place)
    if not os.path.isdir(folder):  # first, as it nearly always exists
        folder.mkdir(parents=True, exist_ok=True)


@lru_cache(maxsize=64)
def _folders_of_ours(folder: Path) -> tuple[Path, ...]:
    """The folders from `.ralph` to this one, outermost first."""
    names = folder.parts
    first = len(names) - names[::-1].index(RALPH) if RALPH in names else len(names)
    return tuple(Path(*names[: end + 1]) for end in range(first, len(names)))


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _strange(path, error) from None


def _regular(path: Path, descriptor: int) -> BinaryIO:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise UserError(f"{path} is not a regular file", STRANGE)


def _strange(path: Path, error: OSError) -> Exception:
    """The error for a link, socket or folder in place of a file; other errors are unchanged."""
    if error.errno == errno.EPERM:
        return UserError(f"{path} may be somebody else's file too: it has a second name, or another owner", STRANGE)
    strange = error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EINVAL)
    return UserError(f"{path} is not a regular file", STRANGE) if strange else error


def line_end(descriptor: int) -> bytes:
    """What an open file lacks at its end, to be continued on a line of its own."""
    size = os.fstat(descriptor).st_size
    return b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""


IGNORED = "/.ralph/"
WORKSPACE = "workspace"
"""Folders below `.ralph/` in which sessions work."""
FOLDERS = (".ralph/agent", ".ralph/apart", ".ralph/cache", ".ralph/cycles", ".ralph/events", ".ralph/forge",
           ".ralph/live", ".ralph/loop/apart", ".ralph/loop/calls", ".ralph/loop/home", ".ralph/loop/runs",
           ".ralph/missions", ".ralph/outbox", ".ralph/replaced", ".ralph/review", ".ralph/setup",
           ".ralph/units", ".ralph/work",
           ".ralph/aside", ".ralph/workspace", ".ralph/worktrees")  # fmt: skip  # one list
"""Folders in which a run, a cycle or sessions write."""


def folder(repo: Path | None, environ: Mapping[str, str]) -> Path:
    """The `.ralph` of a checkout: that of `repo`, else the running loop's (`RALPH_RUN_DIR`), else the current one's.
    Creates nothing. Raises UserError outside a repository."""
    if repo is None and environ.get("RALPH_RUN_DIR"):
        return Path(environ["RALPH_RUN_DIR"]).absolute().parent
    here = (repo or Path()).absolute()
    top = next((place for place in (here, *here.parents) if (place / ".git").exists()), None)
    if top is None:
        what = f"{here} is not in the work tree of a git repository"
        raise UserError(what, "run it there, or give --repo DIR", usage=True)
    return top / ".ralph"


def of_session(repo: Path, environ: Mapping[str, str]) -> Path | None:
    """The `.ralph` of the checkout whose loop runs a session in the clone that contains `repo`, or None."""
    run = Path(environ["RALPH_RUN_DIR"]).absolute() if environ.get("RALPH_RUN_DIR") else None
    return run.parent if run and repo.absolute().is_relative_to(run.parent / WORKSPACE) else None


def prepare(place: Path) -> None:
    """Create the folder, and exclude it from git if it is new. Raises OSError, and UserError for a link in its
    place."""
    if found := files.links(place.parent, FOLDERS):
        raise UserError(f"{place.parent / found[0]} is a link", STRANGE)
    if place.is_dir():
        return
    place.mkdir(parents=True, exist_ok=True)
    if exclude := _exclude(place.parent):
        files.add_line(exclude, IGNORED)


def _exclude(top: Path) -> Path | None:
    """`info/exclude` of the repository, which linked work trees share, or None."""
    git = top / ".git"
    if git.is_file():
        git = top / git.read_text().removeprefix("gitdir:").strip()
        if (git / "commondir").is_file():
            git = git / (git / "commondir").read_text().strip()
    return git / "info" / "exclude" if (git / "HEAD").exists() else None


PUT_BACK = "put back"


def within(path: Path, root: Path) -> tuple[PathChange, ...]:
    """Remove links on the way to `path` that lead out of the work tree `root`; returns messages about them.

    People's own links were refused before the first session (`RunStore.exclusive`). Raises OSError.
    """
    return tuple(PathChange(name, "made a link", PUT_BACK) for name in files.keep_within(path, root))
