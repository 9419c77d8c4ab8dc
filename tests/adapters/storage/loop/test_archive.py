"""The previous run is put away with its own stories, whatever has taken their place."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from ralph_mission.adapters.storage.loop import archive
from ralph_mission.adapters.storage.loop.notes import ProgressLog
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.loop.model.state import Prd

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ENTRY = "## [2026-05-04 12:00] - US-001\n- Did it\n---\n"


def text(branch: str) -> str:
    return f'{{"branchName": "{branch}", "userStories": [{{"id": "US-001", "title": "For {branch}"}}]}}\n'


def begin(root: Path, branch: str, now: datetime = NOW) -> Path | None:
    """A run of `branch` starts in a process of its own, and writes one entry."""
    (root / "prd.json").write_text(text(branch))
    stories, log = Stories(root), ProgressLog(root)
    prd = stories.read()
    assert prd is not None
    put = archive.turn(stories, log, prd, now)
    log.append(ENTRY.replace("Did it", f"Did {branch}"), now)
    return put


def test_the_archive_holds_the_old_list_and_not_the_new_one(tmp_path: Path) -> None:
    # snarktank/ralph copies prd.json after it was overwritten: the new list is archived, the old one is lost.
    assert begin(tmp_path, "ralph/one") is None
    put = begin(tmp_path, "ralph/two")
    assert put == tmp_path / "archive" / "2026-05-04-one"
    assert (put / "prd.json").read_text() == text("ralph/one")
    assert "Did ralph/one" in (put / "progress.txt").read_text()
    assert (tmp_path / "prd.json").read_text() == text("ralph/two")
    assert (tmp_path / ".last-branch").read_text() == "ralph/two\n"


def test_the_new_runs_log_is_begun_anew(tmp_path: Path) -> None:
    begin(tmp_path, "ralph/one")
    begin(tmp_path, "ralph/two")
    now = (tmp_path / "progress.txt").read_text()
    assert now.startswith("# Ralph Progress Log\n")
    assert "Did ralph/one" not in now
    assert "Did ralph/two" in now


def test_the_same_branch_goes_on(tmp_path: Path) -> None:
    begin(tmp_path, "ralph/one")
    assert begin(tmp_path, "ralph/one") is None
    assert (tmp_path / "progress.txt").read_text().count("Did ralph/one") == 2


def test_a_second_archive_of_a_day_does_not_overwrite_the_first(tmp_path: Path) -> None:
    for hour, branch in enumerate(("ralph/one", "ralph/two", "ralph/one")):
        begin(tmp_path, branch, NOW.replace(hour=hour))
    put = begin(tmp_path, "ralph/two")
    assert put == tmp_path / "archive" / "2026-05-04-one-2"
    assert sorted(path.name for path in (tmp_path / "archive").iterdir()) == [
        "2026-05-04-one", "2026-05-04-one-2", "2026-05-04-two",
    ]  # fmt: skip  # one list


class Killed(BaseException):
    """Nothing of ours runs any more."""


def killed(*_: object) -> NoReturn:
    raise Killed


@pytest.mark.parametrize(
    ("where", "what"), [(archive, "mark"), (ProgressLog, "begin"), (os, "rename"), (Path, "chmod")]
)
def test_whoever_dies_while_a_run_is_put_away_leaves_one_archive_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, what: str
) -> None:
    begin(tmp_path, "ralph/one")
    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(where, what, killed)
        begin(tmp_path, "ralph/two")
    begin(tmp_path, "ralph/two", NOW + timedelta(days=1))
    (put,) = (tmp_path / "archive").iterdir()
    assert (put / "prd.json").read_text() == text("ralph/one")
    assert "Did ralph/one" in (put / "progress.txt").read_text()
    assert archive.last_branch(tmp_path) == "ralph/two"


@pytest.mark.parametrize("stands", ["empty folder", "file", "link"])
def test_a_name_that_is_not_an_archives_yet_is_filled_and_any_other_passed_over(tmp_path: Path, stands: str) -> None:
    (tmp_path / "theirs").mkdir()
    (place := tmp_path / "archive/2026-05-04-one").parent.mkdir()
    ways = {"empty folder": place.mkdir, "file": place.touch, "link": lambda: place.symlink_to(tmp_path / "theirs")}
    ways[stands]()
    put = archive.archive_stories(tmp_path, "ralph/one", "{}", "", NOW)
    assert put == (place if stands == "empty folder" else place.with_name("2026-05-04-one-2"))
    assert (put / "prd.json").read_text() == "{}" and not list((tmp_path / "theirs").iterdir())


@pytest.mark.parametrize("name", [f"{archive.HALF}abcd_123", f"{archive.HALF}notes", ".ralph-notes"])
@pytest.mark.parametrize("holds", ["prd.json", "precious.md", "progress.txt/x", ".prd.json.1.2"])
def test_only_what_we_had_begun_ourselves_is_removed(tmp_path: Path, name: str, holds: str) -> None:
    (file := tmp_path / "archive" / name / holds).parent.mkdir(parents=True)
    file.write_text("theirs")
    (link := tmp_path / "archive" / f"{archive.HALF}aaaaaaaa").symlink_to(tmp_path)
    assert archive.archive_stories(tmp_path, "ralph/one", "{}", "", NOW)
    ours = name.endswith("abcd_123") and holds in ("prd.json", ".prd.json.1.2")
    assert file.exists() != ours and link.is_symlink()


def test_a_list_nobody_has_read_is_not_replaced_by_the_new_one(tmp_path: Path) -> None:
    (tmp_path / ".last-branch").write_text("ralph/old\n")
    (tmp_path / "progress.txt").write_text("# Ralph Progress Log\n" + ENTRY)
    put = begin(tmp_path, "ralph/new")
    assert put is not None
    assert [path.name for path in put.iterdir()] == ["progress.txt"]


def test_nothing_to_keep_leaves_no_archive(tmp_path: Path) -> None:
    (tmp_path / ".last-branch").write_text("ralph/old\n")
    assert begin(tmp_path, "ralph/new") is None
    assert list(tmp_path.glob("archive/*")) == []


def test_a_list_without_a_branch_changes_nothing(tmp_path: Path) -> None:
    begin(tmp_path, "ralph/one")
    assert archive.turn(Stories(tmp_path), ProgressLog(tmp_path), Prd(), NOW) is None
    assert archive.last_branch(tmp_path) == "ralph/one"


@pytest.mark.parametrize(
    ("branch", "name"),
    [("../../etc", "etc"), ("feature/a b", "feature-a-b"), ("..", "run"), ("ralph/x/../y", "x-..-y"), ("/", "run"),
     ("ralph/" + "n" * 300, "n" * 80)],
)  # fmt: skip  # a table
def test_a_branch_leads_nowhere_but_into_the_archive(tmp_path: Path, branch: str, name: str) -> None:
    put = archive.archive_stories(tmp_path, branch, "{}", "", NOW)
    assert put == tmp_path / "archive" / f"2026-05-04-{name}"


def test_a_list_in_another_folder_has_its_archive_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "scripts" / "ralph"
    folder.mkdir(parents=True)
    for branch in ("ralph/one", "ralph/two"):
        (folder / "prd.json").write_text(text(branch))
        stories = Stories(tmp_path)
        prd = stories.read()
        assert prd is not None
        archive.turn(stories, ProgressLog(stories.folder, tmp_path), prd, NOW)
    assert (folder / "archive/2026-05-04-one/prd.json").read_text() == text("ralph/one")
