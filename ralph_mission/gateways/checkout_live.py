"""Branches that loops in other work trees work on, now or since a mark: what moves them is not our session.

A loop that begins and ends within one session of ours is seen by no look at the locks, so each notes its branch
first. Notes prove less than locks, a session can forge them: see `checkout_history.put_back`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralph_mission.gateways.checkout_kept import remove
from ralph_mission.gateways.git import Git

LOCK = "ralph-running"
"""In the git directory of a work tree; held while a loop runs there, as that folder is (`stores/loop/lock.py`)."""
FORMER = "ralph-loop.lock"
"""What a loop of the version before holds instead: it may run on while the one after it is installed."""
NOTES = "ralph-loops"
"""In the common git directory: for each branch that a loop ever worked on a file, `TOKEN BRANCH`."""
LONGEST = 4096  # bytes of a note
MOST = 10_000  # notes; more are not of loops


def branches(git: Git) -> frozenset[str]:
    """Their full names. A session is over when this is asked, so it holds no such lock itself."""
    return frozenset(_branch(folder) for folder in _others(git) if held(folder)) - {""}


def held(git_dir: Path) -> bool:
    """Whether a loop runs in the work tree whose git directory this is. Whoever asks holds no such lock itself."""
    return any(map(_held, (git_dir, git_dir / LOCK))) or former(git_dir)


def former(git_dir: Path) -> bool:
    """Whether one of the version before does."""
    return _held(git_dir / FORMER)


def note(git: Git, branch: str) -> None:
    """Say that a loop begins on this branch (its full name; "" for none), before it makes or moves it.

    Raises OSError.
    """
    folder, token = git.common_dir / NOTES, secrets.token_hex(8)
    if branch:
        raw = branch.encode("utf-8", "surrogateescape")
        if folder.is_symlink() or not folder.is_dir():
            remove(str(folder))
        folder.mkdir(exist_ok=True)
        path, spare = folder / hashlib.sha256(raw).hexdigest()[:24], folder / f".{token}"
        spare.write_bytes(token.encode() + b" " + raw + b"\n")
        if path.is_dir() and not path.is_symlink():
            remove(str(path))
        os.replace(spare, path)


def noted(git: Git) -> dict[str, str]:
    """Branch -> what stands there of the last loop on it. The main work tree's own branch is never among them."""
    rows = (row.partition(" ") for row in _notes(git.common_dir / NOTES))
    found = {branch: token for token, _, branch in rows if branch.startswith("refs/heads/")}
    found.pop(_branch(git.common_dir), None)
    return found


def _notes(folder: Path) -> Iterator[str]:
    with suppress(OSError):
        names = () if folder.is_symlink() else sorted(os.listdir(folder))[:MOST]
        yield from filter(None, (_read(folder / name) for name in names if not name.startswith(".")))


def _read(path: Path) -> str:
    """The text of a note; "" for what is none: a session may have put anything there."""
    with suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, LONGEST).decode("utf-8", "surrogateescape").strip()
        finally:
            os.close(descriptor)
    return ""


def _others(git: Git) -> Iterator[Path]:
    places = (git.common_dir, *(git.common_dir / "worktrees").glob("*"))
    yield from (place for place in places if place.resolve() != git.git_dir.resolve())


def _held(lock: Path) -> bool:
    with suppress(OSError):
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _branch(folder: Path) -> str:
    with suppress(OSError, ValueError):
        return (folder / "HEAD").read_text().strip().removeprefix("ref:").strip()
    return ""
