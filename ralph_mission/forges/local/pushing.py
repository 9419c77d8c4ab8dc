"""Branches that move by compare-and-swap, and the pulls on them."""

from __future__ import annotations

from datetime import datetime

from ralph_mission.forges import commits
from ralph_mission.forges.history import is_ancestor
from ralph_mission.forges.local import branches, threads
from ralph_mission.forges.local.desk import ThreadStore
from ralph_mission.forges.local.threads import LocalThread, PullChange
from ralph_mission.forges.refusal import ForgeRefused
from ralph_mission.gateways.git import Git, GitError
from ralph_mission.mission.effects import PushBranch
from ralph_mission.mission.threads import Actor


def push(git: Git, effect: PushBranch, default: str) -> str:
    """Move the branch to its new commit, which is returned. Raises Refused; moves none that stands elsewhere."""
    sha = commits.commit(git, effect, default)
    try:
        moved = git.move_ref(branches.HEADS + effect.branch, sha, effect.onto)
    except GitError as error:
        raise ForgeRefused(f"git cannot move {effect.branch}: {error.detail.strip()}") from None
    if not moved and git.resolve(branches.HEADS + effect.branch) != sha:
        raise ForgeRefused("foreign-commit")
    return sha


def change(git: Git, desk: ThreadStore, head: str, base: str) -> PullChange:
    """A new pull's branches. Raises Refused when one is missing, has nothing new, or ever had a pull."""
    known = branches.tips(git)
    for name in (head, base):
        if name not in known:
            raise ForgeRefused(f"there is no branch {name}")
    for thread in desk.threads("pulls"):
        if thread.change and thread.change.head == head:
            raise ForgeRefused(f"pull #{thread.number} by {thread.author.login} already has {head}")
    if is_ancestor(git, known[head], known[base]):
        raise ForgeRefused(f"{head} has no commits that {base} lacks")
    return PullChange(head, base, known[head])


def close_pull(git: Git, thread: LocalThread, actor: Actor, now: datetime) -> LocalThread:
    """The pull closed without a merge, with its head as it is now. Raises Refused when it is merged."""
    known = branches.tips(git)
    thread = branches.settle_thread(git, thread, known)
    if thread.state == "merged":
        raise ForgeRefused(f"pull #{thread.number} is merged")
    return threads.keep_head(threads.close_thread(thread, actor, "", now), branches.head_of(thread, known))
