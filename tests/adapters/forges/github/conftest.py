"""A GitHub forge in a clone, before a fake GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.forges.github_world import GitHubWorld, github


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubWorld]:
    """Its forge as GitHub Actions' own account."""
    with github(tmp_path) as made:
        yield made
