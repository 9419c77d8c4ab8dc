"""The issue agent that dies at any request: no second comment, no second pull, the label released, the work done.

A death before the change was announced costs one of the two tries; a later one ends as if nothing had happened. `make
test-long` dies after each write that is more than a label; `make crash` before every request, and after every one that
may change something: after any other the server is as it was before it, and so is the runner that never heard of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

import pytest

from ralph_mission.mission.model.ledger import MemoryBatch, work_key
from ralph_mission.mission.operations.recover import recover_memory
from tests.crash.dying import Life, dying, told, writes
from tests.crash.ends import differences, portrait
from tests.crash.snapshots import Snapshot
from tests.crash.stages import settle
from tests.crash.witness import duplicates, open_state, watched
from tests.figures import Table, shown
from tests.integration.at_work import FAILED, WORKING, Place, Scripted, ended, made, on_hub

ROUNDS = 8
Points = list[tuple[int, str]]


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    with on_hub(tmp_path) as found:
        assert found.hub is not None and found.hub.clone.exists()
        yield found


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    found = Table("deaths of the issue agent")
    yield found
    shown(request.config, found)


def around_writes(life: Life) -> Points:
    """Before and after each request that may change something."""
    return [
        (at, kind) for at, request in enumerate(life.requests, 1) if writes(request) for kind in ("before", "after")
    ]


def before_reads(life: Life) -> Points:
    """Before each of the others."""
    return [(at, "before") for at, request in enumerate(life.requests, 1) if not writes(request)]


EVERYWHERE = [(around_writes, part, 2) for part in range(2)] + [(before_reads, part, 4) for part in range(4)]


def share(points: Callable[[Life], Points], part: int, parts: int) -> Callable[[Life], Points]:
    return lambda life: points(life)[part::parts]


def to_rest(place: Place, hands: Scripted) -> tuple[str, ...]:
    """Rounds until there is nothing left to do; a person settles what nobody else can tell. Gives those keys."""
    assert place.hub is not None
    doubts: tuple[str, ...] = ()
    for _ in range(ROUNDS):
        report = place.work(hands)
        unknown = open_state(place.hub).unknown
        for key in unknown:
            doubts += (key,)
            settle(place.hub, key)
        if report.outcome == "idle" and not unknown:
            return doubts
    raise AssertionError(f"it never came to rest: {report}")


def die_everywhere(place: Place, plays, chosen, check, table: Table, row: str) -> int:
    """Die at each of the chosen points of one round, go on, look. Gives how many points there were."""
    harbour = place.hub
    assert harbour is not None
    start, number = Snapshot.of(harbour, "start"), harbour.issues[0].number
    with dying(harbour) as life:
        place.work(Scripted(plays))
    to_rest(place, Scripted(plays))
    expected = portrait(harbour)
    points = chosen(life)
    for at, kind in points:
        start.restore(harbour)
        died, hands = f"died {kind} request {at}, {told(life.requests[at - 1])}", Scripted(plays)
        with watched(harbour) as witness:
            with dying(harbour, at, kind) as this:
                place.work(hands)
            assert this.over, died
            doubts = to_rest(place, hands)
        twice, labelled = duplicates(harbour), WORKING in place.labels(number)
        again, doubted = place.tries(number) - 1, len(set(doubts))
        figures = {"duplicates": len(twice), "not_released": int(labelled), "unknown": doubted}
        table.count(row, deaths=1, second_tries=again, **figures)
        assert (twice, witness.wrong) == ([], []), died
        state = open_state(harbour)
        assert (state.working, state.effects, state.unknown, state.claim) == ((), (), (), None), died
        assert not labelled, died
        check(hands, number, died, differences(expected, portrait(harbour), doubts))
    return len(points)


def done_once(place: Place):
    def check(hands: Scripted, number: int, died: str, changed: list[str]) -> None:
        assert len(place.pulls()) == 1 and len(hands.jobs) <= 2, died
        assert place.labels(number) == set(), died
        assert len(place.comments(number)) <= 2 * place.tries(number), died
        assert changed == [] or place.tries(number) == 2, (died, changed)

    return check


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize(("points", "part", "parts"), EVERYWHERE)
def test_a_death_at_any_request_leaves_one_pull_and_no_label(place, points, part, parts, table):
    place.ready()
    die_everywhere(place, (), share(points, part, parts), done_once(place), table, "a pull comes of it")


def given_up(place: Place):
    def check(hands: Scripted, number: int, died: str, changed: list[str]) -> None:
        assert place.pulls() == [] and len(hands.jobs) <= 2, died
        assert place.labels(number) == {FAILED}, died

    return check


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize(("points", "part", "parts"), EVERYWHERE)
def test_a_death_at_any_request_of_a_try_that_fails_leaves_no_third_try(place, points, part, parts, table):
    place.ready()
    die_everywhere(place, [ended(2, "cost")], share(points, part, parts), given_up(place), table, "nothing comes of it")


@pytest.mark.long  # takes five seconds; so does test_work_shown, in every run
def test_a_death_while_the_agent_works_gives_the_label_back_for_a_second_try(place):
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
    assert "An earlier try ended" in hands.jobs[0].task and len(place.comments(number)) == 4


@pytest.mark.long  # four seconds
def test_what_a_workflow_run_left_is_released_by_another_when_it_is_over(place):
    number, harbour = place.ready(), place.hub
    assert harbour is not None
    as_run(place, 1)

    class Killed(BaseException):
        pass

    def killed(job):
        raise Killed

    with on_run(place), pytest.raises(Killed):
        place.work(Scripted([killed]))
    as_run(place, 2)
    harbour.runner = "another"
    with on_run(place):
        hands = Scripted()
        assert place.work(hands).outcome == "idle" and place.labels(number) == {WORKING}
        harbour.fake.workflow_run(1, "completed", "failure")
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
    number, harbour = place.ready(), place.hub
    assert harbour is not None
    second = Scripted([made({"second.txt": b"2\n"})])

    def declared_dead(job):
        store = place.house().store
        past = store.recall()
        record = store.records([work_key(number)], past)[work_key(number)]
        store.commit(MemoryBatch(past.memory, past.state, (replace(record, holder=""),), "a person takes over"), past)
        other = replace(place, hub=replace(harbour, runner="other"))
        other.house = other.hub.house
        assert other.work(second).outcome == "done"
        return made({"first.txt": b"1\n"})(job)

    place.work(Scripted([declared_dead]))
    (pull,) = place.pulls()
    assert place.content(pull.head, "second.txt") == b"2\n" and len(second.jobs) == 1
    assert (duplicates(harbour), place.labels(number), place.tries(number)) == ([], set(), 2)


@pytest.mark.long  # takes five seconds
def test_a_runner_on_a_machine_that_is_gone_is_released_when_a_person_says_so(place):
    number, harbour = place.ready(), place.hub
    assert harbour is not None

    class Killed(BaseException):
        pass

    def killed(job):
        raise Killed

    with pytest.raises(Killed):
        place.work(Scripted([killed]))
    harbour.runner = "another"
    assert place.work(Scripted()).outcome == "idle" and place.labels(number) == {WORKING}
    house = place.house()
    recover_memory(house.store, house.forge, house.ports.clock.now(), take_over=True)
    hands = Scripted()
    assert place.work(hands).outcome == "done" and place.tries(number) == 2
    assert (len(place.pulls()), duplicates(harbour)) == (1, [])
