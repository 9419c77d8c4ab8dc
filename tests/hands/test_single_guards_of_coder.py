"""What one guard of the hands that are an agent alone holds back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from ralph_mission.gateways.git import Git
from ralph_mission.hands import coder
from ralph_mission.mission.commissions import Commission
from tests.helpers import make_repo

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def noted(folder: Path, answered: datetime) -> None:
    """What a session, or an earlier cycle, left beside its clone."""
    said = {"words": "done", "learned": [], "answered": answered.isoformat()}
    (folder / coder.NOTE).write_text(json.dumps(said))


def answering(moment: datetime) -> Commission:
    """As much of a commission as is asked of a note."""
    made = Commission.__new__(Commission)
    for name, value in {"mission": 3, "answers": moment}.items():
        object.__setattr__(made, name, value)
    return made


def never(*_: object) -> NoReturn:
    """No agent is asked, and no check."""
    raise AssertionError


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git.open(make_repo(tmp_path / "shop"))


@pytest.mark.attack(60)
def test_what_steers_agents_and_what_a_loop_keeps_is_no_work() -> None:
    assert not any(map(coder._work, (".claude/settings.json", ".mcp.json", ".ralph/loop/state.json")))
    assert coder._work("src/tide.py")


@pytest.mark.attack(46)
def test_a_link_is_no_folder_of_a_clone(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert coder._is_folder(tmp_path / "real") and not coder._is_folder(tmp_path / "link")


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_clones_has_nothing_tidied_away(git: Git, tmp_path: Path) -> None:
    (tmp_path / "theirs/project").mkdir(parents=True)
    git.state_dir.mkdir()
    (git.state_dir / "missions").symlink_to(tmp_path / "theirs")
    hands = coder.AgentCoder(git, git.state_dir / "missions", never, never)
    hands.tidy([1])
    assert (tmp_path / "theirs/project").is_dir()
    (git.state_dir / "missions").unlink()
    (tmp_path / "theirs").rename(git.state_dir / "missions")
    hands.tidy([1])
    assert not (git.state_dir / "missions/project").exists()


@pytest.mark.attack(56)
def test_a_note_of_any_length_says_nothing(tmp_path: Path) -> None:
    noted(tmp_path, NOON)
    assert coder._told(tmp_path, answering(NOON)) is not None
    with (tmp_path / coder.NOTE).open("a") as note:
        note.write(" " * coder.LONGEST)
    assert coder._told(tmp_path, answering(NOON)) is None


@pytest.mark.attack(19)
def test_a_note_answers_no_review_that_came_after_it_was_asked(tmp_path: Path) -> None:
    noted(tmp_path, NOON + timedelta(days=1))
    told = coder._told(tmp_path, answering(NOON))
    assert told is not None and told.answered_at == NOON
