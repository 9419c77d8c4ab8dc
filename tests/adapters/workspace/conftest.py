"""A repository of a person, and the clone of it that sessions work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.workspace.workplace import Workspace
from tests.adapters.workspace.world import FILES, opened
from tests.helpers import commit, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    git(repo, "config", "user.name", "Mara")
    git(repo, "config", "user.email", "mara@example.org")
    git(repo, "branch", "other")
    git(repo, "tag", "v1")
    commit(repo, {"docs/guide.md": "guide 2\n"}, message="Second")
    return repo


@pytest.fixture
def workspace(repo: Path) -> Workspace:
    return opened(repo)


@pytest.fixture
def clone(workspace: Workspace) -> Path:
    return workspace.clone.folder
