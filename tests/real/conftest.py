"""A GitHub forge before the emulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.github import GitHubForge, connect
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.adapters.sandbox.isolation import Level
from tests.adapters.forges.github_world import bare_repository, clone_of
from tests.fakes.github.server import FakeGitHub
from tests.integration.isolation_attacks import level_or_skip, place
from tests.real.emulator import Emulator, Person, may_push, running


@dataclass(frozen=True, slots=True)
class EmulatedWorld:
    """The contract's `World`: the emulator's API, and the fake's git, since the emulator serves none."""

    emulator: Emulator
    repository: FakeGitHub
    git: Git
    forge: GitHubForge

    def human(self, login: str) -> Person:
        """Somebody with write access."""
        return self.emulator.person(login)

    def push(self, branch: str, files: Mapping[str, bytes | None]) -> str:
        """Somebody's commit on top of a branch. The emulator does not hear of it."""
        return self.repository.push(branch, files)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[EmulatedWorld]:
    """A forge before an emulator that has just been started: nothing is left of the test before."""
    bare = bare_repository(tmp_path)
    with FakeGitHub(bare) as repository:
        token = may_push(repository)
        with running(tmp_path, token) as emulator:
            place = RepositoryPlace(emulator.repository, emulator.url, repository.url, token)
            clone = Git.open(clone_of(bare, tmp_path / "clone"))
            forge = connect(clone, place, sleep=lambda seconds: None, pace=0, timeout=10)
            yield EmulatedWorld(emulator, repository, Git.open(bare), forge)


@pytest.fixture(params=["env", "bwrap"])
def level(request: pytest.FixtureRequest) -> Level:
    """Each level that can be had here."""
    return level_or_skip(request.param)


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """On a disk: Codex gives its commands a `/dev` of their own, so that in `/dev/shm` they would see nothing of it."""
    with place("/tmp") as made:
        yield made.root
