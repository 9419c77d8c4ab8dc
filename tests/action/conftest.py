"""A warm runner, a cold one, and a repository on a GitHub of loopback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.action.runner import REPOSITORY, Runner, release
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git, make_repo

FILES = {"README.md": "# Sample\n\nThis is teh documentation, and it recieves little care.\n"}


@pytest.fixture(scope="session")
def action(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The action as a runner downloads it."""
    return release(tmp_path_factory.mktemp("action"))


@pytest.fixture
def cold(action: Path, tmp_path: Path) -> Runner:
    """A runner that never saw the action."""
    (tmp_path / "runner").mkdir()
    return Runner(tmp_path / "runner", action)


@pytest.fixture
def runner(cold: Runner) -> Runner:
    """A runner that ran the action before."""
    cold.seed()
    return cold


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    """GitHub on loopback, with a repository that has something to correct."""
    with serving(tmp_path, FILES) as fake:
        yield fake


@contextmanager
def serving(folder: Path, files: Mapping[str, str], repository: str = REPOSITORY) -> Iterator[FakeGitHub]:
    """GitHub on loopback, with a repository of these files."""
    source = make_repo(folder / "source", files)
    git(source, "clone", "--quiet", "--bare", str(source), str(folder / "bare.git"))
    with FakeGitHub(folder / "bare.git", repository) as fake:
        yield fake
