"""A repository of a person, and the checkout of a loop in it; modules with another one make their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.gateways.checkout import Checkout
from tests.gateways.checkout_world import FILES, opened
from tests.helpers import git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    git(repo, "config", "user.name", "Mara")
    git(repo, "config", "user.email", "mara@example.org")
    git(repo, "branch", "other")
    git(repo, "tag", "v1")
    (repo / ".git/hooks").mkdir(exist_ok=True)
    return repo


@pytest.fixture
def checkout(repo: Path, tmp_path: Path) -> Checkout:
    return opened(repo, tmp_path)
