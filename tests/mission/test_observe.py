"""What observers saw carries no secret any further."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ralph_mission.mission import observe
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.observe import redact_observation
from tests.mission.test_execute import Silent

SECRET = "tidal-harbour-canary-4711"


@pytest.mark.attack(33)
def test_no_field_of_a_sighting_carries_a_secret():
    told = f"a {SECRET}"
    signal = Signal("x", told, told, (told,), told, detail=told, author=told, facts=((told, told), ("n", 1)))
    quiet = SimpleNamespace(progress=SimpleNamespace(note=lambda text: None))
    heard = redact_observation(
        quiet, Observation("x", "ok", (signal,), detail=told, cursor=told, gone=((told,),)), (SECRET,)
    )
    assert SECRET not in repr(heard) and heard.signals and heard.cursor == ""


def test_a_signal_is_known_again_by_its_observer_whatever_is_secret():
    quiet = SimpleNamespace(progress=SimpleNamespace(note=lambda text: None))
    signal = Signal("commands.releases", "bug", "releases are late", ("x",))
    observation = redact_observation(quiet, Observation("commands.releases", "ok", (signal,)), ("releases",))
    (seen,) = observation.signals
    assert (seen.observer, "releases" in seen.title) == (observation.name, False)


def test_a_cursor_without_a_secret_stays_as_it_is():
    quiet = SimpleNamespace(progress=SimpleNamespace(note=lambda text: None))
    assert redact_observation(quiet, Observation("x", "ok", cursor="c" * 40), (SECRET,)).cursor == "c" * 40


@pytest.mark.attack(33, 34)
def test_no_secret_comes_in_with_what_was_seen():
    seen = Signal("web", "bug", f"say {SECRET}", ("essence",), path="a.py")
    observation = Observation("web", "ok", (seen, replace(seen, path=f"{SECRET}/a.py")), detail=f"it said {SECRET}")
    heard = observe.redact_observation(SimpleNamespace(progress=Silent()), observation, (SECRET,))
    assert [signal.path for signal in heard.signals] == ["a.py"]
    assert SECRET not in repr(heard)
