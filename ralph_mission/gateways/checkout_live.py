"""Branches that a loop in another work tree works on right now: what moves them is not our session."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralph_mission.gateways.git import Git

LOCK = "ralph-loop.lock"
"""Held while a loop runs, in the git directory of its work tree (`stores/loop/lock.py`)."""


def branches(git: Git) -> frozenset[str]:
    """Their full names. A session is over when this is asked, so it holds no such lock itself."""
    return frozenset(_branch(folder) for folder in _others(git) if _held(folder / LOCK)) - {""}


def _others(git: Git) -> Iterator[Path]:
    places = (git.common_dir, *(git.common_dir / "worktrees").glob("*"))
    yield from (place for place in places if place.resolve() != git.git_dir.resolve())


def _held(lock: Path) -> bool:
    with suppress(OSError):
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
