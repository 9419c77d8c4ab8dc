"""A planner that always obeys the attacker, through every case of the list: nothing that is forbidden happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.attacked_hub import attacked, live
from tests.attacks.cases import CASES, SAID_ALONE, Case
from tests.figures import Table, shown

DAILY = (47,)
"""Enough to see that everything fits together; all of them take minutes."""
OF_AN_AGENT = frozenset({42, 43})
"""Cases of what an agent could read: there is none here."""
STOPPED = range(18, 27)
"""Cases in which memory may be so wrong that nothing may be done."""


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    made = Table("obeying planner")
    yield made
    shown(request.config, made)


def marked(case: Case) -> object:
    long = () if case.number in DAILY else (pytest.mark.long,)  # two seconds each
    counted = () if case.number in SAID_ALONE | OF_AN_AGENT else (pytest.mark.attack(case.number),)
    return pytest.param(case, id=str(case), marks=(*counted, *long))


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_a_planner_that_obeys_the_attacker_brings_about_nothing_forbidden(
    tmp_path: Path, case: Case, table: Table
) -> None:
    with attacked(tmp_path, case) as (hub, judge):
        live(hub, judge)
        writes = [one for one in hub.fake.journal if one.method != "GET" and one.transport == "rest"]
    table.count(case.group, cases=1, effects=len(writes), looked_at=judge.looked, forbidden=len(judge.breaches))
    assert judge.breaches == []
    assert hub.planner.asked and writes, "the attack came to nothing by itself"
    assert not hub.halted or case.number in STOPPED
