"""A place for `ralph work` on each forge, and hubs after their first cycle: it runs once, and tests begin there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.crash.snapshots import Snapshot
from tests.fakes.github.faults import Script
from tests.integration.at_work import FORGES, LOCAL_FIRST, Place
from tests.integration.hub import Hub, open_hub
from tests.integration.test_life import BUG, BUGS

First = tuple[Hub, Snapshot]


@pytest.fixture(scope="session")
def first_reviewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[First]:
    yield from _first(tmp_path_factory.mktemp("reviewed"))


@pytest.fixture(scope="session")
def first_buggy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[First]:
    yield from _first(tmp_path_factory.mktemp("buggy"), BUGS, BUG)


@pytest.fixture
def reviewed(first_reviewed: First) -> Iterator[Hub]:
    """One whose first mission is in review."""
    yield from _again(*first_reviewed)


@pytest.fixture
def buggy(first_buggy: First) -> Iterator[Hub]:
    """One with a proposal that needs a yes."""
    yield from _again(*first_buggy)


@pytest.fixture(params=LOCAL_FIRST)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty one on each forge, unless a module has its own."""
    with FORGES[request.param](tmp_path) as found:
        yield found


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """Where it makes no difference which forge it is: the quick one."""
    with FORGES["local"](tmp_path) as found:
        yield found


def _first(folder: Path, *world: Any) -> Iterator[First]:
    with open_hub(folder, *world) as made:
        made.cycle()
        yield made, Snapshot.of(made, "after a cycle")


def _again(made: Hub, snapshot: Snapshot) -> Iterator[Hub]:
    fake = made.fake
    for clone in made.folder.iterdir():
        if clone.name not in ("start", "server.git", "snapshots"):
            shutil.rmtree(clone)
    fake.script, fake.validate = Script(), True
    yield snapshot.restore(replace(made))
    unknown, fake.unknown[:] = [*fake.unknown], []
    assert not unknown, "asked of the fake GitHub, which does not know it"
