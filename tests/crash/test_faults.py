"""What GitHub, or the way to it, may do to a write: nothing twice, nothing in silence, and it comes to rest.

One write of a stage's cycle is struck by one fault; later cycles are undisturbed, and must come to the end that
nothing had kept from. Every fault at every call is in `test_cases`; `make test-long` plays those of a fix's life.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.cases import acted, brought_to_rest, scene, strike
from tests.crash.dying import told
from tests.crash.ends import differences, lost, portrait
from tests.crash.stages import STAGES
from tests.crash.witness import duplicates, watched
from tests.figures import Table, shown

pytestmark = pytest.mark.long  # takes ten seconds or more

DAILY = {
    "POST /issues": ("502-applied", "reset-not-applied", "401"),
    "POST /pulls": ("garbage", "rate-secondary"),
    "PUT /pulls/2/merge": ("answer-lost", "cas-409"),
    "POST /issues/1/comments": ("502-applied", "500"),
}


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("faults")
    yield made
    shown(request.config, made)


@pytest.mark.parametrize("name", ["a fix is opened", "an approved pull is merged"])
def test_a_fault_at_a_deed_does_nothing_twice_and_the_next_cycles_make_up_for_it(tmp_path, name, table):
    with scene(tmp_path, name) as on:
        for call in on.calls:
            kinds = DAILY.get(told(call.request), ()) if call.before == 0 else ()
            for case in on.cases(kinds):
                if case.at == call.at:
                    struck = strike(on, case)
                    table.count(name, **struck.figures)
                    assert struck.wrong == [], case.command


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
    again = f'.venv/bin/python -m tests.crash --stage "{name}" --lag {lag}'
    with scene(tmp_path, name) as on:
        harbour = on.start.restore(on.harbour)
        harbour.fake.list_lag = lag
        with watched(harbour) as witness:
            assert acted(harbour, on.stage) == "done"
            rest = brought_to_rest(harbour, on.stage)
        found, twice = portrait(harbour), duplicates(harbour)
        table.count(
            f"{name}, late lists",
            cases=1,
            duplicates=len(twice),
            lost=len(lost(on.expected, found, rest.doubts)),
            cap_breaches=len(witness.breaches),
            not_converged=int(not rest.converged),
            unknown=len(rest.doubts),
        )
        assert (rest.converged, rest.doubts, twice, witness.wrong, witness.breaches) == (True, (), [], [], []), again
        assert differences(on.expected, found, ()) == [], again
