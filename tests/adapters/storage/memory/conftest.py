"""A repository with one commit, and a store that has kept one cycle in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.mission.model.ledger import MemorySnapshot
from tests.adapters.storage.memory.making import Intruder, batch, branch_store
from tests.helpers import make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def store(repo: Path) -> BranchStore:
    return branch_store(repo)


@pytest.fixture
def past(store: BranchStore) -> MemorySnapshot:
    return store.commit(batch(), None)


@pytest.fixture
def intruder(repo: Path) -> Intruder:
    return Intruder(repo)
