"""What observers saw carries no secret any further."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ralph_mission.mission.model import Sighting, Signal
from ralph_mission.mission.observing import _heard

SECRET = "tidal-harbour-canary-4711"


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
