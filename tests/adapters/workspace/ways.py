"""Ways in which a session leaves its scope or harms its repository, each with the paths that are told as undone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.adapters.workspace.world import WHO, by
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
    place.parent.mkdir()
    place.write_text(f"#!/bin/sh\ntouch {repo.parent}/hooked\n")
    place.chmod(0o755)


def hooks_linked(repo: Path) -> None:
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


def filtered(repo: Path) -> None:
    config(repo)
    (repo / ".gitattributes").write_text("* filter=evil\n")


def head_a_pipe(repo: Path) -> None:
    (repo / ".git/HEAD").unlink()
    os.mkfifo(repo / ".git/HEAD")


def config_broken(repo: Path) -> None:
    (repo / ".git/config").write_text("[core")


def repository_gone(repo: Path) -> None:
    shutil.rmtree(repo / ".git")


def repository_a_link(repo: Path) -> None:
    shutil.rmtree(repo / ".git")
    (repo / ".git").symlink_to(repo.parent / "repo/.git")


def repository_of_the_user(repo: Path) -> None:
    shutil.rmtree(repo / ".git")
    (repo / ".git").write_text(f"gitdir: {repo.parent}/nowhere\n")


def objects_elsewhere(repo: Path) -> None:
    (repo / ".git/objects/info/alternates").unlink()
    os.mkfifo(repo / ".git/objects/info/alternates")


def pipes_that_git_reads(repo: Path) -> None:
    for name in (".gitattributes", "docs/.gitignore", "src/.gitattributes"):
        os.mkfifo(repo / name)


def nested_with_a_pipe(repo: Path) -> None:
    (repo / "docs/inner/.git").mkdir(parents=True)
    os.mkfifo(repo / "docs/inner/.git/HEAD")
    (repo / "docs/inner/x").write_text("x\n")


def file_becomes_repository(repo: Path) -> None:
    (repo / "README.md").unlink()
    (repo / "README.md/.git").mkdir(parents=True)
    os.mkfifo(repo / "README.md/.git/HEAD")


def folder_locked(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")
    (repo / "docs").chmod(0o000)


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
    hook: set(),
    hooks_linked: set(),
    config: set(),
    attributes: set(),
    filtered: {".gitattributes"},
    exclude: {"docs/hidden.md"},
    ignored: {".gitignore", "secret/x"},
    ignored_by_itself: {"docs/.gitignore", "docs/hidden.md"},
    other_branch: set(),
    new_branch: GUIDE,
    branch_renamed: set(),
    branch_deleted: set(),
    detached: GUIDE,
    tag: set(),
    stashed: set(),
    amended: GUIDE,
    reset: GUIDE,
    staged_only: set(),
    nested: {"src/inner/.git", "vendor/.git", "vendor/x.py"},
    newline: {"docs/a\nb.md"},
    unicode: {"docs/na\u00efve.md", "docs/nai\u0308ve.md", "DOCS/guide.md"},
    not_utf8: {"docs/\udcff"},
    assumed_unchanged: {"docs/guide.md", "README.md"},
    same_size_and_time: GUIDE,
    merging: GUIDE,
    broken_index: GUIDE,
    locked: set(),
    head_a_pipe: set(),
    config_broken: set(),
    repository_gone: set(),
    repository_a_link: set(),
    repository_of_the_user: set(),
    objects_elsewhere: set(),
    pipes_that_git_reads: {".gitattributes", "docs/.gitignore"},
    nested_with_a_pipe: {"docs/inner/.git", "docs/inner/x"},
    file_becomes_repository: {"README.md", "README.md/.git"},
    folder_locked: GUIDE,
}
