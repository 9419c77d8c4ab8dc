"""One loop per checkout, whatever its mode, ours or that of another tool.

The lock lies in the git directory and not in `.ralph/`: agents have deleted `.ralph/` while their loop ran, and a lock
that can be deleted lets a second loop in. The kernel drops it when its holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from ralph_mission.gateways.process import end_orphans
from ralph_mission.stores.loop import legacy, owners
from ralph_mission.trouble import Trouble

NAME = "ralph-loop.lock"
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
    descriptor = os.open(git_dir / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        if not _taken(descriptor):
            raise _busy(_note(descriptor))
        _end_left(_note(descriptor))
        _refuse_others(root, now)
        _write(descriptor, Holder(mode, os.getpid(), now.isoformat(timespec="seconds")))
        yield
        os.ftruncate(descriptor, 0)  # after a kill the note stays: it says whose leftovers there are
    finally:
        os.close(descriptor)


def holder(git_dir: Path) -> Holder | None:
    """Who runs a loop in this checkout right now, None when nobody does."""
    try:
        descriptor = os.open(git_dir / NAME, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return None if _taken(descriptor) else _note(descriptor)
    finally:
        os.close(descriptor)


def clear(git_dir: Path) -> bool:
    """Forget the note of a loop that died; False when there is none. Only when nobody runs."""
    try:
        died = (git_dir / NAME).stat().st_size > 0
    except FileNotFoundError:
        return False
    if died:
        os.truncate(git_dir / NAME, 0)
    return died


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
