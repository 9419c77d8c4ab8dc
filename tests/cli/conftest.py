"""What tests stand on: a GitHub where nothing is wrong, seen by a job and by its owner; how Ralph was installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.github.reading import LABELS
from tests.adapters.forges.github_world import GitHubWorld
from tests.adapters.forges.github_world import github as github_world
from tests.cli.doctor_place import Place
from tests.cli.init_place import SHA, install


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubWorld]:
    with github_world(tmp_path) as made:
        made.fake.workflow(".github/workflows/ralph-loop.yml")
        for name in LABELS:
            made.fake.world.label(name)
        yield made


@pytest.fixture
def here(world: GitHubWorld) -> Place:
    return Place(world.fake, world.token)


@pytest.fixture
def owner(world: GitHubWorld) -> Place:
    """As a person who may see every setting."""
    return Place(world.fake, world.fake.token(world.fake.owner))


@pytest.fixture
def known_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pip had installed a commit on GitHub."""
    install(monkeypatch, f'{{"url": "https://github.com/mara/ralph_mission", "vcs_info": {{"commit_id": "{SHA}"}}}}')


@pytest.fixture
def unknown_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it came from a package or an archive: nobody can tell the commit."""
    install(monkeypatch, None)
