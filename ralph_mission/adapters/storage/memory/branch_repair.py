"""The memory branch put right where git itself is damaged: a lock left behind, a ref file, lost objects.

Nothing of memory is judged here. The branch goes back to the newest of its commits whose whole history can be read;
where there is none it ends, and memory starts at a new root.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from ralph_mission.adapters.git.git import GitError
from ralph_mission.adapters.storage.memory.provenance import MemoryBranch, is_damaged, reason
from ralph_mission.errors import UserError

STALE = 600.0  # seconds after which a ref's lock is nobody's: git holds one for moments
TRIED = 50  # commits of the reflog that are tried, the newest first


def lock_file(branch: MemoryBranch) -> Path:
    """What git makes while it moves the ref."""
    return branch.file.with_name(f"{branch.file.name}.lock")


def lock_age(branch: MemoryBranch) -> float | None:
    """Seconds since somebody locked the ref; None when nobody did. A time to come is as long ago as it is ahead."""
    if branch.remote:
        return None
    try:
        return abs(time.time() - lock_file(branch).lstat().st_mtime)
    except OSError:
        return None


def faults(branch: MemoryBranch) -> Iterator[str]:
    """What is wrong with the ref and what it leads to, as far as git goes."""
    age = lock_age(branch)
    if age is not None:
        yield f"{lock_file(branch)} stands since {age:.0f} s: while it does, nothing can be written"
    if other := _other_ref(branch):
        yield f"the branch {branch.name} is another name of {other}"
        return
    head = _named_object(branch)
    if _has_damaged_file(branch):
        yield f"{branch.file} is damaged: it names no commit"
    elif head and (lost := _what_is_lost(branch, head)):
        yield f"git has lost something of the branch {branch.name}: {lost}"


def repair(branch: MemoryBranch) -> list[str]:
    """Make the branch one that git can go on from; what was done for it, in words.

    Raises UserError for a lock that may be held, a branch that is checked out, and where only a new clone helps.
    """
    done = list(_unlock(branch))
    if _other_ref(branch):
        branch.git.run("symbolic-ref", "--delete", branch.ref)
        return [*done, *_go_back(branch, "")]
    head, damaged = _named_object(branch), _has_damaged_file(branch)
    lost = _what_is_lost(branch, head) if head and not damaged else ""
    if not damaged and not lost:
        return done
    if branch.remote:
        what = f"this clone has lost something of the branch {branch.name} that the server has: {lost}"
        raise UserError(what, "make a new clone and run there")
    branch.refuse_unborn_checkout()
    if damaged:
        branch.file.unlink()
        head = _named_object(branch)  # an older one, packed with other refs
    return [*done, *_go_back(branch, head)]


def _go_back(branch: MemoryBranch, head: str) -> Iterator[str]:
    """Move the branch from `head` to its newest commit that is whole; end it where there is none."""
    target = next((oid for oid in (head, *earlier(branch)[:TRIED]) if oid and not _what_is_lost(branch, oid)), "")
    if target:
        branch.git.run("update-ref", "--no-deref", branch.ref, target)
        yield f"the branch {branch.name} as of {target[:10]}: git cannot read what came after it"
    elif head:
        branch.git.run("update-ref", "--no-deref", "-d", branch.ref)


def earlier(branch: MemoryBranch) -> list[str]:
    """The commits that the branch pointed at, as git noted them, the newest first."""
    try:
        lines = (branch.git.common_dir / "logs" / branch.ref).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    moves = [line.split(" ", 2)[:2] for line in reversed(lines)]
    return list(dict.fromkeys(oid for move in moves for oid in reversed(move) if len(move) == 2 and oid.strip("0")))


def _unlock(branch: MemoryBranch) -> Iterator[str]:
    age, lock = lock_age(branch), lock_file(branch)
    if age is None:
        return
    if age < STALE:
        what = f"{lock} says that git is moving the branch {branch.name}, since {age:.0f} s"
        step = f"run again in {STALE / 60:.0f} minutes: a lock as old as that is taken for nobody's, and removed"
        raise UserError(what, step)
    lock.unlink(missing_ok=True)
    yield f"the branch {branch.name}, whose lock nobody held any more"


def _has_damaged_file(branch: MemoryBranch) -> bool:
    return branch.remote is None and is_damaged(branch.file)


def _other_ref(branch: MemoryBranch) -> str:
    """The ref that the branch is another name of; "" for none."""
    return "" if branch.remote else branch.git.try_text("symbolic-ref", "--quiet", branch.ref)


def _named_object(branch: MemoryBranch) -> str:
    """The object that the ref names, whether it is there or not; "" for none. Raises UserError for a server's."""
    if branch.remote:
        return branch.head()
    return branch.git.try_text("rev-parse", "--verify", "--quiet", branch.ref)


def _what_is_lost(branch: MemoryBranch, oid: str) -> str:
    """What git misses of a commit and its history, in its own words; "" when all is there."""
    try:
        branch.git.run("rev-parse", "--verify", "--quiet", f"{oid}^{{commit}}")
        branch.git.refuse_lost(oid, history=True)
    except GitError as error:
        return reason(error)
    return ""
