"""Git's data about branches and pull requests. Read-only.

Work trees with a branch checked out: they move with it, or it does not move.

Only a tree without uncommitted changes moves, untracked and ignored files are never overwritten, and neither hooks nor
filters run.

Branches that move by compare-and-swap, and their pull requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ralph_mission.adapters.forges import ForgeRefused, commits, refused_push
from ralph_mission.adapters.forges.commits import is_ancestor
from ralph_mission.adapters.forges.local.documents import LocalThread
from ralph_mission.adapters.forges.local.threads import Sides, ThreadStore, close_thread, mark_merged
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import PushBranch
from ralph_mission.mission.model.forge import Actor, Branch

HEADS = "refs/heads/"
ORIGIN = "refs/remotes/origin/"


def tips(git: Git) -> dict[str, str]:
    """Every local branch and its commit, in one git call."""
    listed = git.text("for-each-ref", "--format=%(objectname) %(refname)", HEADS)
    pairs = (line.split(" ", 1) for line in listed.split("\n") if line)
    return {ref.removeprefix(HEADS): oid for oid, ref in pairs}


def default_branch(git: Git, known: Mapping[str, str]) -> Branch:
    """Origin's default, else main, master, the only one, HEAD's; `known`: as `tips`. Raises UserError."""
    origin = git.try_text("symbolic-ref", "--quiet", f"{ORIGIN}HEAD").removeprefix(ORIGIN)
    people = [name for name in known if name != "ralph-memory" and not name.startswith("ralph/")]
    candidates = (origin, "main", "master", people[0] if len(people) == 1 else "")
    name = next((name for name in candidates if name in known), "") or _current_branch(git)
    if name in known:
        return Branch(name, known[name])
    if people:
        raise UserError("it is not clear which branch is the default one", "check one out: git switch BRANCH")
    raise UserError("the repository has no commits", "commit your files, then run again")


def refuse_blocked_namespace(known: Mapping[str, str]) -> None:
    """Git holds no branch `ralph/…` beside one named `ralph`; `known`: as `tips`. Raises UserError."""
    if "ralph" in known:
        what = "the branch ralph leaves no room for Ralph's own, which are all named ralph/…"
        raise UserError(what, "rename it: git branch -m ralph ANOTHER-NAME", usage=True)


def published_default(git: Git) -> Branch:
    """The published default branch: origin's head, else `default_branch`, but never just the checked-out one.

    Raises UserError."""
    if (name := git.try_text("symbolic-ref", "--quiet", f"{ORIGIN}HEAD")) and (commit := git.resolve(name)):
        return Branch(name.removeprefix(ORIGIN), commit)
    known = tips(git)
    people = [name for name in known if name != "ralph-memory" and not name.startswith("ralph/")]
    if len(people) > 1 and not {"main", "master"} & known.keys():
        what = f"it is not clear which of the branches {', '.join(sorted(people)[:5])} is the default one"
        raise UserError(what, "git remote set-head origin --auto, or name one main", usage=True)
    named = next((name for name in ("main", "master") if name in known), "")
    commit = git.resolve(f"{ORIGIN}{named}") if named else ""
    return Branch(named, commit) if commit else default_branch(git, known)


def checked_out_at(git: Git, branch: str) -> str:
    """The work tree with a branch checked out, or ""."""
    there = (entry for entry in _entries(git) if f"branch {HEADS}{branch}" in entry and not _is_gone(entry))
    return next((entry[0].removeprefix("worktree ") for entry in there), "")


def _current_branch(git: Git) -> str:
    return git.try_text("symbolic-ref", "--quiet", "HEAD").removeprefix(HEADS)


def settle_thread(git: Git, thread: LocalThread, known: Mapping[str, str]) -> LocalThread:
    """The pull request's real state: merged if its commits are on its base, by any means."""
    base = known.get(thread.base, "")
    if thread.state != "open" or not base:
        return thread
    if thread.merging and is_ancestor(git, thread.merging, base):
        return mark_merged(thread, thread.head_sha, thread.merging, thread.merged_by, thread.updated_at)
    head = known.get(thread.head, thread.head_sha)
    if is_ancestor(git, thread.head_sha, base) and is_ancestor(git, head, base):
        return mark_merged(thread, head, head, None, thread.updated_at)
    return thread


def head_of(thread: LocalThread, known: Mapping[str, str]) -> str:
    """The head's commit, now or when the pull request was closed; "" if an open one lost its branch."""
    return known.get(thread.head, "") if thread.state == "open" else thread.head_sha


def base_of(git: Git, thread: LocalThread, known: Mapping[str, str]) -> str:
    """The commit to compare the head with: before the merge, if any."""
    before = git.resolve(f"{thread.merged_sha}^1") if thread.merged_sha not in ("", thread.head_sha) else ""
    return before or known.get(thread.base, "")


BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")


def of_branch(git: Git, branch: str) -> tuple[Git, ...]:
    """The work trees with `branch` checked out. Raises ForgeRefused if one is unreachable."""
    heading = f"branch refs/heads/{branch}"
    return tuple(_open(git, entry) for entry in _entries(git) if heading in entry and not _is_gone(entry))


@contextmanager
def move_trees(trees: Sequence[Git], old: str, new: str) -> Iterator[None]:
    """Move the trees from commit `old` to `new`, and back if the caller fails. Either all may move or none does."""
    trees = [_without_filters(tree) for tree in trees]
    for tree in trees:
        _require_movable(tree, old, new)
    done: list[Git] = []
    try:
        for tree in trees:
            _move(tree, old, new)
            done.append(tree)
        yield
    except BaseException:
        for tree in done:
            with suppress(GitError, ForgeRefused):
                _move(tree, new, old)
        raise


def take_back(trees: Sequence[Git], old: str, new: str) -> None:
    """Undo a move to `new` if the branch stayed at `old`; trees with other contents are left alone."""
    for tree in map(_without_filters, trees):
        with suppress(GitError, ForgeRefused):
            if tree.text("write-tree") == tree.text("rev-parse", f"{new}^{{tree}}"):
                _move(tree, new, old)


def _entries(git: Git) -> list[list[str]]:
    listed = git.text("worktree", "list", "--porcelain", "-z")
    return [entry.split("\0") for entry in listed.split("\0\0") if entry]


def _is_gone(entry: list[str]) -> bool:
    return any(line.split(" ")[0] == "prunable" for line in entry)


def _open(git: Git, entry: list[str]) -> Git:
    place = Path(entry[0].removeprefix("worktree "))
    with suppress(UserError):
        tree = git if place in (git.work_tree, git.git_dir) else Git.open(place)  # its git folder may be elsewhere
        if tree.work_tree and tree.common_dir == git.common_dir:
            return tree
    raise ForgeRefused(f"the work tree {place} cannot be reached", "bring it back, or run: git worktree prune")


def _require_movable(tree: Git, old: str, new: str) -> None:
    where = tree.work_tree
    if any((tree.git_dir / name).exists() for name in BUSY):
        raise ForgeRefused(f"{where} is in the middle of a merge or rebase", "finish or abort it, then merge again")
    if dirty := _dirty(tree):
        raise ForgeRefused(f"{where} has uncommitted changes ({dirty})", "commit or stash them, then merge again")
    if foreign := _in_the_way(tree, old, new):
        raise ForgeRefused(f"the untracked file {foreign} in {where} is in the way", "move it away, then merge again")
    if filtered := _filtered_path(tree, old, new):
        raise ForgeRefused(
            f"{filtered} needs a git filter, which is not run here", f"merge by hand in {where}: git merge"
        )


def _dirty(tree: Git) -> str:
    """A path with uncommitted changes, or ""."""
    with suppress(GitError):  # fails if something changed; the next call finds it
        tree.run("update-index", "-q", "--refresh")
    raw = tree.run("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=dirty")
    return os.fsdecode(raw.split(b"\0")[0][3:])


def _in_the_way(tree: Git, old: str, new: str) -> str:
    """An untracked file that the move would overwrite, or "". Git itself overwrites ignored ones."""
    assert tree.work_tree
    for path in tree.paths_between(old, new, "--diff-filter=A"):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            piece = "/".join(parts[:depth])
            if foreign := _foreign(tree, tree.work_tree / piece, piece, last=depth == len(parts)):
                return foreign
    return ""


def _foreign(tree: Git, place: Path, piece: str, last: bool) -> str:
    if not os.path.lexists(place):
        return ""
    if not place.is_dir() or place.is_symlink():
        return "" if _tracked_paths(tree, piece) else piece
    if not last:
        return ""
    tracked = set(_tracked_paths(tree, piece))
    inside = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
    relative = (os.path.relpath(path, tree.work_tree) for path in inside)
    return next((path for path in relative if path not in tracked), "")


def _tracked_paths(tree: Git, path: str) -> list[str]:
    return tree.text("ls-files", "-z", "--", path).split("\0")[:-1]


def _filtered_path(tree: Git, old: str, new: str) -> str:
    """A path whose content needs a filter (large files, encryption), or ""."""
    paths = b"".join(os.fsencode(path) + b"\0" for path in tree.paths_between(old, new, "--diff-filter=d"))
    with tree.scratch_index() as env:
        tree.run("read-tree", new, env=env)
        raw = tree.run("check-attr", "--cached", "-z", "--stdin", "filter", stdin=paths, env=env)
    fields = raw.split(b"\0")
    verdicts = zip(fields[::3], fields[2::3], strict=False)
    return next((os.fsdecode(path) for path, value in verdicts if value not in (b"unspecified", b"unset")), "")


def _move(tree: Git, old: str, new: str) -> None:
    try:
        tree.run("read-tree", "-m", "-u", old, new)
    except GitError as error:
        raise ForgeRefused(
            f"{tree.work_tree}: {_last_line(error.detail)}", "put that right, then merge again"
        ) from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "git could not update the work tree"


def _without_filters(tree: Git) -> Git:
    """The same work tree without its configured filter commands."""
    commands = r"^filter\..*\.(clean|smudge|process|required)$"
    keys = tree.try_text("config", "--name-only", "-z", "--get-regexp", commands)
    pins = (f"{key}={'false' if key.endswith('.required') else ''}" for key in keys.split("\0") if key)
    return replace(tree, extra=(*tree.extra, *pins))


def push(git: Git, effect: PushBranch, default: str) -> str:
    """Move the branch to its new commit, which is returned. Raises ForgeRefused, also if it is at another commit."""
    sha = commits.commit(git, effect, default)
    try:
        moved = git.move_ref(HEADS + effect.branch, sha, effect.onto)
    except GitError as error:
        raise ForgeRefused(f"git cannot move {effect.branch}: {error.detail.strip()}") from None
    if not moved and git.resolve(HEADS + effect.branch) != sha:
        raise refused_push(effect)
    return sha


def sides(git: Git, store: ThreadStore, head: str, base: str) -> Sides:
    """A new pull request's sides. Raises ForgeRefused if one is missing, has no new commits, or ever had a pull
    request."""
    known = tips(git)
    for name in (head, base):
        if name not in known:
            raise ForgeRefused(f"there is no branch {name}")
    for thread in store.threads("pulls"):
        if thread.head == head:
            raise ForgeRefused(f"pull request #{thread.number} by {thread.author.login} already has {head}")
    if is_ancestor(git, known[head], known[base]):
        raise ForgeRefused(f"{head} has no commits that {base} lacks")
    return head, base, known[head]


def close_pull(git: Git, thread: LocalThread, actor: Actor, now: datetime) -> LocalThread:
    """Close the pull request without a merge, recording its present head. Raises ForgeRefused if it is merged."""
    known = tips(git)
    thread = settle_thread(git, thread, known)
    if thread.state == "merged":
        raise ForgeRefused(f"pull request #{thread.number} is merged")
    return replace(close_thread(thread, actor, "", now), head_sha=head_of(thread, known) or thread.head_sha)
