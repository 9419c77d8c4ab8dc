"""One loop per checkout, whatever its mode, ours or that of another tool.

What is held is the git directory, and a file in it that says who runs. Not `.ralph/`: agents have deleted that while
their loop ran, and every `*.lock` below `.git`; a lock that can be deleted lets a second loop in. The kernel drops both
when their holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from ralph_mission.gateways import solid
from ralph_mission.gateways.checkout_live import LOCK, held
from ralph_mission.gateways.process import end_orphans
from ralph_mission.stores.loop import legacy, owners
from ralph_mission.trouble import Trouble

LONGEST_NOTE = 4096  # bytes


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
    folder = os.open(git_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _opened(git_dir, os.O_CREAT) as note:
            if not (_taken(folder) and _taken(note)):
                raise _busy(_note(note))
            _end_left(_note(note))
            _refuse_others(root, now)
            _write(note, Holder(mode, os.getpid(), now.isoformat(timespec="seconds")))
            yield
            os.ftruncate(note, 0)  # after a kill the note stays: it says whose leftovers there are
    finally:
        os.close(folder)


def holder(git_dir: Path) -> Holder | None:
    """Who runs a loop in this checkout right now, None when nobody does."""
    if not held(git_dir):
        return None
    with suppress(OSError), _opened(git_dir) as note:
        return _note(note)
    return Holder()  # a session took the note away


def clear(git_dir: Path) -> bool:
    """Forget the note of a loop that died; False when there is none. Only when nobody runs. Raises OSError."""
    with suppress(FileNotFoundError), _opened(git_dir) as note:
        died = os.fstat(note).st_size > 0
        os.ftruncate(note, 0)
        return died
    return False


@contextmanager
def _opened(git_dir: Path, flags: int = 0) -> Iterator[int]:
    """The note, by no link: a session may write beside it."""
    descriptor = solid.opened(git_dir / LOCK, git_dir, os.O_RDWR | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise
    return True  # also where folders cannot be locked, as on NFS: there the note alone counts


def _end_left(died: Holder) -> None:
    """What a loop that was killed left running would write beside the next one."""
    owner = owners.place(died.pid)
    if died.pid and owners.dead(owner):
        end_orphans(f"RALPH_OWNER={owner}")


def _busy(holder: Holder) -> Trouble:
    return Trouble(f"{holder} works in this checkout", "wait for it, or end it with: ralph cancel")


def _refuse_others(root: Path, now: datetime) -> None:
    found = next(legacy.active(root, now), None)
    if found:
        mend = f"cancel it there (/oh-my-claudecode:cancel); if nothing runs, delete {found.path}"
        raise Trouble(f"{found.mode} is active in this checkout, says {found.path}", mend)


def _note(descriptor: int) -> Holder:
    with suppress(ValueError, TypeError):
        return Holder(**json.loads(os.pread(descriptor, LONGEST_NOTE, 0)))
    return Holder()


def _write(descriptor: int, note: Holder) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(note)).encode(), 0)
