"""The stories and their log go into a clone and back; of a session that died only what was judged comes back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.stories import JUDGED, CopiedLists
from tests.adapters.storage.loop.run_stores import PRD

Landed = Callable[[str], bool]


def listed(*passing: str, more: str = "") -> str:
    """The stories as a file, with those that pass."""
    document = json.loads(json.dumps(PRD))
    for story in document["userStories"]:
        story["passes"] = story["id"] in passing
    document["description"] = f"A shop{more}"
    return json.dumps(document, indent=2)


FIRST = PRD["userStories"][0]["id"]
FOUND, DONE, CLAIMED = listed(), listed(FIRST), "claimed"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/prd.json").write_text(FOUND)
    return tmp_path / "shop"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


@pytest.fixture
def carried(home: Path, clone: Path) -> CopiedLists:
    made = CopiedLists(home, clone)
    made.bring()
    return made


def passing(folder: Path) -> list[str]:
    """The stories that pass."""
    stories = json.loads((folder / "prd.json").read_text())["userStories"]
    return [story["id"] for story in stories if story["passes"]]


@pytest.mark.parametrize("place", ["", "scripts/ralph/", ".ralph/", ".omc/"])
def test_lists_go_into_the_clone_and_back_from_wherever_they_are(place: str, tmp_path: Path) -> None:
    home, clone = tmp_path / "a", tmp_path / "b"
    (home / place).mkdir(parents=True)
    clone.mkdir()
    (home / place / "prd.json").write_text(FOUND)
    (home / place / "progress.txt").write_text("log\n")
    carried = CopiedLists(home, clone)
    carried.bring()
    assert (clone / place / "prd.json").read_text() == FOUND and (clone / place / "progress.txt").read_text() == "log\n"
    (clone / place / "prd.json").write_text(DONE)
    (clone / place / "progress.txt").write_text("log\nmore\n")
    assert carried.take_back() == ()
    assert (home / place / "prd.json").read_text() == DONE and (home / place / "progress.txt").read_text() == (
        "log\nmore\n"
    )


def test_a_list_outside_of_the_checkout_is_in_the_engines_folder_of_the_clone(tmp_path: Path, clone: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/mine.json").write_text(FOUND)
    carried = CopiedLists(tmp_path / "home", clone, tmp_path / "lists/mine.json")
    carried.bring()
    assert carried.stories == clone / ".ralph/prd.json" and carried.stories.read_text() == FOUND
    carried.stories.write_text(DONE)
    carried.take_back()
    assert (tmp_path / "lists/mine.json").read_text() == DONE


def test_a_list_that_a_planner_wrote_comes_back(tmp_path: Path, clone: Path) -> None:
    (tmp_path / "home").mkdir()
    carried = CopiedLists(tmp_path / "home", clone)
    carried.bring()
    (clone / "prd.json").write_text(FOUND)
    assert carried.take_back() == () and (tmp_path / "home/prd.json").read_text() == FOUND


def test_what_a_person_changes_between_two_sessions_is_there_for_the_next(carried, home, clone) -> None:
    (home / "prd.json").write_text(DONE)
    (home / "progress.txt").write_text("a word\n")
    carried.bring()
    assert passing(clone) == [FIRST] and (clone / "progress.txt").read_text() == "a word\n"
    (home / "progress.txt").unlink()
    carried.bring()
    assert not (clone / "progress.txt").exists()


def test_what_a_person_changes_within_a_session_stays_and_what_passes_passes(carried, home, clone) -> None:
    (clone / "prd.json").write_text(DONE)
    (home / "prd.json").write_text(listed(more=" and more"))
    assert carried.take_back() == ()
    assert passing(home) == [FIRST] and "and more" in (home / "prd.json").read_text()
    carried.bring()
    assert (clone / "prd.json").read_text() == (home / "prd.json").read_text()


@pytest.mark.parametrize("session", [FOUND, DONE])
def test_no_story_passes_by_what_is_written_beside_the_clone_while_a_session_works(session, carried, home, clone):
    (clone / "prd.json").write_text(session)
    every = [story["id"] for story in PRD["userStories"]]
    (home / "prd.json").write_text(listed(*every))
    carried.take_back()
    assert passing(home) == ([FIRST] if session == DONE else [])
    carried.bring()
    assert passing(clone) == passing(home)


def test_what_cannot_be_told_apart_is_the_persons_and_is_said(carried, home, clone) -> None:
    (home / "progress.txt").write_text("mine\n")
    (clone / "progress.txt").write_text("theirs\n")
    [complaint] = carried.take_back()
    assert complaint.startswith("progress.txt was changed in the checkout meanwhile")
    assert (home / "progress.txt").read_text() == "mine\n"


@pytest.mark.parametrize("landed", [True, False])
def test_lists_are_as_judged_where_their_commit_landed_and_else_as_before(landed, carried, home, clone, tmp_path):
    (clone / "prd.json").write_text(DONE)
    carried.judged("aaaa")
    (clone / "prd.json").write_text(CLAIMED)
    later = CopiedLists(home, clone)
    [change] = later.put_back(tmp_path / "aside", lambda commit: landed and commit == "aaaa")
    assert (change.path, change.how) == ("prd.json", "modified")
    assert passing(home) == passing(clone) == ([FIRST] if landed else [])
    assert (tmp_path / "aside/cut-off-prd.json").read_text() == CLAIMED


def test_what_was_judged_in_an_earlier_session_says_nothing_of_this_one(carried, home, clone, tmp_path) -> None:
    (clone / "prd.json").write_text(DONE)
    carried.judged("aaaa")
    carried.begin()
    carried.put_back(tmp_path / "aside", lambda _: True)
    assert passing(home) == passing(clone) == []


def test_a_list_that_was_taken_away_is_back(carried, clone, tmp_path) -> None:
    (clone / "prd.json").unlink()
    [change] = carried.put_back(tmp_path / "aside", lambda _: False)
    assert (change.path, change.how) == ("prd.json", "deleted") and passing(clone) == []


ODD = {
    "a folder": lambda place: (place / "x").mkdir(parents=True),
    "a pipe": os.mkfifo,
    "no text": lambda place: place.write_bytes(b"\xff\xfe"),
    "no JSON": lambda place: place.write_bytes(b"{"),
    "JSON without end": lambda place: place.write_bytes(b"[" * 200_000),
    "no object": lambda place: place.write_bytes(b"[1]"),
    "no lists": lambda place: place.write_text(json.dumps({"commit": "aaaa", "lists": {"prd.json": 1}})),
    "a link": lambda place: place.symlink_to(place.parent / "elsewhere"),
}


@pytest.mark.parametrize("odd", ODD)
def test_whatever_stands_in_place_of_the_note_says_nothing_and_stops_nobody(odd, carried, home, clone, tmp_path):
    (home / ".ralph").mkdir()
    ODD[odd](home / JUDGED)
    carried.put_back(tmp_path / "aside", lambda _: True)
    assert passing(home) == []
    carried.begin()
    (clone / "prd.json").write_text(DONE)
    carried.judged("aaaa")
    carried.put_back(tmp_path / "aside", lambda _: True)
    assert passing(home) == [FIRST]


@pytest.mark.parametrize(
    "made", [os.mkfifo, lambda place: place.symlink_to("/etc/hostname"), lambda place: place.mkdir()]
)
def test_what_is_no_file_in_the_clone_is_not_taken_back(made, carried, home, clone) -> None:
    (clone / "prd.json").unlink()
    made(clone / "prd.json")
    carried.take_back()
    assert passing(home) == []
    (home / "prd.json").write_text(DONE)
    carried.bring()
    assert passing(clone) == [FIRST]


def test_one_folder_carries_nothing(home) -> None:
    carried = CopiedLists(home, home)
    carried.bring()
    assert carried.take_back() == () and carried.put_back(home / "aside", lambda _: True) == ()
