"""Locks that die with their holder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from ralph_mission.adapters import files


def test_a_file_is_held_once_and_free_again_afterwards(tmp_path: Path) -> None:
    place = tmp_path / "folder" / "lock"
    with files.hold_file(place) as held, files.hold_file(place) as again:
        assert (held, again, files.is_held(place)) == (True, False, True)
    assert not files.is_held(place)


def test_a_folder_is_held_until_its_holder_lets_go(tmp_path: Path) -> None:
    with files.hold_folder(tmp_path):
        assert files.is_held(tmp_path)
    assert not files.is_held(tmp_path)


def test_two_that_ask_whether_a_file_is_held_do_not_see_each_other(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with open(tmp_path / "lock") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not files.is_held(tmp_path / "lock")


@pytest.mark.parametrize("strange", ["link", "pipe", "folder"])
def test_what_is_no_file_is_no_lock(tmp_path: Path, strange: str) -> None:
    place = tmp_path / "lock"
    if strange == "link":
        place.symlink_to(tmp_path / "elsewhere")
    elif strange == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(OSError), files.hold_file(place):
        pass
    assert not (tmp_path / "elsewhere").exists()
