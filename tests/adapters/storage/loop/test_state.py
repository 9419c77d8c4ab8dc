"""Where a run stands is on disk before the next session starts, and a broken file is neither lost nor believed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import state
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
