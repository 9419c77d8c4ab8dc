"""From intended edits to a branch with one commit on it, and from a branch to a pull.

The commit is a function of the effect alone, so doing it twice gives the same object id
and a branch that stands anywhere else is somebody else's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ralph_mission.forges.local import branches, threads
from ralph_mission.forges.local.desk import Desk
from ralph_mission.forges.local.refusal import Refused
from ralph_mission.forges.local.threads import Change, Thread
from ralph_mission.gateways.git import Git, GitError
from ralph_mission.mission.effects import PushBranch
from ralph_mission.mission.model import Actor
from ralph_mission.safety.edits import FileDelta, apply

OURS = "ralph/"

Contents = dict[str, tuple[str, bytes] | None]


def push(git: Git, effect: PushBranch, default: str) -> str:
    """Create the branch at its commit, which is returned. Raises Refused; moves no branch that exists."""
    sha = commit(git, effect, default)
    try:
        created = git.move_ref(branches.HEADS + effect.branch, sha, "")
    except GitError as error:
        raise Refused(f"git cannot create {effect.branch}: {error.detail.strip()}") from None
    if not created and git.resolve(branches.HEADS + effect.branch) != sha:
        raise Refused("foreign-commit")
    return sha


def commit(git: Git, effect: PushBranch, default: str) -> str:
    """The commit the branch is to point at; made, but nothing points at it yet. Raises Refused."""
    _require_name(git, effect.branch, default)
    if git.resolve(effect.base_sha) != effect.base_sha:
        raise Refused(f"there is no commit {effect.base_sha}")
    try:
        tree = git.write_tree(effect.base_sha, _contents(git, effect.base_sha, effect.files))
        return git.commit_tree(tree, (effect.base_sha,), effect.message, effect.date)
    except ValueError as error:
        raise Refused(f"the change does not fit {effect.base_sha[:12]}: {error}") from None
    except GitError as error:
        raise Refused(f"git cannot commit the change: {error.detail.strip()}") from None


def change(git: Git, desk: Desk, head: str, base: str) -> Change:
    """A new pull's branches. Raises Refused when one is missing, has nothing new, or ever had a pull."""
    known = branches.tips(git)
    for name in (head, base):
        if name not in known:
            raise Refused(f"there is no branch {name}")
    for thread in desk.threads("pulls"):
        if thread.change and thread.change.head == head:
            raise Refused(f"pull #{thread.number} by {thread.author.login} already has {head}")
    if branches.is_ancestor(git, known[head], known[base]):
        raise Refused(f"{head} has no commits that {base} lacks")
    return Change(head, base, known[head])


def closed(git: Git, thread: Thread, actor: Actor, now: datetime) -> Thread:
    """The pull closed without a merge, with its head as it is now. Raises Refused when it is merged."""
    known = branches.tips(git)
    thread = branches.settled(git, thread, known)
    if thread.state == "merged":
        raise Refused(f"pull #{thread.number} is merged")
    return threads.parted(threads.closed(thread, actor, "", now), branches.head_of(thread, known))


def _require_name(git: Git, name: str, default: str) -> None:
    if name == default:
        raise Refused("default-branch")
    if not name.startswith(OURS) or not git.try_text("check-ref-format", "--branch", name):
        raise Refused("branch-name")


def _contents(git: Git, base: str, files: Sequence[FileDelta]) -> Contents:
    """What each path becomes; None when it goes. Raises ValueError when an edit does not fit."""
    oids = {entry.path: entry.oid for entry in git.listing(base, *(file.path for file in files))}
    blobs = git.blobs(oids.values())
    return {file.path: _content(file, blobs.get(oids.get(file.path, ""), b"")) for file in files}


def _content(file: FileDelta, old: bytes) -> tuple[str, bytes] | None:
    return (file.mode, apply(old, file.edits)) if file.mode else None
