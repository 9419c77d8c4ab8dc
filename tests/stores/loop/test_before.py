"""What a session that died leaves of the stories: as it found them, or as they were judged if its commit landed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.stores.loop import before

FOUND, JUDGED, CLAIMED = b'{"passes": false}', b'{"passes": true}', b'{"passes": "all"}'


@pytest.mark.parametrize(("head", "wanted"), [("aaaa", FOUND), ("bbbb", JUDGED)])
def test_stories_are_as_judged_where_head_has_moved_on_since_and_else_as_found(
    tmp_path: Path, head: str, wanted: bytes
) -> None:
    stories = tmp_path / "prd.json"
    stories.write_bytes(FOUND)
    before.keep(tmp_path, [stories])
    stories.write_bytes(JUDGED)
    before.judged(tmp_path, [stories], "aaaa")
    stories.write_bytes(CLAIMED)
    changes = before.put_back(tmp_path, [stories], tmp_path / "aside", head)
    assert stories.read_bytes() == wanted and [change.path for change in changes] == ["prd.json"]
    assert (tmp_path / "aside/cut-off-prd.json").read_bytes() == CLAIMED


def test_what_was_judged_in_an_earlier_session_says_nothing_of_this_one(tmp_path: Path) -> None:
    stories = tmp_path / "prd.json"
    stories.write_bytes(JUDGED)
    before.judged(tmp_path, [stories], "aaaa")
    stories.write_bytes(FOUND)
    before.keep(tmp_path, [stories])
    stories.write_bytes(CLAIMED)
    before.put_back(tmp_path, [stories], tmp_path / "aside", "bbbb")
    assert stories.read_bytes() == FOUND
