"""Where a run stands is on disk before the next session starts, and a broken file is neither lost nor believed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import state
from ralph_mission.adapters.storage.loop.state import Records
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.loop.model.state import (
    CheckResult,
    HatOutput,
    LoopEvent,
    PathChange,
    ReviewIssue,
    RunState,
    SessionCommit,
    SessionUsage,
)

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
OUTPUT = HatOutput(
    "reviewer",
    3,
    LoopEvent("review.verdict", "no", (ReviewIssue("a race", "a.py", 3, "race", "major"),), "reviewer", 3, NOON),
    "read everything",
    (PathChange("caf\udce9.py", "modified", "outside"),),
    (SessionCommit("abc", "feat: x"),),
    ("US-1",),
    CheckResult(False, True, "red"),
    "event",
    "why",
    SessionUsage(1, 10, 20, 0.5, 3.25),
    True,
    False,
)
FULL = RunState(
    "20260504-120000-prd", "build it", NOON, 3, LoopEvent("build.complete", "done"), "mind the gap", "US-2", 1, 2, 3, 4,
    5, frozenset({"US-9"}), SessionUsage(3, 1, 2, None, 9.5), (("builder", SessionUsage(1)),),
    (("US-2", SessionUsage(2)),), OUTPUT, 12.5, "refs/mark",
)  # fmt: skip  # as above


def test_a_state_comes_back_as_it_was_saved_the_last_session_included(tmp_path: Path) -> None:
    state.save(tmp_path, FULL)
    assert state.load(tmp_path) == FULL


def test_a_checkout_without_a_run_has_no_state(tmp_path: Path) -> None:
    assert state.load(tmp_path) is None
    assert state.rescue(tmp_path) == (None, "")


def test_a_file_that_people_can_read(tmp_path: Path) -> None:
    state.save(tmp_path, FULL)
    document = json.loads((tmp_path / state.STATE).read_text())
    assert (document["version"], document["state"]["iteration"]) == (1, 3)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "state": {"run_id": 3}}', "null"])
def test_a_broken_file_is_put_aside_and_said(tmp_path: Path, text: str) -> None:
    state.save(tmp_path, FULL)
    (tmp_path / state.STATE).write_text(text)
    with pytest.raises(codec.UnreadableDocument):
        state.load(tmp_path)
    found, complaint = state.rescue(tmp_path)
    assert found is None
    assert "state.json.broken-1" in complaint
    assert (tmp_path / f"{state.STATE}.broken-1").read_text() == text
    assert state.rescue(tmp_path) == (None, "")


def test_a_second_broken_file_does_not_replace_the_first(tmp_path: Path) -> None:
    for text in ("one", "two"):
        state.save(tmp_path, FULL)
        (tmp_path / state.STATE).write_text(text)
        state.rescue(tmp_path)
    assert [(tmp_path / f"{state.STATE}.broken-{number}").read_text() for number in (1, 2)] == ["one", "two"]


def test_a_file_of_a_later_version_is_not_misread(tmp_path: Path) -> None:
    state.save(tmp_path, FULL)
    path = tmp_path / state.STATE
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(codec.UnreadableDocument, match="version 2"):
        state.load(tmp_path)


@pytest.mark.attack(45)
@pytest.mark.parametrize("run_id", ["../../../elsewhere", "/etc", "..", "."])
def test_a_run_whose_name_leads_elsewhere_is_not_believed(tmp_path: Path, run_id: str) -> None:
    state.save(tmp_path, replace(FULL, run_id=run_id))
    found, complaint = state.rescue(tmp_path)
    assert found is None
    assert "its run is called" in complaint


def test_each_session_has_a_record_of_its_own(tmp_path: Path) -> None:
    for number in (3, 4):
        state.keep_output(tmp_path, "run-a", replace(OUTPUT, iteration=number))
    folder = tmp_path / state.RUNS / "run-a"
    assert sorted(file.name for file in folder.iterdir()) == ["session-0003.json", "session-0004.json"]
    assert codec.load(HatOutput, (folder / "session-0003.json").read_bytes()) == OUTPUT


# --- What sessions did and tried stays on record, whatever a later session makes of the files. ---

NAME = ".ralph/loop/runs/run-a/session-0001.json"


@pytest.fixture
def kept(tmp_path: Path) -> Records:
    made = Records(tmp_path)
    made.keep("run-a", HatOutput("builder", 1, calls=("Bash: git push --force",)))
    return made


def _link(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to("moved")


def _pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def _folder(place: Path) -> None:
    place.unlink()
    (place / "deep").mkdir(parents=True)


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (Path.unlink, "deleted"),
    "with_its_folder": (lambda place: shutil.rmtree(place.parents[1]), "deleted"),
    "emptied": (lambda place: place.write_text(""), "modified"),
    "of_the_same_length": (lambda place: place.write_bytes(place.read_bytes().replace(b"push", b"pull")), "modified"),
    "made_a_link": (_link, "modified"),
    "made_a_pipe": (_pipe, "modified"),
    "made_a_folder": (_folder, "modified"),
}


@pytest.mark.parametrize("what", HARM)
def test_a_record_is_put_back_and_told(kept: Records, tmp_path: Path, what: str) -> None:
    place, before = tmp_path / NAME, (tmp_path / NAME).read_bytes()
    harm, how = HARM[what]
    harm(place)
    assert [(change.path, change.how) for change in kept.restore()] == [(NAME, how)]
    assert place.read_bytes() == before and not place.is_symlink()
    assert kept.restore() == ()


def test_only_the_latest_are_held(kept: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SESSION_RECORDS", 1)
    kept.keep("run-a", HatOutput("builder", 2))
    (tmp_path / NAME).unlink()
    assert kept.restore() == ()
