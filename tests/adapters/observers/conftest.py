"""What the observers' tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.observers.forge_world import World
from tests.adapters.observers.place import Place
from tests.helpers import make_repo


@pytest.fixture
def place(tmp_path: Path) -> Place:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Place(make_repo(tmp_path / "repo"), scratch)


@pytest.fixture
def world(place: Place) -> World:
    return World(place)
