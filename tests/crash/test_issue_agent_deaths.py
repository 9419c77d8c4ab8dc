"""The issue agent that dies or is struck at any call: nothing twice, the label goes, the work is done.

A death before the change was announced costs none of the two tries; a later one ends as if nothing had happened. What
was refused for good leaves the issue to a person.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import pytest

from ralph_mission.mission.issues.agent import WorkReport
from ralph_mission.mission.model.ledger import MemoryBatch, work_key
from ralph_mission.mission.operations.recover import recover_memory
from tests.crash.cases import attempt
from tests.crash.ends import differences, portrait
from tests.crash.fault_kinds import CAS, ELSEWHERE, KINDS
from tests.crash.rounds import Rounds
from tests.crash.snapshots import Snapshot
from tests.crash.stages import settle
from tests.crash.test_cases import GROUPS
from tests.crash.witness import duplicates, open_state
from tests.figures import Table, shown
from tests.integration.at_work import FAILED, WORKING, Place, Scripted, ended, made, on_hub

ROUNDS = 8
DEATHS = ("crash-before", "crash-after")
FAULTS = {
    group: tuple(name for name in names if KINDS[name].of not in (CAS, ELSEWHERE)) for group, names in GROUPS.items()
}
"""What other machines do in between is what `test_issue_agent_races.py` plays."""


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    with on_hub(tmp_path) as found:
        assert found.hub is not None and found.hub.clone.exists()
        yield found


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    found = Table("crashes of the issue agent")
    yield found
    shown(request.config, found)


class Lives:
    """Rounds on an issue that is ready, with hands of their own in each life."""

    def __init__(self, place: Place, plays: Sequence[Any] = ()) -> None:
        assert place.hub is not None
        self.place, self.plays, self.hub, self.number = place, plays, place.hub, place.ready()
        self.hands = Scripted(plays)
        self.doubts: tuple[str, ...] = ()
        self.rounds = Rounds(place.hub, self.begun, self.to_rest)

    def begun(self) -> None:
        self.hands = Scripted(self.plays)
        self.place.work(self.hands)

    def to_rest(self) -> tuple[str, ...]:
        """Rounds until there is nothing left to do; a person settles what nobody else can tell. Gives those keys."""
        self.doubts = ()
        for _ in range(ROUNDS):
            report = attempt(partial(self.place.work, self.hands))
            unknown = open_state(self.hub).unknown
            for key in unknown:
                self.doubts += (key,)
                settle(self.hub, key)
            if isinstance(report, WorkReport) and report.outcome == "idle" and not unknown:
                return self.doubts
        raise AssertionError(f"it never came to rest: {report}")

    def undisturbed(self) -> dict[str, Any]:
        """What comes of it; then it is as it was."""
        start = Snapshot.of(self.hub, "undisturbed")
        self.begun()
        self.to_rest()
        found = portrait(self.hub)
        start.restore(self.hub)
        return found


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("kind", DEATHS)
def test_a_death_at_any_call_leaves_one_pull_and_no_label(place, kind, table):
    lives = Lives(place)
    expected = lives.undisturbed()
    for died in lives.rounds.struck([kind], table, "a pull comes of it"):
        # A comment in doubt is never sent again: it may be missing after a person has said that it is.
        changed, tries = differences(expected, portrait(lives.hub), lives.doubts), place.tries(lives.number)
        assert len(place.pulls()) == 1 and len(lives.hands.jobs) <= 2, died
        assert place.labels(lives.number) == set(), died
        assert len(place.comments(lives.number)) <= 2 * tries, died
        assert changed == [] or tries == 2, (died, changed)


@pytest.mark.crash  # takes minutes
def test_a_death_in_a_try_that_fails_leaves_no_third_try(place, table):
    lives = Lives(place, [ended(2, "cost")])
    for died in lives.rounds.struck(DEATHS, table, "nothing comes of it", everywhere=False):
        assert place.pulls() == [] and len(lives.hands.jobs) <= 3, died  # the try of who died does not count
        assert place.labels(lives.number) == {FAILED}, died


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("group", [group for group, kinds in FAULTS.items() if kinds])
def test_any_fault_at_any_sort_of_call_does_nothing_twice_and_the_label_goes(place, group, table):
    lives = Lives(place)
    for struck in lives.rounds.struck(FAULTS[group], table, f"a pull comes of it: {group}", everywhere=False):
        assert len(place.pulls()) <= 1 and len(lives.hands.jobs) <= 2, struck
        assert WORKING not in place.labels(lives.number), struck
        assert place.pulls() or FAILED in place.labels(lives.number), struck


@pytest.mark.long  # takes five seconds; so does test_work_shown, in every run
def test_a_death_while_the_agent_works_gives_the_label_back_and_is_nobodys_failed_try(place):
    number = place.ready()

    class Killed(BaseException):
        pass

    def killed(job):
        raise Killed

    with pytest.raises(Killed):
        place.work(Scripted([killed]))
    assert place.labels(number) == {WORKING}
    hands = Scripted()
    report = place.work(hands)
    assert (report.settled, report.outcome, len(hands.jobs)) == (((number, "waiting"),), "done", 1)
    assert "An earlier try ended" not in hands.jobs[0].task and len(place.comments(number)) == 4
    assert (report.record.number, hands.jobs[0].attempt) == (1, 1)


@pytest.mark.long  # four seconds
def test_what_a_workflow_run_left_is_released_by_another_when_it_is_over(place):
    number, hub = place.ready(), place.hub
    assert hub is not None
    as_run(place, 1)

    class Killed(BaseException):
        pass

    def killed(job):
        raise Killed

    with on_run(place), pytest.raises(Killed):
        place.work(Scripted([killed]))
    as_run(place, 2)
    hub.runner = "another"
    with on_run(place):
        hands = Scripted()
        assert place.work(hands).outcome == "idle" and place.labels(number) == {WORKING}
        hub.fake.workflow_run(1, "completed", "failure")
        assert place.work(hands).outcome == "done" and len(hands.jobs) == 1


def as_run(place: Place, number: int) -> None:
    assert place.hub is not None
    place.hub.fake.workflow_run(number, "in_progress", None)
    place.hub.actions = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": str(number),
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_JOB": "work",
        "RUNNER_NAME": f"runner-{number}",
    }


def on_run(place: Place):
    """In the environment of that run."""
    assert place.hub is not None
    return mock.patch.dict(os.environ, place.hub.environ)


@pytest.mark.long  # takes five seconds
def test_whoever_was_declared_dead_does_not_touch_the_try_of_another(place):
    """A person lifts the claim of a runner that lives after all, and another one takes the issue."""
    number, hub = place.ready(), place.hub
    assert hub is not None
    second = Scripted([made({"second.txt": b"2\n"})])

    def declared_dead(job):
        store = place.house().store
        past = store.recall()
        record = store.records([work_key(number)], past)[work_key(number)]
        store.commit(MemoryBatch(past.memory, past.state, (replace(record, holder=""),), "a person takes over"), past)
        other = replace(place, hub=replace(hub, runner="other"))
        other.house = other.hub.house
        assert other.work(second).outcome == "done"
        return made({"first.txt": b"1\n"})(job)

    place.work(Scripted([declared_dead]))
    (pull,) = place.pulls()
    assert place.content(pull.head, "second.txt") == b"2\n" and len(second.jobs) == 1
    assert (duplicates(hub), place.labels(number), place.tries(number)) == ([], set(), 2)


@pytest.mark.long  # takes five seconds
def test_a_runner_on_a_machine_that_is_gone_is_released_when_a_person_says_so(place):
    number, hub = place.ready(), place.hub
    assert hub is not None

    class Killed(BaseException):
        pass

    def killed(job):
        raise Killed

    with pytest.raises(Killed):
        place.work(Scripted([killed]))
    hub.runner = "another"
    assert place.work(Scripted()).outcome == "idle" and place.labels(number) == {WORKING}
    house = place.house()
    recover_memory(house.store, house.forge, house.ports.clock.now(), take_over=True)
    hands = Scripted()
    assert place.work(hands).outcome == "done" and place.tries(number) == 2
    assert (len(place.pulls()), duplicates(hub)) == (1, [])
