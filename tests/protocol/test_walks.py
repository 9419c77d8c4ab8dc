"""Long walks through the modelled protocol, beyond where it is searched: all that people may do, and many accidents.

The steps are those of `tests/protocol`; which one comes next is chance, and a walk that goes wrong is told by as few
steps as may be. Nobody knows the right end of such a walk, but it has one, and every law holds on the way.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.mission import Limits
from tests.figures import Table, shown
from tests.protocol.cached_functions import remembered
from tests.protocol.ends import Ends
from tests.protocol.invariants import wrong_at, wrong_in
from tests.protocol.moves import MOVES
from tests.protocol.ports import Setting
from tests.protocol.world import Config, Step, World

WIDE = {"runners": 3, "cycles": 20, "crashes": 4, "doubts": 4, "late": 4, "moves": tuple(MOVES)}
WORLDS = {
    "changes are made": Setting(CycleSettings(), spelling=2, bugs=2, todos=2),
    "a person is asked": Setting(CycleSettings(limits=Limits(auto_prs_per_cycle=0)), spelling=2, bugs=3),
}


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("walks")
    yield made
    shown(request.config, made)


def walk(name: str, table: Table, walks: int, steps: int) -> None:
    """So many walks of at most so many steps through one world; by a seed, so that each can be had again."""
    world = World(Config(name, WORLDS[name], **WIDE))
    ends = Ends(world)

    @seed(1)
    @settings(
        max_examples=walks,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.integers(0, 40), min_size=steps // 2, max_size=steps))
    def one(choices: list[int]) -> None:
        way, state = [], world.start
        for choice in choices:
            possible = list(world.steps(state))
            if not possible:
                break
            step: Step = possible[choice % len(possible)]
            way.append(step.told)
            wrong = [*wrong_at(world, state, step), *wrong_in(world, step.after)]
            state = step.after
            table.count(name, steps=1)
            assert not wrong, "\n".join(["", *way, *wrong])
        calm = state if state.idle else world.all_dead(state)
        rest = ends.of(calm)
        table.count(name, walks=1, in_doubt=int(bool(rest.doubts)))
        assert not rest.problem, "\n".join(["", *way, rest.problem])

    with remembered():
        one()


@pytest.mark.parametrize("name", WORLDS)
def test_a_long_walk_breaks_no_law_and_comes_to_an_end(name, table):
    walk(name, table, walks=5, steps=40)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", WORLDS)
def test_many_long_walks_break_no_law(name, table):
    walk(name, table, walks=100, steps=80)
