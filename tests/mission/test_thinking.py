"""A thinker's plan is taken as far as it is about findings that are there."""

from __future__ import annotations

import pytest

from ralph_mission.mission.ports import Plan, Thought
from ralph_mission.mission.thinking import _harmless
from tests.mission.build import finding

SECRET = "tidal-harbour-canary-4711"


@pytest.mark.attack(1)
def test_of_a_plan_nothing_is_kept_that_is_not_about_a_known_finding():
    known = finding()
    mine = Thought((known.fingerprint, SECRET), known.kind, 1.0, "why", sections=(("Risks", "x"), (SECRET, "y")))
    foreign = Thought((known.fingerprint,), SECRET, 1.0, "why")
    plan = _harmless(Plan((mine, foreign)), (known,), (SECRET,))
    assert SECRET not in repr(plan)
    assert [(one.members, one.sections) for one in plan.thoughts] == [((known.fingerprint,), (("Risks", "x"),))]
