"""A local forge over a real repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git, Identity
from tests.contract.forge_world import WHEN
from tests.helpers import git, make_repo


@dataclass(frozen=True, slots=True)
class LocalWorld:
    """The contract's `World` for the local forge."""

    forge: LocalForge
    git: Git

    @staticmethod
    def at(path: Path) -> LocalWorld:
        """The forge of the repository that `path` is in."""
        repository = Git.open(path)
        return LocalWorld(LocalForge(repository), repository)

    def human(self, login: str) -> Person:
        """Somebody at the keyboard."""
        return Person(self.forge, login)

    def push(self, branch: str, files: Mapping[str, bytes | None]) -> str:
        """A commit on a branch by plumbing, with nothing checked out."""
        here = self.git.resolve(f"refs/heads/{branch}")
        base = here or self.git.resolve("refs/heads/main")
        tree = self.git.write_tree(
            base, {path: ("100644", body) if body is not None else None for path, body in files.items()}
        )
        sha = self.git.commit_tree(tree, (base,), f"Push to {branch}", WHEN, Identity("Mara", "mara@example.org"))
        assert self.git.move_ref(f"refs/heads/{branch}", sha, here)
        return sha


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with nothing but README.md on main, which is not checked out."""
    path = make_repo(tmp_path / "repo")
    git(path, "switch", "--quiet", "--detach")
    return path


@pytest.fixture
def world(repo: Path) -> LocalWorld:
    """Its local forge."""
    return LocalWorld.at(repo)
