"""One loop per checkout, whatever its mode, ours or that of another tool.

What is held is the git directory, and a file in it that says who runs. Not `.ralph/`: agents have deleted that while
their loop ran, and every `*.lock` below `.git`; a lock that can be deleted lets a second loop in. The kernel drops both
when their holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from ralph_mission.gateways.files import locks, safe_paths
from ralph_mission.gateways.process import end_orphans
from ralph_mission.safety.hidden import without_controls, without_invisible
from ralph_mission.stores.loop import files, legacy, owners
from ralph_mission.trouble import UserError

LOCK = "ralph-running"
"""In the git directory of a work tree; held while a loop runs there, as that folder is."""
FORMER = "ralph-loop.lock"
"""What a loop of the version before holds instead: it may run on while the one after it is installed."""
LONGEST_NOTE = 4096  # bytes
GLANCE = 0.05  # seconds that a lock is tried: who only asks whether a loop runs has it for a moment


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs: `since` is ISO 8601, UTC."""

    mode: str = ""
    pid: int = 0
    since: str = ""

    def __str__(self) -> str:
        who = f"a {self.mode} loop" if self.mode else "another loop"
        return f"{who}{f' (process {self.pid}, since {self.since})' if self.pid else ''}"


@contextmanager
def exclusive(git_dir: Path, root: Path, mode: str, now: datetime) -> Iterator[None]:
    """Held while a loop runs in the work tree `root` of `git_dir`. Raises Trouble when another one does."""
    with _alone(git_dir), _open_note(git_dir, os.O_CREAT) as note:
        if former(git_dir):
            raise _busy(Holder())
        if not locks.try_lock(note, GLANCE):
            raise _busy(_note(note))
        _end_left(_note(note))
        _refuse_others(root, now)
        _write(note, Holder(mode, os.getpid(), now.isoformat(timespec="seconds")))
        yield
        os.ftruncate(note, 0)  # after a kill the note stays: it says whose leftovers there are


def holder(git_dir: Path) -> Holder | None:
    """Who runs a loop in this checkout right now, None when nobody does."""
    return _read_holder(git_dir) if held(git_dir) else None


def held(git_dir: Path) -> bool:
    """Whether a loop runs in the work tree whose git directory this is. Whoever asks holds no such lock itself."""
    return any(map(_held, (git_dir, git_dir / LOCK))) or former(git_dir)


def former(git_dir: Path) -> bool:
    """Whether one of the version before does."""
    return _held(git_dir / FORMER)


def clear(git_dir: Path) -> bool:
    """Forget the note of a loop that died; False when there is none of ours. Only when nobody runs."""
    with suppress(OSError), _open_note(git_dir) as note:
        died = os.fstat(note).st_size > 0
        os.ftruncate(note, 0)
        return died
    return False


@contextmanager
def _alone(git_dir: Path) -> Iterator[None]:
    """Held by its folder, where what is no note of a loop gives way: a session may have put anything there."""
    folder = os.open(git_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # no folder can be locked on NFS: there the note alone counts, and stays what it is
            if not locks.try_lock(folder, GLANCE):
                raise _busy(_read_holder(git_dir))
            _clear_way(git_dir)
        yield
    finally:
        os.close(folder)


def _clear_way(git_dir: Path) -> None:
    try:
        with _open_note(git_dir):
            pass
    except FileNotFoundError:
        pass
    except OSError:
        files.remove(git_dir / LOCK)


@contextmanager
def _open_note(git_dir: Path, flags: int = 0) -> Iterator[int]:
    """The note, by no link: a session may write beside it. Raises OSError, with the whole path."""
    place = git_dir / LOCK
    try:
        descriptor = safe_paths.open_plain(place, git_dir, os.O_RDWR | flags)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _held(place: Path) -> bool:
    with suppress(OSError):
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _read_holder(git_dir: Path) -> Holder:
    with suppress(OSError), _open_note(git_dir) as note:
        return _note(note)
    return Holder()  # a session took the note away


def _end_left(died: Holder) -> None:
    """What a loop that was killed left running would write beside the next one."""
    owner = owners.place(died.pid)
    if died.pid and owners.dead(owner):
        end_orphans(f"RALPH_OWNER={owner}")


def _busy(holder: Holder) -> UserError:
    return UserError(f"{holder} works in this checkout", "wait for it, or end it with: ralph cancel")


def _refuse_others(root: Path, now: datetime) -> None:
    found = next(legacy.active(root, now), None)
    if found:
        mend = f"cancel it there (/oh-my-claudecode:cancel); if nothing runs, delete {found.path}"
        raise UserError(f"{found.mode} is active in this checkout, says {found.path}", mend)


def _note(descriptor: int) -> Holder:
    """What a loop wrote, and a session may have written: what is no note says nothing."""
    with suppress(ValueError, TypeError, RecursionError):
        said = Holder(**json.loads(os.pread(descriptor, LONGEST_NOTE, 0)))
        if (type(said.mode), type(said.pid), type(said.since)) == (str, int, str):
            return replace(said, mode=_line(said.mode), since=_line(said.since))
    return Holder()


def _line(text: str) -> str:
    """On one line, with nothing that a terminal obeys or a reader does not see."""
    return " ".join(without_invisible(without_controls(text)).split())


def _write(descriptor: int, note: Holder) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(note)).encode(), 0)
