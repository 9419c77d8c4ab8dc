"""Loose objects put into a pack by `git maintenance`, which drops nothing."""

from __future__ import annotations

import time
from contextlib import suppress

from ralph_mission.adapters.git.git import Git, GitError

STALE = 24 * 3600.0  # seconds after which the lock of a maintenance is that of a dead process


def pack_loose(git: Git) -> None:
    """Put loose objects into a pack; where that fails all stays as it is, and the next time tries again."""
    lock = git.common_dir / "objects" / "maintenance.lock"
    with suppress(GitError, OSError):
        if lock.exists() and lock.stat().st_mtime < time.time() - STALE:
            lock.unlink()
        git.run("maintenance", "run", "--quiet", "--task=loose-objects")
