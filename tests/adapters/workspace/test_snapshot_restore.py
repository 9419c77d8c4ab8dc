"""Files of a clone are written and removed by no link, and only below it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ralph_mission.adapters.workspace.snapshot import (
    EXECUTABLE,
    LINK,
    REGULAR,
    remove_any,
    remove_folder,
    remove_path,
    write_file,
)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Somebody's own folder beside the clone, with a file."""
    (place := tmp_path / "elsewhere").mkdir()
    (place / "b.txt").write_text("theirs")
    return place


@pytest.mark.attack(46)
def test_nothing_is_written_or_removed_through_a_link(top: Path, elsewhere: Path) -> None:
    (top / "a").symlink_to(elsewhere)
    remove_path(str(top), "a/b.txt")
    assert (elsewhere / "b.txt").read_text() == "theirs"
    write_file(str(top), "a/b.txt", REGULAR, b"ours")
    assert (elsewhere / "b.txt").read_text() == "theirs" and (top / "a/b.txt").read_text() == "ours"
    (top / "c.txt").symlink_to(elsewhere / "b.txt")
    write_file(str(top), "c.txt", REGULAR, b"ours")
    assert (elsewhere / "b.txt").read_text() == "theirs" and not (top / "c.txt").is_symlink()


@pytest.mark.attack(45)
def test_nothing_is_removed_by_a_path_that_leads_out(top: Path, elsewhere: Path) -> None:
    (top / ".git").mkdir()
    (top / ".git/HEAD").write_text("x")
    for path in ("../elsewhere/b.txt", ".git/HEAD", "", "/etc/hostname"):
        remove_path(str(top), path)
    assert (elsewhere / "b.txt").exists() and (top / ".git/HEAD").exists()


@pytest.mark.attack(46)
def test_a_folder_is_removed_and_what_its_links_name_keeps_its_mode(tmp_path: Path, elsewhere: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    (folder / "locked").mkdir(mode=0o000)
    elsewhere.chmod(0o755)
    (folder / "link").symlink_to(elsewhere)
    remove_folder(os.fsencode(folder))
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755 and not folder.exists()


@pytest.mark.parametrize("there", ["a file", "a folder", "a pipe", "a link", "nothing"])
@pytest.mark.parametrize(("mode", "content"), [(REGULAR, b"x"), (EXECUTABLE, b"x"), (LINK, b"b.txt")])
def test_whatever_stands_in_the_way_gives_way(there: str, mode: str, content: bytes, top: Path) -> None:
    place = top / "a/b"
    place.parent.mkdir()
    if there == "a folder":
        (place / "inner").mkdir(parents=True)
    elif there == "a pipe":
        os.mkfifo(place)
    elif there == "a link":
        place.symlink_to("nowhere")
    elif there == "a file":
        place.write_text("other")
    write_file(str(top), "a/b", mode, content)
    assert os.listdir(top / "a") == ["b"] and place.is_symlink() == (mode == LINK)
    if mode == LINK:
        assert os.readlink(place) == "b.txt"
    else:
        assert place.read_bytes() == b"x" and bool(place.stat().st_mode & stat.S_IXUSR) == (mode == EXECUTABLE)
    remove_any(os.fsencode(place))
    assert not os.path.lexists(place)
    remove_any(os.fsencode(place))


def test_empty_folders_go_with_their_last_file(top: Path) -> None:
    write_file(str(top), "a/b/c", REGULAR, b"x")
    write_file(str(top), "a/d", REGULAR, b"x")
    remove_path(str(top), "a/b/c")
    assert os.listdir(top / "a") == ["d"]
