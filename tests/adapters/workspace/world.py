"""A repository of a person with a clone for sessions, and everything about it that counts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.workspace.workplace import Workspace
from ralph_mission.loop.model.state import Hat
from ralph_mission.loop.ports import SessionWork
from ralph_mission.loop.rules import scope
from tests.helpers import git

FILES = {
    "README.md": "# Sample\n",
    "src/a.py": "a = 1\n",
    "docs/guide.md": "guide\n",
    "run.sh": "true\n",
    ".gitignore": "build/\n",
}
BUILDER = Hat("builder", write_allowed=("src/**",))
WHO = ("-c", "user.name=Agent", "-c", "user.email=agent@example.org")


def opened(repo: Path, *checks: str, lists: tuple[str, ...] = (), no_agent_settings: bool = False) -> Workspace:
    """As a new process would."""
    return Workspace(
        Git.open(repo), repo.parent / "clone", checks, 60, lists=lambda: lists, no_agent_settings=no_agent_settings,
        shared=repo.parent / "ours",
    )  # fmt: skip  # one call


def state(repo: Path) -> dict[str, object]:
    """Everything that counts: files, index, refs, HEAD, what git obeys."""
    files = {
        place.relative_to(repo).as_posix(): seen(place)
        for place in sorted(repo.rglob("*"))
        if ".git" not in place.relative_to(repo).parts and (place.is_symlink() or not place.is_dir())
    }
    refs = git(repo, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    obeyed = {
        place.relative_to(repo).as_posix(): seen(place)
        for folder in ("hooks", "info")
        for place in (repo / ".git" / folder).rglob("*")
    }
    return {
        "files": files,
        "refs": refs,
        "obeyed": obeyed,
        "config": (repo / ".git/config").read_bytes(),
        "head": (repo / ".git/HEAD").read_text(),
        "index": git(repo, "ls-files", "--stage"),
        "dirty": git(repo, "status", "--porcelain", "--untracked-files=all"),
    }


def seen(place: Path) -> tuple[object, ...]:
    """What a path is: its kind, whether it runs, its bytes or target."""
    status = place.lstat()
    kind = stat.S_IFMT(status.st_mode)
    if place.is_symlink():
        return kind, os.readlink(place)
    return kind, status.st_mode & 0o111, place.read_bytes() if place.is_file() else b""


def after(workspace: Workspace, mark: str, hat: Hat = BUILDER) -> tuple[SessionWork, set[str]]:
    """What the engine does after a session; the paths that were told as undone."""
    work = workspace.changed(mark)
    outside = [change.path for change in scope.outside(hat, work.changes)]
    told = {*outside, *(change.path for change in work.foreign)}
    if outside:
        workspace.undo(mark, outside)
        work = workspace.changed(mark)
    return work, told


def by(repo: Path, *arguments: str) -> None:
    """A git command of the session."""
    git(repo, *WHO, *arguments)
