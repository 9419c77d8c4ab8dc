"""A separate work tree for foreign code: no remotes, hooks, credentials, filters or user's config.

Objects are borrowed from the repository it comes from; only contents are read back, never its `.git`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.git.patches import from_work_tree
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.safety.paths import unsafe_path

# The highest layer of attributes: whatever a tree's own .gitattributes ask for, bytes stay as they are.
INERT = "* -text -ident !eol !filter !working-tree-encoding\n"


@contextmanager
def clone(
    git: Git,
    commit: str,
    scratch: Path,
    *,
    paths: Iterable[str] | None = None,
    changes: Sequence[FileChange] = (),
) -> Iterator[Path]:
    """A folder below `scratch` with the files of `commit`, all or only `paths`; gone afterwards.

    HEAD is detached at the commit; `changes` stand in its index and in the files. Submodules are
    empty folders, contents are those of the blobs. Raises UserError when it cannot be checked out.
    """
    folder = Path(tempfile.mkdtemp(prefix="workshop-", dir=scratch)).resolve()
    try:
        _check_out(git, commit, folder, paths, changes)
        yield folder
    finally:
        _remove(folder)


def check_out(git: Git, commit: str, folder: Path) -> Git:
    """The same at a path of the caller's, and it stays: the repository of the new clone. Half of one is never there.

    Raises UserError when it cannot be checked out.
    """
    with clone(git, commit, folder.parent) as made:
        made.rename(folder)
    return Git(folder / ".git", folder / ".git", folder)


def changed_since(folder: Path, commit: str, git: Git) -> Patch:
    """What really differs between `folder` and the tree of `commit`, read by content.

    New files count unless ignored. The clone's own `.git`, which foreign code could have changed,
    is never asked: `git` is the repository that was cloned. Raises UserError as `patches` does.
    """
    with tempfile.TemporaryDirectory(prefix="ralph-witness-") as place:
        witness = _borrowing(git, Git(Path(place), Path(place), folder))
        witness.run("update-ref", "--no-deref", "HEAD", commit)
        witness.run("read-tree", commit)
        return from_work_tree(witness)


def _check_out(git: Git, commit: str, folder: Path, paths: Iterable[str] | None, changes: Sequence[FileChange]) -> None:
    try:
        fresh = _borrowing(git, Git(folder / ".git", folder / ".git", folder))
        fresh.run("update-ref", "--no-deref", "HEAD", commit)
        _materialise(fresh, fresh.write_tree(commit, _entries(changes)), paths)
    except GitError as error:
        what = f"commit {commit[:12]} cannot be checked out: {error.detail.strip()}"
        raise UserError(what, error.next_step("make sure that the repository is complete (git fsck)")) from None


def _entries(changes: Sequence[FileChange]) -> dict[str, tuple[str, bytes] | None]:
    # git would refuse some of these and take others: each is named here with what is wrong with it.
    for change in changes:
        if why := unsafe_path(change.path):
            raise UserError(f"{change.path!r} {why}", "leave it out of the change")
    return {change.path: None if change.new is None else (change.new_mode, change.new) for change in changes}


def _borrowing(git: Git, fresh: Git) -> Git:
    fresh.run("init", "--quiet", "--template=", f"--object-format={git.text('rev-parse', '--show-object-format')}")
    (fresh.git_dir / "info").mkdir(exist_ok=True)
    (fresh.git_dir / "info/attributes").write_text(INERT)
    (fresh.git_dir / "objects/info/alternates").write_bytes(os.fsencode(git.common_dir / "objects") + b"\n")
    if (git.common_dir / "shallow").exists():
        shutil.copyfile(git.common_dir / "shallow", fresh.git_dir / "shallow")
    fresh.run("config", "credential.helper", "")  # an empty one forgets the helpers of the system's configuration
    return fresh


def _materialise(fresh: Git, tree: str, paths: Iterable[str] | None) -> None:
    # git itself refuses trees with paths such as `../x` or `.git/config`, and never writes through a link.
    fresh.run("read-tree", tree)
    if paths is None:
        fresh.run("checkout-index", "--quiet", "--all", "--index")
    else:
        names = b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)
        fresh.run("checkout-index", "--quiet", "--index", "-z", "--stdin", stdin=names)


def _remove(folder: Path) -> None:
    # Foreign code may have left folders that nobody may enter.
    for root, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(root, name)):
                os.chmod(os.path.join(root, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)
