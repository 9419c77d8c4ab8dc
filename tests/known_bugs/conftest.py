"""One repository on a (fake) GitHub for all tests here, put back to where each of them begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.crash.snapshots import Snapshot
from tests.integration.hub import Hub, hub
from tests.integration.world import statuses


@dataclass(frozen=True)
class Town:
    """A hub, before anything has happened there and after the first cycle, which opened a pull."""

    harbour: Hub
    before: Snapshot
    after: Snapshot


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with hub(tmp_path_factory.mktemp("known bugs")) as harbour:
        harbour.fake.validate = False  # its own tests see to that
        before = Snapshot.of(harbour, "before")
        assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]
        yield Town(harbour, before, Snapshot.of(harbour, "after"))


@pytest.fixture
def fresh(town: Town) -> Hub:
    """Before the first cycle."""
    return town.before.restore(town.harbour)


@pytest.fixture
def opened(town: Town) -> Hub:
    """After it: issue, branch and pull are there, and wait for a review."""
    return town.after.restore(town.harbour)
