"""A repository of a person, and the clone of it that sessions work in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.workspace.workplace import Workspace
from tests.adapters.workspace.world import FILES, opened
from tests.helpers import commit, git, make_repo


@pytest.fixture(scope="session")
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: to copy it takes less than to make it."""
    repo = make_repo(tmp_path_factory.mktemp("person") / "repo", FILES)
    git(repo, "config", "user.name", "Mara")
    git(repo, "config", "user.email", "mara@example.org")
    git(repo, "branch", "other")
    git(repo, "tag", "v1")
    commit(repo, {"docs/guide.md": "guide 2\n"}, message="Second")
    return repo


@pytest.fixture
def repo(_shop: Path, tmp_path: Path) -> Path:
    repo = Path(shutil.copytree(_shop, tmp_path / "repo", symlinks=True))
    git(repo, "update-index", "--refresh")
    return repo


@pytest.fixture
def workspace(repo: Path) -> Workspace:
    return opened(repo)


@pytest.fixture
def clone(workspace: Workspace) -> Path:
    return workspace.clone.folder
