"""Recordings: a cycle's answers in order, the last 50 cycles, and never in git."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.recordings import KEEP, Recordings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleSettings, ForgeSnapshot, MissionFacts, Situation
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Observation, Verdict
from ralph_mission.mission.model.proposal import Decision, Plan, RankedFinding
from tests.adapters.storage.memory.making import finding
from tests.helpers import git
from tests.mission.build import NOW, fix, issue, pull, signal


def test_answers_come_back_in_order(repo: Path) -> None:
    kept = Recordings(Git.open(repo), "000001-abc")
    answers = [("world", (Observation("code", "ok"),)), *((f"a{n}", n) for n in range(12)), ("findings", (finding(1),))]
    for name, value in answers:
        kept.record(name, value)
    assert list(Recordings(Git.open(repo)).load("000001-abc")) == answers


def test_a_whole_situation_comes_back_as_itself(repo: Path) -> None:
    facts = ((1, MissionFacts(issue(), pull(), frozenset({3}))),)
    recorded = Situation(
        1,
        "000001-abc",
        NOW,
        CycleSettings(quiet_hours=(time(22), time(7))),
        Memory(),
        OpenState(),
        ForgeSnapshot(7, Branch("main", "a" * 40), ("main",), (issue(),), (pull(),), facts),
        {"k": finding(1)},
        (Observation("code", "ok", (signal(),)),),
        Plan((RankedFinding(("f",), "bug", 0.5, "why"),)),
        ("x",),
    )
    decisions = (Decision(fix(), Verdict.HOLD, ("diff-size",)),)
    kept = Recordings(Git.open(repo))
    kept.record("situation", recorded)
    kept.record("decisions", decisions)
    assert kept.load("000001-abc") == (("situation", recorded), ("decisions", decisions))


@pytest.mark.attack(33)
def test_a_value_that_we_know_is_not_recorded_whoever_wrote_it(repo: Path) -> None:
    known = "tidal-harbour-4711"
    told = (issue(title=f"Use {known}", body=f"or {known}"), issue(title="Paint the pier"))
    Recordings(Git.open(repo), "c", (known,)).record("issues", told)
    ((_, kept),) = Recordings(Git.open(repo)).load("c")
    assert isinstance(kept, tuple) and kept[1] == told[1]
    assert known not in repr(kept) and kept[0].number == told[0].number


def test_the_same_cycle_again_replaces_its_recording(repo: Path) -> None:
    for value in (1, 2):
        Recordings(Git.open(repo), "c").record("answer", value)
    assert Recordings(Git.open(repo)).load("c") == (("answer", 2),)


def test_only_the_last_cycles_are_kept(repo: Path) -> None:
    for number in range(KEEP + 3):
        Recordings(Git.open(repo), f"{number:06d}-x").record("answer", number)
    kept = sorted(folder.name for folder in (repo / ".ralph" / "cycles").iterdir())
    assert kept == [f"{number:06d}-x" for number in range(3, KEEP + 3)]


def test_git_does_not_see_them(repo: Path) -> None:
    for number in range(2):
        Recordings(Git.open(repo), f"c{number}").record("answer", 1)
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / ".git" / "info" / "exclude").read_text().count("/.ralph/") == 1


@pytest.mark.parametrize("cycle_id", ["none", "../../x", "", ".", "a/b"])
def test_a_cycle_that_is_not_recorded_is_trouble(repo: Path, cycle_id: str) -> None:
    with pytest.raises(UserError):
        Recordings(Git.open(repo)).load(cycle_id)


@pytest.mark.parametrize(("cycle_id", "name"), [("../x", "a"), ("", "a"), ("c", "../a"), ("c", "a/b")])
def test_names_that_leave_the_folder_are_refused(repo: Path, cycle_id: str, name: str) -> None:
    with pytest.raises(ValueError, match="cannot record"):
        Recordings(Git.open(repo), cycle_id).record(name, 1)


def test_a_recording_of_another_version_is_trouble(repo: Path) -> None:
    kept = Recordings(Git.open(repo), "c")
    kept.record("answer", 1)
    (repo / ".ralph" / "cycles" / "c" / "00-answer.json").write_text('{"type": "Unheard", "value": {}}')
    with pytest.raises(UserError, match="cannot be read"):
        kept.load("c")


@dataclass(frozen=True)
class Unknown:
    """A type that is none of ours."""

    cycle_id: str = "c"


def test_a_value_of_unknown_type_is_not_silently_dropped(repo: Path) -> None:
    with pytest.raises(TypeError, match="Unknown"):
        Recordings(Git.open(repo)).record("answer", Unknown())


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_recordings_leads_to_nothing_that_is_removed_or_written(
    repo: Path, tmp_path: Path
) -> None:
    theirs = [tmp_path / "theirs" / f"{number:06d}-x" for number in range(KEEP + 3)]
    for folder in theirs:
        folder.mkdir(parents=True)
    (repo / ".ralph").mkdir()
    (repo / ".ralph/cycles").symlink_to(tmp_path / "theirs")
    with pytest.raises(UserError, match=r"cycles is a link"):
        Recordings(Git.open(repo), "000000-x").record("answer", 1)
    assert sorted((tmp_path / "theirs").iterdir()) == theirs and not list(theirs[0].iterdir())
