"""Two runners at once on one repository: one acts, the other leaves quietly, and nothing is done twice.

Both are real processes, or one runner's whole cycle comes between two requests of the other's. Every order in which
their effects can come is in `test_interleavings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport
from tests.crash.dying import dying, writes
from tests.crash.ends import differences, portrait
from tests.crash.snapshots import Snapshot
from tests.crash.stages import NOW, staged
from tests.crash.witness import duplicates, watched
from tests.figures import Table, shown
from tests.helpers import git
from tests.integration.hub import Hub

pytestmark = pytest.mark.long  # takes ten seconds or more

QUIET = {"lost", "not_due"}
PLAYED = ("a fix is opened", "an approved pull is merged")


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("races")
    yield made
    shown(request.config, made)


def second(harbour: Hub) -> Hub:
    """Another machine: a clone of its own, made anew."""
    number = len(list(harbour.folder.iterdir()))
    other = replace(harbour, runner=f"other-{number}")
    assert other.clone.exists()
    return other


def undisturbed(harbour: Hub) -> dict[str, object]:
    """What one runner alone would have come to."""
    harbour.cycle(NOW, force=False)
    return portrait(harbour)


def one_acted(
    table: Table, row: str, harbour: Hub, expected, ends: Iterable[tuple[str, int]], wrong, following=None, again=""
) -> None:
    """`ends` are outcome and number of effects of each runner.

    Where a cycle asks for the next one at once, a runner that begins after it may be that one: `following` is what
    two cycles of one runner would have come to. `again` is what replays it, where anything can.
    """
    acted = [outcome for outcome, effects in ends if effects]
    left = [outcome for outcome, effects in ends if not effects]
    twice = duplicates(harbour)
    gone = {f"left_as_{outcome}": 1 for outcome in left}  # what is lost in a figure is an effect
    table.count(row, races=1, duplicates=len(twice), both_acted=int(len(acted) > 1), **gone)
    if following and acted == ["done", "done"]:
        expected = following
    else:
        assert (acted, len(left), set(left) <= QUIET) == (["done"], 1, True), (list(ends), again)
    assert (twice, wrong, differences(expected, portrait(harbour), ())) == ([], [], []), again


def processes(*runners: Hub) -> list[tuple[str, int]]:
    """Real cycles, started together."""
    running = [one.process() for one in runners]
    said = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said
    reports = [json.loads(out) for out, _ in said]
    return [(report["outcome"], len(report["effects"])) for report in reports]


def race_processes(tmp_path, name: str, times: int, table: Table) -> None:
    with staged(tmp_path, name) as harbour:
        start = Snapshot.of(harbour, "start")
        expected = undisturbed(harbour)
        for _ in range(times):
            start.restore(harbour)
            harbour.fake.clock.now = harbour.now
            with watched(harbour) as witness:
                ends = processes(harbour, second(harbour))
            one_acted(table, f"{name}, processes", harbour, expected, ends, witness.wrong)


@pytest.mark.parametrize("name", ["a fix is opened"])
def test_of_two_processes_started_together_one_acts_and_one_leaves(tmp_path, name, table):
    race_processes(tmp_path, name, 2, table)


# --- one between two requests of the other ---------------------------------------------


def end_of(report: CycleReport) -> tuple[str, int]:
    return report.outcome, len(report.effects)


def interleaved(harbour: Hub, at: int) -> list[tuple[str, int]]:
    """A cycle, and the whole one of another machine before its request number `at`."""
    other, ends, seen = second(harbour), [], 0
    busy = [False]

    def comes_between(request) -> None:
        nonlocal seen
        if busy[0]:
            return
        seen += 1
        if seen == at:
            busy[0] = True
            ends.append(end_of(other.cycle(NOW, force=False)[0]))
            busy[0] = False

    undo = harbour.fake.before(comes_between)
    ends.append(end_of(harbour.cycle(NOW, force=False)[0]))
    undo()
    return ends


def interleave(harbour: Hub, name: str, chosen, table: Table) -> None:
    start = Snapshot.of(harbour, "start")
    with dying(harbour) as life:
        harbour.cycle(NOW, force=False)
    expected = portrait(harbour)
    following = portrait(harbour) if harbour.cycle(NOW, force=False)[0].outcome == "done" else None
    for at in chosen(life.requests):
        start.restore(harbour)
        with watched(harbour) as witness:
            ends = interleaved(harbour, at)
        again = f'.venv/bin/python -m tests.crash --stage "{name}" --between {at}'
        one_acted(table, f"{name}, between requests", harbour, expected, ends, witness.wrong, following, again)


def reads_of_the_start(requests) -> list[int]:
    """Some requests until something is written: there the two can both believe to be alone."""
    first = next(at for at, request in enumerate(requests, 1) if writes(request))
    return list(range(4, first + 1, 6))


def writes_and_every_other_request(requests) -> list[int]:
    """Between two reads nothing changes what either of the two believes, so half of them are enough."""
    return [at for at, request in enumerate(requests, 1) if writes(request) or at % 2]


@pytest.mark.parametrize("name", ["a fix is opened"])
def test_a_whole_cycle_of_another_runner_may_come_between(tmp_path, name, table):
    with staged(tmp_path, name) as harbour:
        interleave(harbour, name, reads_of_the_start, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", PLAYED)
def test_a_whole_cycle_of_another_runner_may_come_between_its_requests(tmp_path, name, table):
    with staged(tmp_path, name) as harbour:
        interleave(harbour, name, writes_and_every_other_request, table)


@pytest.mark.crash  # takes a minute
@pytest.mark.parametrize("name", PLAYED)
def test_of_two_processes_one_acts_each_time(tmp_path, name, table):
    race_processes(tmp_path, name, 4, table)


# --- in turns ----------------------------------------------------------------------------


def test_runners_on_two_machines_take_turns(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as harbour:
        for runner in ("two", "one", "two", "one"):
            harbour.runner = runner
            assert harbour.cycle()[0].outcome == "done"
        assert harbour.merged(harbour.pulls[0].number)
        assert duplicates(harbour) == []


def test_a_strangers_change_after_another_machines_cycle_stops_the_first_one(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as harbour:
        harbour.runner = "two"
        harbour.cycle()
        path = "memory/open.json"
        text = git(harbour.fake.bare, "show", f"ralph-memory:{path}")
        harbour.fake.push("ralph-memory", {path: text.replace('"next_mission": 2', '"next_mission": 3').encode()})
        harbour.runner = "one"
        with pytest.raises(UserError, match="someone else changed"):
            harbour.cycle()
