"""What git itself knows of branches and pulls. Reads only; answers about object ids are remembered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ralph_mission.forges.local.threads import Change, Thread, merged
from ralph_mission.gateways.git import EMPTY_TREE, Git
from ralph_mission.mission.model import Branch, Touch
from ralph_mission.mission.trouble import Trouble

HEADS = "refs/heads/"
ORIGIN = "refs/remotes/origin/"
HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? ")


def tips(git: Git) -> dict[str, str]:
    """Every local branch and the commit it points at, in one question."""
    listed = git.text("for-each-ref", "--format=%(objectname) %(refname)", HEADS)
    pairs = (line.split(" ", 1) for line in listed.split("\n") if line)
    return {ref.removeprefix(HEADS): oid for oid, ref in pairs}


def default_branch(git: Git, configured: str = "") -> Branch:
    """The configured one, else what origin calls its own, main, master, the only one, HEAD's. Raises Trouble."""
    known = tips(git)
    if configured and configured not in known:
        raise Trouble(f"there is no branch {configured}", "create it, or name another default branch", usage=True)
    origin = git.try_text("symbolic-ref", "--quiet", f"{ORIGIN}HEAD").removeprefix(ORIGIN)
    people = [name for name in known if name != "ralph-memory" and not name.startswith("ralph/")]
    wanted = (configured, origin, "main", "master", people[0] if len(people) == 1 else "")
    name = next((name for name in wanted if name in known), "") or _current(git)
    if name in known:
        return Branch(name, known[name])
    if people:
        raise Trouble("it is not clear which branch is the default one", "check one out: git switch BRANCH")
    raise Trouble("the repository has no commits", "make a first commit, then run again")


def _current(git: Git) -> str:
    return git.try_text("symbolic-ref", "--quiet", "HEAD").removeprefix(HEADS)


def settled(git: Git, thread: Thread, known: Mapping[str, str]) -> Thread:
    """The pull as it truly stands: merged when its commits are on its base, whoever brought them there."""
    change = thread.change
    base = known.get(change.base, "") if change else ""
    if change is None or thread.state != "open" or not base:
        return thread
    if change.merging and is_ancestor(git, change.merging, base):
        return merged(thread, change.head_sha, change.merging, change.merged_by, thread.updated_at)
    head = known.get(change.head, change.head_sha)
    if is_ancestor(git, change.head_sha, base) and is_ancestor(git, head, base):
        return merged(thread, head, head, None, thread.updated_at)
    return thread


def head_of(thread: Thread, known: Mapping[str, str]) -> str:
    """Where the head is, or was when the pull ceased to be open; "" when an open pull lost its branch."""
    change = thread.change
    assert change
    return known.get(change.head, "") if thread.state == "open" else change.head_sha


def base_of(git: Git, change: Change, known: Mapping[str, str]) -> str:
    """The commit to compare the head with: before the merge, when there was one."""
    before = git.resolve(f"{change.merged_sha}^1") if change.merged_sha not in ("", change.head_sha) else ""
    return before or known.get(change.base, "")


def is_ancestor(git: Git, old: str, new: str) -> bool:
    """Whether commit `old` is in the history of `new`."""
    return bool(old) and fork(git, new, old) == old


@lru_cache(maxsize=1024)
def fork(git: Git, base: str, head: str) -> str:
    """Where `head` left `base`; the empty tree when they share no history."""
    return git.try_text("merge-base", base, head) or EMPTY_TREE


@lru_cache(maxsize=256)
def touches(git: Git, base: str, head: str) -> tuple[Touch, ...]:
    """The lines of the base side that `head` changes since it left `base`; an insertion touches the line before it."""
    flags = ("-r", "-p", "--raw", "-z", "--text", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv")
    raw = git.run("diff-tree", *flags, fork(git, base, head), head)
    names, _, patch = raw.partition(b"\0\0")
    return tuple(_touches(_paths(names), patch))


def diff(git: Git, base: str, head: str) -> str:
    """What `head` changes since it left `base`, as a patch for people."""
    flags = ("-r", "-p", "--stat", "--text", "-M", "--no-ext-diff", "--no-textconv", "--no-color")
    return git.text("diff-tree", *flags, fork(git, base, head), head)


def commits(git: Git, base: str, head: str) -> tuple[str, ...]:
    """Object ids on `head` that are not on `base`, oldest first."""
    return tuple(git.text("rev-list", "--reverse", head, f"^{base}").split())


def _paths(names: bytes) -> list[str]:
    """The path of each patch to come. A change of type is shown as a removal and an addition."""
    fields = names.rstrip(b"\0").split(b"\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return [path.decode("utf-8", "surrogateescape") for meta, path in pairs for _ in range(1 + meta.endswith(b" T"))]


def _touches(paths: list[str], patch: bytes) -> list[Touch]:
    found, position = [], -1
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            position += 1
        elif hunk := HUNK.match(line):
            first, count = max(int(hunk[1]), 1), int(hunk[2] or 1)
            found.append(Touch(paths[position], first, first + max(count, 1) - 1))
    return found
