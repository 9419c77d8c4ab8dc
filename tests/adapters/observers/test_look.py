"""Asking an observer never ends a cycle, and never tells what it should not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ralph_mission.adapters.forges.local.forge import LocalForge
from ralph_mission.adapters.git.git import GitError
from ralph_mission.adapters.observers import OBSERVERS, Sources, look_once
from ralph_mission.config.settings import Observers
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.observers.place import Place


@dataclass(frozen=True)
class Scripted:
    """Does what a test says."""

    deed: Callable[[], Observation]
    name: str = "scripted"

    def observe(self, gaze: ObservationContext) -> Observation:
        return self.deed()


def raising(error: BaseException) -> Scripted:
    def deed() -> Observation:
        raise error

    return Scripted(deed)


def test_every_registered_observer_has_its_key_in_the_settings() -> None:
    assert list(OBSERVERS) == [key for key in Observers.model_fields if key != "patience"]


def test_what_was_seen_is_timed(place: Place) -> None:
    seen = look_once(Scripted(lambda: Observation("scripted", "ok", seconds=9e9, detail="fine")), place.gaze())
    assert (seen.status, seen.detail) == ("ok", "fine")
    assert 0 <= seen.seconds < 9e9


@pytest.mark.parametrize(
    "error",
    [
        ValueError("connect to postgresql://app:sesame@db/app failed"),
        OSError(13, "sesame"),
        SystemExit("sesame"),
        RecursionError("sesame"),
        KeyError("sesame"),
    ],
)
def test_a_foreign_error_is_named_by_its_type_alone(place: Place, error: BaseException) -> None:
    seen = look_once(raising(error), place.gaze(cursor="abc"))
    assert seen.status == "unavailable"
    assert seen.detail == f"failed unexpectedly ({type(error).__name__})"
    assert seen.cursor == "abc"


@pytest.mark.parametrize(
    "error", [UserError("the host is\nunknown\x1b[31m", "say another"), GitError(["x"], 1, "the host is unknown")]
)
def test_our_own_error_says_why_on_one_line(place: Place, error: Exception) -> None:
    seen = look_once(raising(error), place.gaze())
    assert "the host is unknown" in seen.detail
    assert "\n" not in seen.detail and "\x1b" not in seen.detail


def test_an_interrupt_is_not_swallowed(place: Place) -> None:
    with pytest.raises(KeyboardInterrupt):
        look_once(raising(KeyboardInterrupt()), place.gaze())


def test_a_failure_leaves_no_traceback(
    place: Place, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        look_once(raising(ValueError("x")), place.gaze())
    assert (caplog.text, *capfd.readouterr()) == ("", "", "")


@pytest.mark.parametrize(
    ("key", "settings"),
    [("code", {}), ("commands", {"name": "x", "run": "true", "parse": {"regex": "x"}}), ("forge", {})],
)
def test_every_registered_observer_looks_at_a_fresh_repository(
    place: Place, key: str, settings: dict[str, object]
) -> None:
    kind = OBSERVERS[key]
    observer = kind.build(kind.settings.model_validate(settings), Sources(place.git, LocalForge(place.git)))
    seen = look_once(observer, place.gaze())
    assert (seen.status, seen.signals, seen.name.split(".")[0]) == ("ok", (), key)
