"""Observers look at the same time, each within its own; whatever a late one runs is ended with it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.adapters.git.git import GitError
from ralph_mission.adapters.observers import OBSERVERS, Sources, look_once
from ralph_mission.adapters.observers import looking as together_module
from ralph_mission.adapters.observers.looking import OneAtATime, together
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.config.settings import Observers
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.observers.place import Place

PATIENCE = 300.0
CONTEXT = ObservationContext(
    Branch("main", "0" * 40), datetime(2026, 3, 1, tzinfo=UTC), None, "as far as this", "/nowhere"
)


NEEDED = {  # settings without which the observer of that key looks at nothing
    "commands": [{"name": "x", "run": "true", "parse": {"regex": "x"}}],
    "web": [{"name": "x", "kind": "page", "url": "https://127.0.0.1:9/"}],
}
ELSEWHERE = {  # by key: what it sees is not here
    "database": "unavailable",
    "explore": "unavailable",
    "social": "skipped",
    "web": "unavailable",
}


@dataclass
class Eye:
    name: str
    action: Callable[[], object]
    seconds: float = 0.0

    def observe(self, context: ObservationContext) -> Observation:
        return Observation(self.name, "ok", detail=str(self.action()), cursor="further")


def look(*eyes: Eye, patience: float = PATIENCE) -> list[Observation]:
    return list(together([(eye, CONTEXT) for eye in eyes], patience))


def test_they_look_at_the_same_time_and_are_told_in_their_order() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE)  # breaks unless all three are there
    seen = look(*(Eye(name, meeting.wait) for name in "abc"))
    assert [one.name for one in seen] == ["a", "b", "c"]
    assert {one.detail for one in seen} == {"0", "1", "2"}


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a look that does not end when it is told to."""
    monkeypatch.setattr(together_module, "GRACE", 0.0)


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what a look runs comes to its end."""
    monkeypatch.setattr(together_module, "GRACE", PATIENCE)


def test_a_late_one_is_unavailable_alone_and_looks_on_from_where_it_was(no_grace: None) -> None:
    never = threading.Event()
    slow, quick = look(Eye("slow", never.wait), Eye("quick", lambda: "fine", seconds=PATIENCE), patience=0.05)
    never.set()
    assert (slow.status, slow.detail, slow.cursor) == ("unavailable", "not finished within 0.05 s", "as far as this")
    assert (quick.status, quick.detail, quick.cursor) == ("ok", "fine", "further")


def test_one_that_knows_its_own_time_has_that() -> None:
    pause = threading.Event()
    (seen,) = look(Eye("command", lambda: pause.wait(0.05), seconds=PATIENCE), patience=0.0)
    assert seen.status == "ok"


def sleeper(home: Path, ended: list[FinishedProcess]) -> Callable[[], object]:
    def action() -> object:
        ended.append(run_foreign("echo here > here; sleep 600", cwd=home, home=home / "home", timeout=600))
        return ""

    return action


def begun(home: Path) -> Callable[[], object]:
    """Looks until what `sleeper` runs is under way."""

    def action() -> object:
        while not (home / "here").exists():
            time.sleep(0.01)
        return ""

    return action


def test_what_a_late_one_runs_is_ended(tmp_path: Path, long_grace: None) -> None:
    ended: list[FinishedProcess] = []
    waits = Eye("waits", begun(tmp_path), seconds=PATIENCE)
    _, seen = look(waits, Eye("command", sleeper(tmp_path, ended)), patience=0.05)
    assert seen.status == "unavailable"
    assert [one.stopped for one in ended] == [True]


def test_what_runs_is_ended_when_a_person_interrupts(tmp_path: Path, long_grace: None) -> None:
    ended: list[FinishedProcess] = []
    lookups = together(
        [(Eye("waits", begun(tmp_path)), CONTEXT), (Eye("command", sleeper(tmp_path, ended)), CONTEXT)], PATIENCE
    )
    next(iter(lookups))
    with pytest.raises(KeyboardInterrupt):
        lookups.throw(KeyboardInterrupt)
    assert [one.stopped for one in ended] == [True]


def test_what_they_share_is_called_by_one_at_a_time() -> None:
    class Shared:
        inside, most, name = 0, 0, "forge"

        def call(self, pause: float) -> None:
            self.inside += 1
            self.most = max(self.most, self.inside)
            threading.Event().wait(pause)
            self.inside -= 1

    shared = Shared()
    guarded = OneAtATime(shared)
    look(*(Eye(name, lambda: guarded.call(0.02)) for name in "abcd"))
    assert (shared.most, guarded.name) == (1, "forge")


def test_a_late_look_no_longer_calls_what_it_shared(no_grace: None) -> None:
    calls, began, over = list[float](), threading.Event(), threading.Event()

    class Shared:
        def call(self) -> None:
            calls.append(1.0)

    def action() -> object:
        guarded = OneAtATime(Shared())
        guarded.call()
        began.set()
        over.wait(PATIENCE)
        with pytest.raises(UserError):
            guarded.call()
        return ""

    eye = Eye("forge", action)
    _, seen = look(Eye("waits", lambda: began.wait(PATIENCE), seconds=PATIENCE), eye, patience=0.05)
    assert began.is_set() and seen.status == "unavailable"
    thread = next(one for one in threading.enumerate() if one.name == "ralph forge")
    over.set()
    thread.join(PATIENCE)
    assert calls == [1.0]


# --- Asking an observer never ends a cycle, and never tells what it should not. ---


@dataclass(frozen=True)
class Scripted:
    """Does what a test says."""

    action: Callable[[], Observation]
    name: str = "scripted"

    def observe(self, context: ObservationContext) -> Observation:
        return self.action()


def raising(error: BaseException) -> Scripted:
    def action() -> Observation:
        raise error

    return Scripted(action)


def test_every_registered_observer_has_its_key_in_the_settings() -> None:
    assert set(OBSERVERS) == Observers.model_fields.keys() - {"patience"}


def test_what_was_seen_is_timed(place: Place) -> None:
    seen = look_once(Scripted(lambda: Observation("scripted", "ok", seconds=9e9, detail="fine")), place.context())
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
    seen = look_once(raising(error), place.context(cursor="abc"))
    assert seen.status == "unavailable"
    assert seen.detail == f"failed unexpectedly ({type(error).__name__})"
    assert seen.cursor == "abc"


@pytest.mark.parametrize(
    "error", [UserError("the host is\nunknown\x1b[31m", "say another"), GitError(["x"], 1, "the host is unknown")]
)
def test_our_own_error_says_why_on_one_line(place: Place, error: Exception) -> None:
    seen = look_once(raising(error), place.context())
    assert "the host is unknown" in seen.detail
    assert "\n" not in seen.detail and "\x1b" not in seen.detail


def test_an_interrupt_is_not_swallowed(place: Place) -> None:
    with pytest.raises(KeyboardInterrupt):
        look_once(raising(KeyboardInterrupt()), place.context())


def test_a_failure_leaves_no_traceback(
    place: Place, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        look_once(raising(ValueError("x")), place.context())
    assert (caplog.text, *capfd.readouterr()) == ("", "", "")


@pytest.mark.parametrize("key", sorted(OBSERVERS))
def test_every_registered_observer_looks_at_a_fresh_repository(place: Place, key: str) -> None:
    configured = getattr(Observers.model_validate({key: NEEDED.get(key, {})}), key)
    settings = configured[0] if isinstance(configured, tuple) else configured
    seen = look_once(OBSERVERS[key](settings, Sources(place.git, LocalForge(place.git))), place.context())
    expected = (ELSEWHERE.get(key, "ok"), (), key)
    assert (seen.status, seen.signals, seen.name.split(".")[0]) == expected, seen.detail
