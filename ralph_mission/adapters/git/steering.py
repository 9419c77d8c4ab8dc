"""A commit without what it says to agents: the pull that is read or answered gives nobody orders."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import GITLINK
from ralph_mission.safety.paths import steers_agents

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def without_steering(git: Git, base: str, head: str, steers: Callable[[str], bool] = steers_agents) -> str:
    """A commit with the files of `head`, but for those that steer agents: these are as at `base`.

    Nothing points at it; it is `head` itself where there is nothing to put back. Raises UserError when git cannot make
    one.
    """
    try:
        paths = [path for path in _differing(git, base, head) if steers(path)]
        if not paths:
            return head
        before = {entry.path: entry for entry in git.listing(base, *paths) if entry.mode != GITLINK}
        held = git.blobs(entry.oid for entry in before.values())
        back = {path: (entry.mode, held[entry.oid]) for path, entry in before.items()}
        wanted = dict.fromkeys((path for path in paths if path not in back), None) | back  # first what makes room
        return git.commit_tree(git.write_tree(head, wanted), [head], "What steers agents is as on the base\n", EPOCH)
    except GitError as error:
        what = f"what steers agents cannot be put back: {error.detail.strip()}"
        raise UserError(what, "a person reviews this one") from None


def _differing(git: Git, base: str, head: str) -> list[str]:
    names = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head)
    return [os.fsdecode(name) for name in names.split(b"\0") if name]
