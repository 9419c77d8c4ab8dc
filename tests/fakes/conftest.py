"""A fake GitHub over a fresh bare repository with README.md on `main`, and a client with the usual token."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git, make_repo


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    source = make_repo(folder / "source")
    git(folder, "clone", "--quiet", "--bare", "--template=", str(source), "bare.git")
    return folder / "bare.git"


@pytest.fixture
def bare(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "bare.git"))


@pytest.fixture
def fake(bare: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(bare) as fake:
        yield fake


@pytest.fixture
def api(fake: FakeGitHub) -> Client:
    return Client(fake, fake.token())
