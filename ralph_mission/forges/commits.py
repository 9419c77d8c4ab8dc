"""From intended edits to a commit object. It is a function of the effect alone: doing it twice gives the same id.

A branch that stands anywhere else is therefore somebody else's work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralph_mission.forges.history import is_ancestor
from ralph_mission.forges.refusal import ForgeRefused
from ralph_mission.gateways.git import Git, GitError
from ralph_mission.mission.effects import MARKER, PushBranch
from ralph_mission.safety.patch import FileDelta, apply

OURS = "ralph/"

Contents = dict[str, tuple[str, bytes] | None]


def mark(body: str) -> str:
    """The key of the last marker in a text, "" without one: those before it may be quoted from anybody."""
    keys: list[str] = re.findall(MARKER, body)
    return keys[-1] if keys else ""


def is_work(body: str) -> bool:
    """Whether a text of ours belongs to a mission or a watch: an alarm of an older version is none."""
    found = MARKER.search(body)
    return found is not None and " alarm=" not in found[0]


def commit(git: Git, effect: PushBranch, default: str) -> str:
    """The commit the branch is to point at; made, but nothing points at it yet. Raises Refused."""
    _require_name(git, effect.branch, default)
    for known in filter(None, (effect.base_sha, effect.onto)):
        if git.resolve(known) != known:
            raise ForgeRefused(f"there is no commit {known}")
    parents, start = _beginning(git, effect)
    try:
        tree = git.write_tree(start, _contents(git, start, effect.files)) if effect.files else start
        return git.commit_tree(tree, parents, effect.message, effect.date)
    except ValueError as error:
        raise ForgeRefused(f"the change does not fit {start[:12]}: {error}") from None
    except GitError as error:
        raise ForgeRefused(f"git cannot commit the change: {error.detail.strip()}") from None


def merged_tree(git: Git, ours: str, theirs: str) -> str:
    """The tree of a merge without conflicts, made without a checkout. Raises Refused."""
    try:
        return git.text("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs).split("\0")[0]
    except GitError as error:
        if error.code == 1:
            raise ForgeRefused("the merge has conflicts", "bring the branch up to date with its base") from None
        raise ForgeRefused(f"git cannot merge: {error.detail.strip()}") from None


def _beginning(git: Git, effect: PushBranch) -> tuple[tuple[str, ...], str]:
    """Parents, and the tree that the edits are made in. The base is merged in, never rebased upon."""
    if not effect.onto:
        return (effect.base_sha,), git.text("rev-parse", f"{effect.base_sha}^{{tree}}")
    if is_ancestor(git, effect.base_sha, effect.onto):
        return (effect.onto,), git.text("rev-parse", f"{effect.onto}^{{tree}}")
    return (effect.onto, effect.base_sha), merged_tree(git, effect.onto, effect.base_sha)


def _require_name(git: Git, name: str, default: str) -> None:
    if name == default:
        raise ForgeRefused("default-branch")
    if not name.startswith(OURS) or not git.try_text("check-ref-format", "--branch", name):
        raise ForgeRefused("branch-name")


def _contents(git: Git, tree: str, files: Sequence[FileDelta]) -> Contents:
    """What each path becomes; None when it goes. Raises ValueError when an edit does not fit."""
    oids = {entry.path: entry.oid for entry in git.listing(tree, *(file.path for file in files))}
    blobs = git.blobs(oids.values())
    return {file.path: _content(file, blobs.get(oids.get(file.path, ""), b"")) for file in files}


def _content(file: FileDelta, old: bytes) -> tuple[str, bytes] | None:
    return (file.mode, apply(old, file.edits)) if file.mode else None
