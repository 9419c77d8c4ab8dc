"""Links where our folders have to be: found from the top, taken away without touching what they name."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from ralph_mission.adapters import files

NAMES = (".ralph/loop/home", ".ralph/agent")


def test_folders_and_nothing_at_all_are_no_links(tmp_path: Path) -> None:
    (tmp_path / ".ralph/loop").mkdir(parents=True)
    assert files.links(tmp_path, NAMES) == () == files.unlink(tmp_path, NAMES)


def test_a_link_anywhere_on_the_way_is_found_and_what_it_names_stays(tmp_path: Path) -> None:
    (tmp_path / "out/home").mkdir(parents=True)
    (tmp_path / ".ralph").mkdir()
    for name, target in (("loop", "../out"), ("agent", "nowhere")):
        (tmp_path / ".ralph" / name).symlink_to(target)
    assert files.unlink(tmp_path, NAMES) == (".ralph/agent", ".ralph/loop")
    assert (tmp_path / "out/home").is_dir() and list((tmp_path / ".ralph").iterdir()) == []


def test_a_link_behind_a_link_is_not_taken_away(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/agent").symlink_to("/")
    (tmp_path / ".ralph").symlink_to("out")
    assert files.unlink(tmp_path, NAMES)[0] == ".ralph"
    assert (tmp_path / "out/agent").is_symlink() and not (tmp_path / ".ralph").is_symlink()


def test_a_file_on_the_way_is_none_of_its_business(tmp_path: Path) -> None:
    (tmp_path / ".ralph").write_text("x")
    assert files.unlink(tmp_path, NAMES) == () and (tmp_path / ".ralph").read_text() == "x"


def test_a_file_is_opened_by_no_link_at_any_component(tmp_path: Path) -> None:
    (tmp_path / "work/.ralph/loop").mkdir(parents=True)
    place = tmp_path / "work/.ralph/loop/denied.jsonl"
    place.write_text("ours")
    assert files.content(place, 100) == b"ours" and files.content(place, 2) == b"ou" and files.plain(place)
    (tmp_path / "work/.ralph/loop").rename(tmp_path / "elsewhere")
    (tmp_path / "work/.ralph/loop").symlink_to(tmp_path / "elsewhere")
    assert files.content(place, 100) is None and not files.plain(place)
    (tmp_path / "work/.ralph").rename(tmp_path / "further")
    (tmp_path / "work/.ralph").symlink_to(tmp_path / "further")
    assert files.content(place, 100) is None


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_nothing_but_a_plain_file_of_one_name_is_opened_or_waited_for(tmp_path: Path, kind: str) -> None:
    (tmp_path / "theirs").write_text("secret")
    place = tmp_path / "file"
    ways = {
        "link": lambda: place.symlink_to("theirs"), "second name": lambda: os.link(tmp_path / "theirs", place),
        "pipe": lambda: os.mkfifo(place), "folder": place.mkdir,
    }  # fmt: skip  # one table
    ways[kind]()
    assert files.content(place, 100) is None and not files.plain(place)


def test_no_name_leads_above_the_top(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="symbolic links"):
        files.open_plain(tmp_path / "top/../file", tmp_path / "top")
    assert files.plain(tmp_path / "top/nothing")


@pytest.mark.attack(46)
@pytest.mark.parametrize("way", [".ralph", ".ralph/cycles", ".ralph/cycles/one"])
def test_a_folder_of_ours_is_ours_with_no_link_on_the_way(tmp_path: Path, way: str) -> None:
    folder = tmp_path / ".ralph/cycles/one"
    assert files.own(folder) == folder and files.own(tmp_path / "elsewhere") == tmp_path / "elsewhere"
    (tmp_path / "theirs").mkdir()
    (tmp_path / way).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / way).symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match=re.escape(way)) as caught:
        files.own(folder)
    assert caught.value.errno == errno.ELOOP


@pytest.mark.attack(46)
@pytest.mark.parametrize("way", ["ralph", "ralph/cycles", "ralph/cycles/one"])
def test_a_folder_of_ours_in_a_git_directory_is_ours_too(tmp_path: Path, way: str) -> None:
    folder = (git := tmp_path / "ralph/apart.git") / "ralph/cycles/one"
    (tmp_path / "theirs").mkdir()
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert files.own(folder) == folder and files.top_of(folder) == git
    (git / way).parent.mkdir(parents=True, exist_ok=True)
    (git / way).symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match=re.escape(str(git / way))):
        files.own(folder)


@pytest.mark.parametrize("said", [pytest.param("[" * 200_000, id="nested"), "{", "\udcff", ""])
def test_what_is_no_json_of_ours_tells_nothing(tmp_path: Path, said: str) -> None:
    (tmp_path / "file").write_bytes(said.encode("utf-8", "surrogateescape"))
    assert files.read_json(tmp_path / "file", 1_000_000) is None and files.read_json(tmp_path / "none", 1) is None
    (tmp_path / "file").write_text('{"a": 1}')
    assert files.read_json(tmp_path / "file", 1_000_000) == {"a": 1} and files.read_json(tmp_path / "file", 7) is None


@pytest.mark.attack(46)
@pytest.mark.parametrize("target", ["{out}", "{out}/nothing", "../.git", "file", "ralph"])
def test_a_link_that_leads_out_of_the_work_tree_is_taken_away(tmp_path: Path, target: str) -> None:
    (out := tmp_path / "out").mkdir()
    (top := tmp_path / "top").mkdir()
    (top / ".git").mkdir()
    (top / "scripts").mkdir()
    (top / "scripts/file").write_text("")
    (top / "scripts/ralph").symlink_to(target.format(out=out))
    assert files.keep_within(top / "scripts/ralph/prd.json", top) == ("scripts/ralph",)
    assert not os.path.lexists(top / "scripts/ralph") and list(out.iterdir()) == []
    assert files.keep_within(top / "scripts/ralph/prd.json", top) == ()  # nothing is there


def test_a_link_that_leads_to_nothing_in_the_work_tree_yet_has_its_folder_made(tmp_path: Path) -> None:
    (tmp_path / ".omc").symlink_to("kept/of-omc")
    assert files.keep_within(tmp_path / ".omc/state/file", tmp_path) == ()
    assert (tmp_path / ".omc").is_symlink() and (tmp_path / "kept/of-omc").is_dir()


def test_links_within_the_work_tree_and_whatever_is_elsewhere_are_peoples(tmp_path: Path) -> None:
    (top := tmp_path / "top").mkdir()
    (top / "tools/ralph").mkdir(parents=True)
    (top / "scripts").symlink_to("tools")
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (top / "scripts/ralph/prd.json", tmp_path / "link/prd.json", top / "prd.json"):
        files.keep_within(path, top)
    assert (top / "scripts").is_symlink() and (tmp_path / "link").is_symlink()
    (top / "tools/ralph").rmdir()
    (top / "tools/ralph").symlink_to(tmp_path)
    files.keep_within(top / "scripts/ralph/prd.json", top)
    assert (top / "scripts").is_symlink() and not os.path.lexists(top / "tools/ralph")
