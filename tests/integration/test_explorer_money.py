"""What an observer's model may cost is set aside in memory before it is asked, and counted once it has answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ralph_mission.app.cycle import App
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleReport
from ralph_mission.mission.model.mission import Observation, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from tests.integration.world import World, world


@dataclass
class Reader:
    """An observer that asks a model while there is something to read, and tells what memory said then."""

    memory: Callable[[], float]
    left: bool = True
    dies: bool = False
    seen: list[tuple[float, float]] = field(default_factory=list)
    name: str = "explore"

    def asks(self, context: ObservationContext) -> bool:
        return self.left

    def observe(self, context: ObservationContext) -> Observation:
        self.seen.append((context.usd, self.memory()))
        if self.dies:
            raise RuntimeError("nobody knows what it has cost")
        return Observation(self.name, "ok", usage=Usage(1, cost_usd=0.25 if context.usd else 0.0))


@pytest.fixture
def place(tmp_path: Path) -> World:
    return world(tmp_path / "repo", {"README.md": "# Harbour\n"})


def spent(place: World) -> float:
    found = place.house().store.recall()
    return found.memory.header.spend_usd if found else 0.0


def cycle(place: World, reader: Reader, staged: bool = False) -> CycleReport:
    house: App = place.house(staged)
    ports = replace(house.ports, observers=(reader,))
    return run_cycle(ports, house.settings, CycleRequest(force=True, staged=staged), house.secrets)[0]


def test_money_is_set_aside_before_the_look_and_what_was_not_spent_is_given_back(place: World) -> None:
    reader = Reader(lambda: spent(place))
    for before in (0.0, 0.25):
        report = cycle(place, reader)
        usd, told = reader.seen[-1]
        assert (usd, told) == (1.0, before + 1.0)  # half of limits.usd_per_cycle
        assert (report.usage.cost_usd, spent(place)) == (0.25, before + 0.25)


def test_nothing_is_set_aside_where_nothing_is_asked(place: World) -> None:
    reader = Reader(lambda: spent(place), left=False)
    cycle(place, reader)
    assert reader.seen == [(0.0, 0.0)]
    reader.left = True
    cycle(place, reader, staged=True)
    assert reader.seen[-1][1] == 0.0


def test_a_look_that_breaks_off_has_spent_what_was_set_aside(place: World) -> None:
    cycle(place, Reader(lambda: spent(place), dies=True))
    assert spent(place) == 1.0
