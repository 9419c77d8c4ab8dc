"""Flags of the index that hide changes: from `git status`, and so from the person who asks it later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ralph_mission.gateways import wire
from ralph_mission.gateways.checkout_kept import PUT_BACK
from ralph_mission.gateways.git import Git
from ralph_mission.loop.model import Change

PLAIN = "H"  # `ls-files -v`: `S` skips the work tree, a small letter is assumed unchanged
Flags = Mapping[str, str]
"""Path -> its letter, of those that are flagged."""


def flagged(letter: str) -> bool:
    """Whether this letter of `ls-files -v` hides changes."""
    return letter == "S" or letter.islower()


def put_back(git: Git, before: Flags, now: Flags, index: Iterable[str]) -> tuple[Change, ...]:
    """Flag the paths of the index as before. Raises GitError."""
    wrong = [path for path in index if before.get(path) != now.get(path)] if before != now else []
    for name, held in (("assume-unchanged", str.islower), ("skip-worktree", _skipped)):
        _flag(git, f"--{name}", [path for path in wrong if held(before.get(path, PLAIN))])
        _flag(git, f"--no-{name}", [path for path in wrong if not held(before.get(path, PLAIN))])
    return tuple(Change(path, "flagged in the index", PUT_BACK) for path in wrong)


def _skipped(letter: str) -> bool:
    return letter in "Ss"


def _flag(git: Git, flag: str, paths: Iterable[str]) -> None:
    if names := b"".join(wire.raw(path) + b"\0" for path in paths):
        git.run("update-index", flag, "-z", "--stdin", stdin=names)
