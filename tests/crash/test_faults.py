"""Everything that GitHub, or the way to it, may do to a write: nothing twice, nothing in silence, and it comes to rest.

One write of a stage's cycle is struck by one fault; later cycles are undisturbed, and must come to the end that
nothing had kept from. What was refused for good may end otherwise (a person is asked), and is never sent twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from ralph_mission.forges import github
from ralph_mission.gateways import remote
from ralph_mission.trouble import Lost, Trouble
from tests.crash.dying import dying, told, writes
from tests.crash.past import Snapshot
from tests.crash.stages import NOW, STAGES, come_to_rest, differences, lost, portrait, staged
from tests.crash.witness import duplicates, watched
from tests.fakes.github import Request
from tests.fakes.github.faults import KINDS
from tests.integration.hub import Hub
from tests.trust.table import Table, shown

pytestmark = pytest.mark.long  # takes ten seconds or more

SOON = 1.0  # seconds until a client gives up
DAILY = {
    "POST /issues": ("502_applied", "reset_not_applied", "401"),
    "POST /pulls": ("garbage", "rate_secondary"),
    "PUT /pulls/2/merge": ("reset_applied", "409"),
    "POST /issues/1/comments": ("502_applied", "500"),
}


NO_RIGHT = ("401", "403", "404", "rate_primary", "rate_secondary")
"""All that git tells of these is 401, 403 or 404, which GitHub says of what a token may not do or see."""
LEFT_TO_A_PERSON = frozenset("threads comments labels missions active completed open default measured counted".split())


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("faults")
    yield made
    shown(request.config, made)


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Nobody waits here for an answer that does not come."""
    with (
        mock.patch.dict(github.connect.__kwdefaults__, {"timeout": SOON}),
        mock.patch.object(remote, "PATIENCE", SOON),
    ):
        yield


def targets(requests: list[Request]) -> Iterator[tuple[Request, int]]:
    """Each write, and how many like it came before."""
    seen: Counter[str] = Counter()
    for request in requests:
        if writes(request):
            yield request, seen[told(request)]
            seen[told(request)] += 1


@contextmanager
def rehearsed(harbour: Hub) -> Iterator[tuple[Snapshot, list[Request], dict[str, object]]]:
    """The start, the requests and the end of the undisturbed cycle."""
    start = Snapshot.of(harbour, "start")
    with dying(harbour) as life:
        harbour.cycle(NOW)
    come_to_rest(harbour)
    yield start, life.requests, portrait(harbour)


def struck(harbour: Hub) -> str:
    """The cycle in which it goes wrong: its outcome. Anything but a report or one line fails the test."""
    try:
        return harbour.cycle(NOW)[0].outcome
    except Lost:
        return "lost"
    except Trouble as trouble:
        assert "\n" not in trouble.what and trouble.next_step
        return "trouble"


def strike(harbour: Hub, name: str, kind: str, target: tuple[Request, int], expected, table: Table) -> None:
    request, before = target
    what = f"{kind} at {told(request)}"
    fault = harbour.fake.fail(kind, (request.method, request.below), after=before)
    with watched(harbour) as witness:
        outcome = struck(harbour)
        assert fault.used == 1, what
        rest = come_to_rest(harbour)
    found = portrait(harbour)
    missing, twice, doubted = lost(expected, found), duplicates(harbour), set(rest.doubts)
    table.count(
        name,
        faults=1,
        duplicates=len(twice),
        lost=len(missing),
        not_converged=int(not rest.converged),
        unknown=len(doubted),
        one_line=int(outcome == "trouble"),
    )
    assert rest.converged and rest.untold == (), what
    assert (duplicates(harbour), witness.wrong) == ([], []), what
    differ = {line.partition(":")[0] for line in differences(expected, found, rest.doubts, late=True)}
    assert differ <= _left_out(kind, request), what


def _left_out(kind: str, request: Request) -> frozenset[str]:
    """What may differ for good: a refused label of a pull, and what a refusal for want of rights leaves to a person."""
    if request.below.endswith("/labels"):
        return frozenset({"threads", "labels"})
    if kind in ("401", "403") and request.transport == "rest":
        return LEFT_TO_A_PERSON
    if kind in NO_RIGHT and request.transport == "git":
        return LEFT_TO_A_PERSON | {"branches"}
    return frozenset()


@pytest.mark.parametrize("name", ["a fix is opened", "an approved pull is merged"])
def test_a_fault_at_a_deed_does_nothing_twice_and_the_next_cycles_make_up_for_it(tmp_path, name, table):
    with staged(tmp_path, name) as harbour, rehearsed(harbour) as (start, requests, expected):
        for target in targets(requests):
            for kind in DAILY.get(told(target[0]), ()) if target[1] == 0 else ():
                strike(start.restore(harbour), name, kind, target, expected, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STAGES)
def test_any_fault_at_any_write_does_nothing_twice_and_the_next_cycles_make_up_for_it(tmp_path, name, kind, table):
    with staged(tmp_path, name) as harbour, rehearsed(harbour) as (start, requests, expected):
        for target in targets(requests):
            strike(start.restore(harbour), name, kind, target, expected, table)


@pytest.mark.parametrize(("name", "lag"), [("a fix is opened", 3)])
def test_lists_that_are_late_make_nothing_twice(tmp_path, name, lag, table):
    late(tmp_path, name, lag, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("lag", [1, 2, 3])
@pytest.mark.parametrize("name", STAGES)
def test_however_late_lists_are_nothing_is_made_twice(tmp_path, name, lag, table):
    late(tmp_path, name, lag, table)


def late(tmp_path, name: str, lag: int, table: Table) -> None:
    """Lists are late, also while it comes to rest."""
    with staged(tmp_path, name) as harbour, rehearsed(harbour) as (start, _, expected):
        start.restore(harbour)
        harbour.fake.list_lag = lag
        with watched(harbour) as witness:
            assert struck(harbour) == "done"
            rest = come_to_rest(harbour)
        found = portrait(harbour)
        table.count(
            f"{name}, late lists",
            faults=1,
            duplicates=len(duplicates(harbour)),
            unknown=len(rest.doubts),
            lost=len(lost(expected, found)),
            not_converged=int(not rest.converged),
        )
        assert (rest.converged, rest.doubts, duplicates(harbour), witness.wrong) == (True, (), [], [])
        assert differences(expected, found, ()) == []
