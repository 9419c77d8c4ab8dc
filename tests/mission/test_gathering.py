"""Memory that is gone is no new beginning where the forge holds our work; what is gathered carries no secret."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.mission.gathering import _harmless, _heard, check_anchor
from ralph_mission.mission.model import Sighting, Signal
from ralph_mission.mission.ports import Plan, Thought
from ralph_mission.trouble import Trouble
from tests.mission.build import finding

SECRET = "tidal-harbour-canary-4711"


def ports(our_work: bool) -> Any:
    return SimpleNamespace(forge=SimpleNamespace(anchor=lambda: None, has_our_work=lambda: our_work))


def test_work_of_ours_without_any_memory_stops_the_cycle():
    with pytest.raises(Trouble, match="there is no memory") as caught:
        check_anchor(ports(our_work=True), None)
    assert "ralph memory recover" in caught.value.next_step


def test_a_repository_that_never_saw_us_is_a_new_beginning():
    check_anchor(ports(our_work=False), None)


@pytest.mark.attack(33)
def test_no_field_of_a_sighting_carries_a_secret():
    told = f"a {SECRET}"
    signal = Signal("x", told, told, (told,), told, detail=told, author=told, facts=((told, told), ("n", 1)))
    quiet = SimpleNamespace(voice=SimpleNamespace(note=lambda text: None))
    heard = _heard(quiet, Sighting("x", "ok", (signal,), detail=told, cursor=told, gone=((told,),)), (SECRET,))
    assert SECRET not in repr(heard) and heard.signals and heard.cursor == ""


def test_a_cursor_without_a_secret_stays_as_it_is():
    quiet = SimpleNamespace(voice=SimpleNamespace(note=lambda text: None))
    assert _heard(quiet, Sighting("x", "ok", cursor="c" * 40), (SECRET,)).cursor == "c" * 40


@pytest.mark.attack(1)
def test_of_a_plan_nothing_is_kept_that_is_not_about_a_known_finding():
    known = finding()
    mine = Thought((known.fingerprint, SECRET), known.kind, 1.0, "why", sections=(("Risks", "x"), (SECRET, "y")))
    foreign = Thought((known.fingerprint,), SECRET, 1.0, "why")
    plan = _harmless(Plan((mine, foreign)), (known,), (SECRET,))
    assert SECRET not in repr(plan)
    assert [(one.members, one.sections) for one in plan.thoughts] == [((known.fingerprint,), (("Risks", "x"),))]
