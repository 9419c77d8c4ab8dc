"""A thinker's plan is taken as far as it is about findings that are there."""

from __future__ import annotations

import math

import pytest

from ralph_mission.mission.model.proposal import Plan, RankedFinding
from ralph_mission.mission.proposals.analysis import WRITABLE
from ralph_mission.mission.rank import screen_plan
from tests.mission.build import finding

SECRET = "tidal-harbour-canary-4711"


@pytest.mark.attack(1)
def test_of_a_plan_nothing_is_kept_that_is_not_about_a_known_finding():
    known = finding()
    mine = RankedFinding((known.fingerprint, SECRET), known.kind, 1.0, "why", sections=(("Risks", "x"), (SECRET, "y")))
    foreign = RankedFinding((known.fingerprint,), SECRET, 1.0, "why")
    plan = screen_plan(Plan((mine, foreign)), (known,), (SECRET,))
    assert SECRET not in repr(plan)
    assert [(one.members, one.sections) for one in plan.ranked_findings] == [((known.fingerprint,), (("Risks", "x"),))]


FOUND = finding()


def ranked(**changes: object) -> RankedFinding:
    return RankedFinding(
        **{"members": (FOUND.fingerprint,), "kind": FOUND.kind, "score": 1.0, "why": "it is red"} | changes
    )  # type: ignore[arg-type]  # as the fields are


@pytest.mark.parametrize("odd", [ranked(kind="no-such-kind"), ranked(score=math.nan), ranked(score=math.inf)])
def test_a_thought_of_no_kind_that_is_there_or_no_number_is_none(odd: RankedFinding) -> None:
    assert len(screen_plan(Plan((odd, ranked())), [FOUND], ()).ranked_findings) == 1


def test_a_thought_is_about_findings_that_are_there() -> None:
    (kept,) = screen_plan(Plan((ranked(members=("f" * 16, FOUND.fingerprint)),)), [FOUND], ()).ranked_findings
    assert kept.members == (FOUND.fingerprint,)


def test_a_thought_writes_the_sections_that_it_may_write_alone() -> None:
    (kept,) = screen_plan(
        Plan((ranked(sections=(("Approval", "given"), (WRITABLE[0], "why"))),)), [FOUND], ()
    ).ranked_findings
    assert [name for name, _ in kept.sections] == [WRITABLE[0]]


@pytest.mark.attack(33)
def test_no_part_of_a_plan_holds_a_secret() -> None:
    one = ranked(why=f"see {SECRET}", sections=((WRITABLE[0], f"see {SECRET}"),))
    assert SECRET not in repr(screen_plan(Plan((one,), remark=SECRET, cursor=SECRET), [FOUND], (SECRET,)))
