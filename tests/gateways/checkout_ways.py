"""Ways in which a session changes what its hat may not write, each with the paths that are told as undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.gateways.checkout_world import WHO, by
from tests.helpers import commit, git, make_repo


def committed(repo: Path) -> None:
    commit(repo, {"docs/guide.md": "mine\n"}, author="Agent <agent@example.org>")


def uncommitted(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")


def untracked(repo: Path) -> None:
    (repo / "docs/new").mkdir()
    (repo / "docs/new/x.md").write_text("mine\n")


def deleted(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()


def renamed(repo: Path) -> None:
    by(repo, "mv", "docs/guide.md", "docs/other.md")


def renamed_into_scope(repo: Path) -> None:
    (repo / "docs/guide.md").rename(repo / "src/guide.md")


def symlinked(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()
    (repo / "docs/guide.md").symlink_to("../src/a.py")


def folder_symlinked(repo: Path) -> None:
    (repo / "docs").rename(repo.parent / "elsewhere")
    (repo / "docs").symlink_to(repo.parent / "elsewhere")
    (repo / "docs/guide.md").write_text("beyond the link\n")


def folder_becomes_file(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()
    (repo / "docs").rmdir()
    (repo / "docs").write_text("a file\n")


def file_becomes_folder(repo: Path) -> None:
    (repo / "README.md").unlink()
    (repo / "README.md").mkdir()
    (repo / "README.md/x").write_text("x\n")


def special(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()
    os.mkfifo(repo / "docs/guide.md")


def executable(repo: Path) -> None:
    (repo / "run.sh").chmod(0o755)


def hook(repo: Path) -> None:
    place = repo / ".git/hooks/pre-commit"
    place.write_text(f"#!/bin/sh\ntouch {repo.parent}/hooked\n")
    place.chmod(0o755)


def hooks_linked(repo: Path) -> None:
    (repo / ".git/hooks").rmdir()
    (repo.parent / "evil").mkdir()
    (repo.parent / "evil/post-commit").write_text("x")
    (repo / ".git/hooks").symlink_to(repo.parent / "evil")


def config(repo: Path) -> None:
    git(repo, "config", "core.fsmonitor", f"touch {repo.parent}/monitored")
    git(repo, "config", "filter.evil.clean", f"touch {repo.parent}/filtered")


def attributes(repo: Path) -> None:
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("* filter=evil\n")


def exclude(repo: Path) -> None:
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("*\n")
    (repo / "docs/hidden.md").write_text("x\n")


def ignored(repo: Path) -> None:
    (repo / ".gitignore").write_text("build/\nsecret/\n")
    (repo / "secret").mkdir()
    (repo / "secret/x").write_text("x\n")


def ignored_by_itself(repo: Path) -> None:
    (repo / "docs/.gitignore").write_text("*\n")
    (repo / "docs/hidden.md").write_text("x\n")


def other_branch(repo: Path) -> None:
    by(repo, "update-ref", "refs/heads/other", commit_object(repo))


def new_branch(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "-b", "feature")
    committed(repo)


def branch_renamed(repo: Path) -> None:
    by(repo, "branch", "-m", "main", "main/x")


def branch_deleted(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "--detach")
    by(repo, "branch", "--quiet", "-D", "main", "other")


def detached(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "--detach")
    committed(repo)


def tag(repo: Path) -> None:
    by(repo, "tag", "v2")
    by(repo, "tag", "-f", "v1", commit_object(repo))


def stashed(repo: Path) -> None:
    uncommitted(repo)
    by(repo, "stash")


def amended(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")
    by(repo, "commit", "--quiet", "--all", "--amend", "--message", "Amended")


def reset(repo: Path) -> None:
    by(repo, "reset", "--quiet", "--hard", "HEAD~1")


def staged_only(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")
    by(repo, "add", "docs/guide.md")
    (repo / "docs/guide.md").write_text("guide 2\n")


def nested(repo: Path) -> None:
    make_repo(repo / "src/inner", {"x.py": "x\n"})
    make_repo(repo / "vendor", {"x.py": "x\n"})


def newline(repo: Path) -> None:
    (repo / "docs/a\nb.md").write_text("x\n")


def unicode(repo: Path) -> None:
    (repo / "docs/na\u00efve.md").write_text("x\n")
    (repo / "docs/nai\u0308ve.md").write_text("x\n")
    (repo / "DOCS").mkdir()
    (repo / "DOCS/guide.md").write_text("x\n")


def not_utf8(repo: Path) -> None:
    with open(os.fsencode(repo) + b"/docs/\xff", "wb") as file:
        file.write(b"x")


def assumed_unchanged(repo: Path) -> None:
    by(repo, "update-index", "--assume-unchanged", "docs/guide.md")
    (repo / "docs/guide.md").write_text("mine\n")
    by(repo, "update-index", "--skip-worktree", "README.md")
    (repo / "README.md").write_text("mine\n")


def same_size_and_time(repo: Path) -> None:
    place = repo / "docs/guide.md"
    before = place.stat()
    place.write_text("GUIDE 2\n")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))


def merging(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit(repo, {"docs/guide.md": "side\n"})
    by(repo, "checkout", "--quiet", "main")
    with pytest.raises(AssertionError):
        by(repo, "merge", "side")


def broken_index(repo: Path) -> None:
    (repo / ".git/index").write_bytes(b"nonsense")
    (repo / "docs/guide.md").write_text("mine\n")


def locked(repo: Path) -> None:
    (repo / ".git/index.lock").touch()


def commit_object(repo: Path) -> str:
    return git(repo, *WHO, "commit-tree", "HEAD^{tree}", "-m", "x")


GUIDE = {"docs/guide.md"}
WAYS = {
    committed: GUIDE,
    uncommitted: GUIDE,
    untracked: {"docs/new/x.md"},
    deleted: GUIDE,
    renamed: {"docs/guide.md", "docs/other.md"},
    renamed_into_scope: GUIDE,
    symlinked: GUIDE,
    folder_symlinked: {"docs", "docs/guide.md"},
    folder_becomes_file: {"docs", "docs/guide.md"},
    file_becomes_folder: {"README.md", "README.md/x"},
    special: GUIDE,
    executable: {"run.sh"},
    hook: {".git/hooks/pre-commit"},
    hooks_linked: {".git/hooks"},
    config: {".git/config"},
    attributes: {".git/info/attributes"},
    exclude: {".git/info/exclude", "docs/hidden.md"},
    ignored: {".gitignore", "secret/x"},
    ignored_by_itself: {"docs/.gitignore", "docs/hidden.md"},
    other_branch: {"refs/heads/other"},
    new_branch: {"HEAD", "refs/heads/feature", "docs/guide.md"},
    branch_renamed: {"HEAD", "refs/heads/main", "refs/heads/main/x"},
    branch_deleted: {"HEAD", "refs/heads/main", "refs/heads/other"},
    detached: {"HEAD", "docs/guide.md"},
    tag: {"refs/tags/v1", "refs/tags/v2"},
    stashed: {"refs/stash"},
    amended: {"refs/heads/main", "docs/guide.md"},
    reset: {"refs/heads/main", "docs/guide.md"},
    staged_only: GUIDE,
    nested: {"src/inner/.git", "vendor/.git", "vendor/x.py"},
    newline: {"docs/a\nb.md"},
    unicode: {"docs/na\u00efve.md", "docs/nai\u0308ve.md", "DOCS/guide.md"},
    not_utf8: {"docs/\udcff"},
    assumed_unchanged: {"docs/guide.md", "README.md"},
    same_size_and_time: GUIDE,
    merging: {".git/MERGE_HEAD", "refs/heads/side", "docs/guide.md"},
    broken_index: GUIDE,
    locked: {".git/index.lock"},
}
