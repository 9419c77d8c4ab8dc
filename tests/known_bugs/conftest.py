"""One repository on a (fake) GitHub for all tests here, put back to where each of them begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.crash.snapshots import Snapshot
from tests.integration.hub import Hub, open_hub
from tests.integration.world import statuses


@dataclass(frozen=True)
class HubSnapshots:
    """A hub, before anything has happened there and after the first cycle, which opened a pull."""

    hub: Hub
    before: Snapshot
    after: Snapshot


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubSnapshots]:
    with open_hub(tmp_path_factory.mktemp("known bugs")) as hub:
        hub.fake.validate = False  # its own tests see to that
        before = Snapshot.of(hub, "before")
        assert statuses(hub.cycle()[0]) == ["IN_REVIEW"]
        yield HubSnapshots(hub, before, Snapshot.of(hub, "after"))


@pytest.fixture
def fresh(town: HubSnapshots) -> Hub:
    """Before the first cycle."""
    return town.before.restore(town.hub)


@pytest.fixture
def opened(town: HubSnapshots) -> Hub:
    """After it: issue, branch and pull are there, and wait for a review."""
    return town.after.restore(town.hub)
