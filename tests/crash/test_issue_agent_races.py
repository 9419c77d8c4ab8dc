"""Several runners of the issue agent at the same moment: an issue is one's, the other takes the next or leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ralph_mission.mission.issues.agent import work_once
from tests.crash.calls import NAMES
from tests.crash.dying import describe_request, dying, writes
from tests.crash.faults import patience
from tests.crash.interleaving import Runner, every_schedule, race
from tests.crash.snapshots import Snapshot
from tests.crash.witness import duplicates, watched
from tests.figures import Table, shown
from tests.integration.at_work import SCRIPT, Place, Scripted, made, on_hub, on_this_machine
from tests.integration.hub import UNPACED


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Who is kept waiting by a whole round of another one does not take it for a lost answer."""
    with patience(600.0):
        yield


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    found = Table("races of the issue agent")
    yield found
    shown(request.config, found)


def process(place: Place, script: Path, clone: Path) -> subprocess.Popen[bytes]:
    """A real `ralph work --once`, as a person starts it."""
    forge = "github" if place.hub else "local"
    command = [sys.executable, "-c", UNPACED, "work", "--once", "--json", "--forge", forge, "--repo", str(clone)]
    environ = place.hub.process_environ if place.hub else dict(os.environ)
    return subprocess.Popen(
        [*command, "--agent", "scripted", "--command", str(script)], env=environ, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip  # one call


def together(place: Place, tmp_path: Path, clones: list[Path]) -> list[dict[str, object]]:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT.replace('text = "', 'delay = 0.5\ntext = "', 1))
    running = [process(place, script, clone) for clone in clones]
    said = [one.communicate() for one in running]
    assert [one.returncode for one in running] == [0] * len(running), said
    return [json.loads(out) for out, _ in said]


@pytest.mark.long  # nine seconds
def test_two_processes_on_two_machines_claim_one_issue_once(tmp_path):
    with on_hub(tmp_path / "hub") as place:
        assert place.hub is not None
        number, other = place.ready(), replace(place.hub, runner="other")
        with watched(place.hub) as witness:
            ends = together(place, tmp_path, [place.hub.clone, other.clone])
        assert sorted(str(one["outcome"]) for one in ends) == ["done", "idle"], ends
        assert (len(place.pulls()), len(place.comments(number)), duplicates(place.hub)) == (1, 2, [])
        assert witness.wrong == []


@pytest.mark.long  # five seconds
def test_two_processes_in_one_checkout_take_an_issue_each(tmp_path):
    with on_this_machine(tmp_path / "here") as place:
        assert place.local is not None
        numbers = {place.ready("One"), place.ready("Two")}
        ends = together(place, tmp_path, [place.local.repo] * 2)
        assert {one["issue"] for one in ends} == numbers and {one["outcome"] for one in ends} == {"done"}
        assert len(place.pulls()) == 2 and place.state().working == ()


class Waits(Exception):
    """The other one has to wait, which it would do for minutes."""


def beside(place: Place, hands: Scripted) -> str:
    """What a round of another machine comes to at this moment."""

    def sleep(seconds: float) -> None:
        raise Waits

    try:
        return work_once(replace(place.worker(hands), sleep=sleep)).outcome
    except Waits:
        return "waits"


def between(place: Place, at: int) -> tuple[list[str], int]:
    """A round, and the whole one of another machine before its request number `at`."""
    hub, hands, ends = place.hub, Scripted([made()]), list[str]()
    assert hub is not None
    other = replace(place, hub=replace(hub, runner=f"other-{at}"))
    assert other.hub is not None and other.hub.clone.exists()
    other.house = other.hub.house
    seen = [0]

    def comes_between(request) -> None:
        seen[0] += 1
        if seen[0] == at:
            ends.append(beside(other, hands))

    undo = hub.fake.before(comes_between)
    ends.append(place.work(hands).outcome)
    undo()
    return ends, len(hands.jobs)


def interleave(tmp_path: Path, chosen, table: Table) -> None:
    with on_hub(tmp_path) as place:
        place.ready()
        hub = place.hub
        assert hub is not None and hub.clone.exists()
        start = Snapshot.of(hub, "start")
        with dying(hub) as life:
            place.work(Scripted())
        for at in chosen(life.requests):
            start.restore(hub)
            with watched(hub) as witness:
                ends, played = between(place, at)
            assert (ends.count("done"), played, set(ends) <= {"done", "idle", "waits"}) == (1, 1, True), (at, ends)
            twice = duplicates(hub)
            table.count("one issue", races=1, duplicates=len(twice), both_worked=int(played > 1))
            assert (len(place.pulls()), twice, witness.wrong) == (1, [], []), at


@pytest.mark.long  # takes five seconds
def test_memory_that_another_runner_makes_meanwhile_is_not_taken_for_lost(tmp_path, table):
    """It was looked for and not there; then another runner made it, and the forge was asked where it stands."""

    def chosen(requests):
        return [at for at, request in enumerate(requests, 1) if request.below == "/issues"][:1]

    interleave(tmp_path, chosen, table)


@pytest.mark.crash  # takes minutes
def test_a_whole_round_in_between_and_one_of_the_two_works(tmp_path, table):
    """Before each write, and before each read of a sort: between two writes nothing changes."""

    def chosen(requests):
        sorts = {
            (NAMES.sub("*", describe_request(request)), writes(request) and at): at
            for at, request in enumerate(requests, 1)
        }
        return sorted(sorts.values())

    interleave(tmp_path, chosen, table)


# --- every order of effects --------------------------------------------------------------


def a_round(place: Place, hands: Scripted, runner: Runner) -> tuple[str, int]:
    """A round of one machine, and whether it did the work."""
    runner.begins()
    outcome = beside(replace(place, house=runner.hub.house, hub=runner.hub), hands)
    return outcome, int(outcome == "done")


@pytest.mark.crash  # takes minutes
def test_in_every_order_of_their_effects_one_of_two_works(tmp_path, table):
    with on_hub(tmp_path) as place:
        place.ready()
        hub = place.hub
        assert hub is not None and hub.clone.exists()
        start, jobs = Snapshot.of(hub, "start"), list[int]()

        def run(pick):
            hands = Scripted([made()])
            start.restore(hub)
            with watched(hub) as witness:
                ran = race(hub, "AB", pick, play=partial(a_round, place, hands))
            jobs.append(len(hands.jobs))
            assert (witness.wrong, duplicates(hub)) == ([], []), ran.schedule
            return ran

        for ran in every_schedule(run):
            outcomes = [outcome for outcome, _ in ran.ends]
            table.count("one issue, 2 runners, in any order", races=1, both_worked=int(jobs[-1] > 1))
            assert (outcomes.count("done"), jobs[-1], len(place.pulls())) == (1, 1, 1), (ran.schedule, ran.ends)
            assert set(outcomes) <= {"done", "idle", "waits"}, (ran.schedule, ran.ends)
