from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.loop.model.state import CheckoutState
from tests.adapters.storage.loop.run_stores import NOON, STANDING, Make
from tests.helpers import make_repo


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "shop")


@pytest.fixture
def store_at(root: Path) -> Make:
    def make(
        tree: Callable[[], CheckoutState] = lambda: STANDING, owner: str = "", go_on: bool = False
    ) -> FileRunStore:
        return FileRunStore(root, root / ".git", tree, lambda: NOON, owner=owner, go_on=go_on)

    return make
