"""What a session that died leaves of the stories: as it found them, or as they were judged if its commit landed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.stores.loop import before

FOUND, JUDGED, CLAIMED = b'{"passes": false}', b'{"passes": true, "\xff": 1}', b'{"passes": "all"}'
Landed = Callable[[str], bool]


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """Stories that a session found, then claimed to have done."""
    place = tmp_path / "prd.json"
    place.write_bytes(FOUND)
    before.keep(tmp_path, [place])
    place.write_bytes(CLAIMED)
    return place


def judge(stories: Path) -> None:
    stories.write_bytes(JUDGED)
    before.judged(stories.parent, [stories], "aaaa")
    stories.write_bytes(CLAIMED)


@pytest.mark.parametrize(("landed", "wanted"), [("bbbb", FOUND), ("aaaa", JUDGED)])
def test_stories_are_as_judged_where_their_commit_landed_and_else_as_found(
    stories: Path, landed: str, wanted: bytes
) -> None:
    judge(stories)
    aside = stories.parent / "aside"
    changes = before.put_back(stories.parent, [stories], aside, lambda commit: commit == landed)
    assert stories.read_bytes() == wanted and [change.path for change in changes] == ["prd.json"]
    assert (aside / "cut-off-prd.json").read_bytes() == CLAIMED


def test_what_was_judged_in_an_earlier_session_says_nothing_of_this_one(stories: Path) -> None:
    judge(stories)
    stories.write_bytes(FOUND)
    before.keep(stories.parent, [stories])
    stories.write_bytes(CLAIMED)
    before.put_back(stories.parent, [stories], stories.parent / "aside", lambda _: True)
    assert stories.read_bytes() == FOUND


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
def test_whatever_a_session_leaves_in_its_place_says_nothing_and_stops_nobody(stories: Path, odd: str) -> None:
    root = stories.parent
    ODD[odd](root / before.JUDGED)
    before.put_back(root, [stories], root / "aside", lambda _: True)
    assert stories.read_bytes() == FOUND
    before.keep(root, [stories])
    judge(stories)
    before.put_back(root, [stories], root / "aside", lambda _: True)
    assert stories.read_bytes() == JUDGED


@pytest.mark.parametrize("folder", [before.FOLDER, ".ralph/loop"])
def test_no_link_of_a_session_leads_a_copy_elsewhere(stories: Path, folder: str, tmp_path: Path) -> None:
    root, elsewhere = stories.parent, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / folder).rename(root / "former")
    (root / folder).symlink_to(elsewhere)
    stories.write_bytes(JUDGED)
    before.keep(root, [stories])
    before.judged(root, [stories], "aaaa")
    assert list(elsewhere.iterdir()) == [] and (root / before.FOLDER / "prd.json").read_bytes() == JUDGED
