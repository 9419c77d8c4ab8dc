"""Merging without a checkout: the commit is made first, then work trees and branch move to it.

What a crash leaves is harmless. The commit is noted in the pull's file before anything
moves. Work trees move before the branch: killed in between, they show the pull as staged
changes, which the next attempt takes back. Killed after the branch moved, the note says
that the merge is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.adapters.forges.commits import ForgeRefused, merged_tree
from ralph_mission.adapters.forges.local import branches
from ralph_mission.adapters.forges.local.desk import ThreadStore
from ralph_mission.adapters.forges.local.threads import LocalThread, PullChange, after, mark_merged
from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.mission.model.forge import Actor
from ralph_mission.values import dataclass

OURS = ".ralph"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Merge at exactly `head_sha`, by `method` squash or merge."""

    head_sha: str
    method: str
    message: str
    actor: Actor
    who: Identity


def land(desk: ThreadStore, git: Git, thread: LocalThread, order: MergeRequest, now: datetime) -> LocalThread:
    """The merged pull; merging twice at the same head is merging once. Raises Refused. Needs the desk's lock."""
    known = branches.tips(git)
    thread = branches.settle_thread(git, thread, known)
    _require_mergeable(thread, order, known)
    assert thread.change
    if thread.state != "merged":
        thread = _merge(desk, git, thread, thread.change, order, known, after(thread, now))
    desk.write(thread)
    return thread


def _require_mergeable(thread: LocalThread, order: MergeRequest, known: Mapping[str, str]) -> None:
    assert thread.change
    if thread.state == "closed":
        raise ForgeRefused(f"pull #{thread.number} is closed")
    if branches.head_of(thread, known) != order.head_sha:
        raise ForgeRefused("approval-head")
    if thread.change.base not in known:
        raise ForgeRefused(f"there is no branch {thread.change.base}")
    if order.method not in ("squash", "merge"):
        raise ForgeRefused(f"merge method {order.method} is not supported", "use squash or merge")


def _merge(
    desk: ThreadStore,
    git: Git,
    thread: LocalThread,
    change: PullChange,
    order: MergeRequest,
    known: Mapping[str, str],
    at: datetime,
) -> LocalThread:
    base = known[change.base]
    trees = branches.of_branch(git, change.base)
    if change.merging:
        branches.take_back(trees, base, change.merging)
    commit = _commit(git, base, order, at)
    noted = replace(change, merging=commit, head_sha=order.head_sha, merged_by=order.actor)
    desk.write(replace(thread, change=noted))
    try:
        _move(git, trees, change.base, base, commit)
    except ForgeRefused:
        desk.write(replace(thread, change=replace(change, merging="")))
        raise
    return mark_merged(thread, order.head_sha, commit, order.actor, at)


def _move(git: Git, trees: Sequence[Git], branch: str, old: str, new: str) -> None:
    with branches.move_trees(trees, old, new):
        if not git.move_ref(f"refs/heads/{branch}", new, old):
            raise ForgeRefused(f"{branch} moved meanwhile", "merge again")


def _commit(git: Git, base: str, order: MergeRequest, at: datetime) -> str:
    tree = merged_tree(git, base, order.head_sha)
    _spare_our_files(git, base, tree)
    parents = (base,) if order.method == "squash" else (base, order.head_sha)
    return git.commit_tree(tree, parents, order.message, at, order.who)


def _spare_our_files(git: Git, base: str, tree: str) -> None:
    # Checked out, such a file would be an issue or approval that nobody gave.
    if _ours(git, tree) != _ours(git, base):
        raise ForgeRefused(
            f"the pull changes files below {OURS}/, where this forge lives", "take them out of the branch"
        )


def _ours(git: Git, tree: str) -> set[tuple[str, str]]:
    return {(e.path, e.oid) for e in git.listing(tree, recursive=False) if e.path.casefold() == OURS}
