"""Everything that GitHub, or the way to it, may do to a write of the issue agent: nothing twice, and the label goes.

One write of a round is struck; later rounds are undisturbed. What was refused for good leaves the issue to a person,
named in a comment or as an effect whose fate only she can tell; it is never sent twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from ralph_mission.adapters.forges import github
from ralph_mission.adapters.git import remote
from ralph_mission.errors import Lost, UserError
from tests.crash.calls import targets
from tests.crash.dying import dying, told
from tests.crash.snapshots import Snapshot
from tests.crash.stages import settle
from tests.crash.witness import duplicates, open_state, watched
from tests.fakes.github.faults import KINDS
from tests.figures import Table, shown
from tests.integration.at_work import WORKING, Place, Scripted, on_hub

SOON, LATE = 2.0, 120.0  # seconds until a client gives up: where no answer comes, and where one does
ROUNDS = 10


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    found = Table("faults of the issue agent")
    yield found
    shown(request.config, found)


@contextmanager
def patience(kind: str) -> Iterator[None]:
    """Nobody waits here long for an answer that does not come, and nobody takes a slow one for none."""
    seconds = SOON if kind.startswith("timeout") else LATE
    with (
        mock.patch.dict(github.connect.__kwdefaults__, {"timeout": seconds}),
        mock.patch.object(remote, "PATIENCE", seconds),
    ):
        yield


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    with on_hub(tmp_path) as found:
        assert found.hub is not None and found.hub.clone.exists()
        found.ready()
        yield found


def one_round(place: Place, hands: Scripted) -> str:
    """What it came to; anything but a report or one line fails the test."""
    try:
        return place.work(hands).outcome
    except Lost:
        return "lost"
    except UserError as problem:
        assert "\n" not in problem.what and problem.next_step
        return "trouble"


def to_rest(place: Place, hands: Scripted) -> set[str]:
    """Undisturbed rounds until there is nothing left to do; gives what a person had to settle."""
    assert place.hub is not None
    doubts: set[str] = set()
    for _ in range(ROUNDS):
        outcome = one_round(place, hands)
        unknown = open_state(place.hub).unknown
        for key in unknown:
            doubts.add(key)
            settle(place.hub, key)
        if outcome == "idle" and not unknown:
            return doubts
    raise AssertionError(f"it never came to rest: {outcome}")


def strike_each(place: Place, kinds, table: Table) -> None:
    """Each write of a round, struck by each of its kinds, from the same start."""
    harbour = place.hub
    assert harbour is not None
    start, number = Snapshot.of(harbour, "start"), harbour.issues[0].number
    with dying(harbour) as life:
        place.work(Scripted())
    for request, before in list(targets(life.requests)):
        for kind in kinds(request, before):
            start.restore(harbour)
            what, hands = f"{kind} at {told(request)} ({before})", Scripted()
            fault = harbour.fake.fail(kind, (request.method, request.below), after=before)
            with watched(harbour) as witness:
                with patience(kind):
                    outcome = one_round(place, hands)
                assert fault.used == 1, what
                doubts = to_rest(place, hands)
            twice, labelled = duplicates(harbour), WORKING in place.labels(number)
            table.count("one issue", faults=1, duplicates=len(twice), not_released=int(labelled), unknown=len(doubts),
                        pulls=len(place.pulls()), one_line=int(outcome == "trouble"))  # fmt: skip  # one row
            state = open_state(harbour)
            assert (twice, witness.wrong, labelled) == ([], [], False), what
            assert (state.working, state.effects, state.unknown, state.claim) == ((), (), (), None), what
            assert len(place.pulls()) <= 1 and len(hands.jobs) <= 2, what
            assert place.pulls() or "ralph-failed" in place.labels(number), what


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("kind", KINDS)
def test_any_fault_at_any_write_does_nothing_twice_and_the_label_goes(place, kind, table):
    strike_each(place, lambda request, before: (kind,), table)
