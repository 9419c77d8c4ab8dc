"""Two runners at once, as real processes: one acts, the other leaves quietly, and nothing is done twice.

Every order in which their effects can come is in `test_interleavings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ralph_mission.errors import UserError
from tests.crash.ends import differences, portrait
from tests.crash.snapshots import Snapshot
from tests.crash.stages import NOW, staged
from tests.crash.witness import duplicates, watched
from tests.figures import Table, shown
from tests.helpers import git
from tests.integration.hub import Hub

pytestmark = pytest.mark.long  # takes ten seconds or more

QUIET = {"lost", "not_due"}


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("races")
    yield made
    shown(request.config, made)


def second(hub: Hub) -> Hub:
    """Another machine: a clone of its own, made anew."""
    number = len(list(hub.folder.iterdir()))
    other = replace(hub, runner=f"other-{number}")
    assert other.clone.exists()
    return other


def processes(*runners: Hub) -> list[tuple[str, int]]:
    """Real cycles, started together."""
    running = [one.process() for one in runners]
    said = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said
    reports = [json.loads(out) for out, _ in said]
    return [(report["outcome"], len(report["effects"])) for report in reports]


def race_processes(tmp_path, name: str, times: int, table: Table) -> None:
    with staged(tmp_path, name) as hub:
        start = Snapshot.of(hub, "start")
        hub.cycle(NOW, force=False)
        expected = portrait(hub)
        for _ in range(times):
            start.restore(hub)
            hub.fake.clock.now = hub.now
            with watched(hub) as witness:
                ends = processes(hub, second(hub))
            (left,) = [outcome for outcome, effects in ends if not effects]
            twice = duplicates(hub)
            table.count(f"{name}, processes", races=1, duplicates=len(twice), **{f"left_as_{left}": 1})
            assert left in QUIET and [outcome for outcome, effects in ends if effects] == ["done"], ends
            assert (twice, witness.wrong, differences(expected, portrait(hub))) == ([], [], [])


@pytest.mark.parametrize("name", ["a fix is opened"])
def test_of_two_processes_started_together_one_acts_and_one_leaves(tmp_path, name, table):
    race_processes(tmp_path, name, 2, table)


@pytest.mark.crash  # takes a minute
@pytest.mark.parametrize("name", ["a fix is opened", "an approved pull is merged"])
def test_of_two_processes_one_acts_each_time(tmp_path, name, table):
    race_processes(tmp_path, name, 4, table)


# --- in turns ----------------------------------------------------------------------------


def test_runners_on_two_machines_take_turns(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as hub:
        for runner in ("two", "one", "two", "one"):
            hub.runner = runner
            assert hub.cycle()[0].outcome == "done"
        assert hub.merged(hub.pulls[0].number)
        assert duplicates(hub) == []


def test_a_strangers_change_after_another_machines_cycle_stops_the_first_one(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as hub:
        hub.runner = "two"
        hub.cycle()
        path = "memory/open.json"
        text = git(hub.fake.bare, "show", f"ralph-memory:{path}")
        hub.fake.push("ralph-memory", {path: text.replace('"next_mission": 2', '"next_mission": 3').encode()})
        hub.runner = "one"
        with pytest.raises(UserError, match="someone else changed"):
            hub.cycle()
