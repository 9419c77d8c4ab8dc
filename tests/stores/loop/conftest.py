from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.loop.model import CheckoutState
from ralph_mission.stores.loop.desk import FileRunStore, Habits
from tests.helpers import make_repo
from tests.stores.loop.run_stores import NOON, STANDING, USUAL, Make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "shop")


@pytest.fixture
def desk_at(root: Path) -> Make:
    def make(
        habits: Habits = USUAL, tree: Callable[[], CheckoutState] = lambda: STANDING, owner: str = ""
    ) -> FileRunStore:
        return FileRunStore(root, root / ".git", tree, lambda: NOON, habits, owner=owner)

    return make
