"""What a session said is kept without what nobody may know, wherever in it that stands."""

from __future__ import annotations

import pytest

from ralph_mission.loop.discretion import discreet
from ralph_mission.loop.model import Event, HatOutput, Issue

SECRET = "Zq9x" + "Rt2Lm7ZpW4vKd8NsB3yHc6Tj"


@pytest.mark.attack(33)
def test_no_text_of_a_record_keeps_it_however_deep_it_lies() -> None:
    issue = Issue(message=f"it says {SECRET}")
    event = Event("review.verdict", f"see {SECRET[::-1]} there", issues=(issue,))
    kept = discreet(HatOutput("reviewer", 3, event, f"I found {SECRET}.", calls=(f"Bash echo {SECRET}",)), (SECRET,))
    assert SECRET not in str(kept) and SECRET[::-1] not in str(kept)
    assert (kept.hat, kept.iteration, kept.event and kept.event.topic) == ("reviewer", 3, "review.verdict")


def test_what_holds_nothing_is_the_same() -> None:
    record = HatOutput("builder", 1, Event("build.done", "done"), "It is there.")
    assert discreet(record, (SECRET,)) == record
