"""The previous run is put away with its own stories, whatever has taken their place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.loop.model import Prd
from ralph_mission.stores.loop import archive
from ralph_mission.stores.loop.progress_log import ProgressLog
from ralph_mission.stores.loop.stories import Stories

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
    for branch in ("ralph/one", "ralph/two", "ralph/one"):
        begin(tmp_path, branch)
    put = begin(tmp_path, "ralph/two")
    assert put == tmp_path / "archive" / "2026-05-04-one-2"
    assert sorted(path.name for path in (tmp_path / "archive").iterdir()) == [
        "2026-05-04-one", "2026-05-04-one-2", "2026-05-04-two",
    ]  # fmt: skip  # one list


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
    put = archive.put_away(tmp_path, branch, "{}", "", NOW)
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
