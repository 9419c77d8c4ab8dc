"""prd.json in a work tree: found where the originals put it, edited in place, never lost to a session."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.stories import FOLDERS, Stories
from ralph_mission.loop.model.spec import LoopPreset, RunSpec
from ralph_mission.loop.model.state import CheckResult, Prd
from ralph_mission.loop.stories import judge as judging
from tests.loop.making import passing

TEXT = """\
{
  "project": "Shop",
  "branchName": "ralph/one",
  "userStories": [
    {
      "id": "US-001",
      "title": "A",
      "acceptanceCriteria": [
        "x"
      ],
      "priority": 1,
      "passes": false,
      "architectVerified": false
    },
    {
      "id": "US-002",
      "title": "B",
      "acceptanceCriteria": [
        "y"
      ],
      "priority": 2,
      "passes": false,
      "notes": ""
    }
  ],
  "reconciliation": {
    "staleAfterMs": 10
  }
}
"""


def known(root: Path, text: str = TEXT, folder: str = "") -> tuple[Stories, Prd]:
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / "prd.json").write_text(text)
    store = Stories(root)
    found = store.read()
    assert found is not None
    return store, found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_list_is_written_back_where_it_was_found(tmp_path: Path, folder: str) -> None:
    store, prd = known(tmp_path, folder=folder)
    store.write(passing(prd, "US-001"))
    assert (tmp_path / folder / "prd.json").read_text() == TEXT.replace('"passes": false', '"passes": true', 1)
    assert store.folder == tmp_path / folder


def test_the_first_place_goes_first_and_a_named_file_before_all(tmp_path: Path) -> None:
    for folder in reversed(FOLDERS):
        known(tmp_path, folder=folder)
    assert Stories(tmp_path).find() == tmp_path / "prd.json"
    named = tmp_path / "other.json"
    assert Stories(tmp_path, named).find() is None
    named.write_text(TEXT)
    assert Stories(tmp_path, named).find() == named


def test_without_a_list_there_is_none_and_nothing_to_complain_about(tmp_path: Path) -> None:
    store = Stories(tmp_path)
    assert (store.read(), store.complaint, store.restore(), store.folder) == (None, "", (), tmp_path)


def test_the_folder_is_where_a_log_is_when_there_is_no_list(tmp_path: Path) -> None:
    (tmp_path / ".omc").mkdir()
    (tmp_path / ".omc" / "progress.txt").write_text("# Ralph Progress Log\n")
    assert Stories(tmp_path).folder == tmp_path / ".omc"


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[[[", b'{"userStories": 1}'])
def test_an_unreadable_list_is_the_last_known_with_a_complaint(tmp_path: Path, damage: bytes) -> None:
    store, prd = known(tmp_path)
    (tmp_path / "prd.json").write_bytes(damage)
    assert store.read() == prd
    assert store.complaint.startswith("prd.json cannot be read (")
    (tmp_path / "prd.json").write_text(TEXT)
    assert (store.read(), store.complaint) == (prd, "")


def test_a_new_process_still_knows_the_list_that_became_unreadable(tmp_path: Path) -> None:
    _, prd = known(tmp_path)
    (tmp_path / "prd.json").write_text(TEXT[:90])
    store = Stories(tmp_path)
    assert store.read() == prd
    assert store.complaint


def test_a_new_list_with_a_mistake_in_it_is_not_taken_for_the_finished_one_before(tmp_path: Path) -> None:
    store, prd = known(tmp_path)
    store.write(passing(prd, "US-001", "US-002"))
    (tmp_path / "prd.json").write_text(TEXT.replace("ralph/one", "ralph/two")[:90])
    store = Stories(tmp_path)
    assert store.read() is None
    assert "cannot be read" in store.complaint and "last known" not in store.complaint


def test_a_deleted_list_is_the_last_known_with_a_complaint(tmp_path: Path) -> None:
    store, prd = known(tmp_path)
    (tmp_path / "prd.json").unlink()
    assert store.read() == prd
    assert "no such file" in store.complaint


def test_a_list_elsewhere_does_not_take_the_place_of_a_deleted_one(tmp_path: Path) -> None:
    store, prd = known(tmp_path)
    (tmp_path / "prd.json").unlink()
    (tmp_path / ".omc").mkdir()
    (tmp_path / ".omc" / "prd.json").write_text('{"userStories": [{"id": "X", "passes": true}]}')
    assert store.read() == prd


def test_a_list_that_a_session_deleted_is_put_back_byte_for_byte(tmp_path: Path) -> None:
    store, _ = known(tmp_path)
    (tmp_path / "prd.json").unlink()
    assert [(change.path, change.how) for change in store.restore()] == [("prd.json", "deleted")]
    assert (tmp_path / "prd.json").read_text() == TEXT
    assert store.restore() == ()


def test_a_list_that_a_session_cut_is_put_back_and_the_rest_kept_aside(tmp_path: Path) -> None:
    store, _ = known(tmp_path)
    (tmp_path / "prd.json").write_text(TEXT[:60])
    assert [change.how for change in store.restore()] == ["unreadable"]
    assert (tmp_path / "prd.json").read_text() == TEXT
    assert (tmp_path / ".ralph/loop/prd.broken.json").read_text() == TEXT[:60]


def test_the_list_survives_an_agent_that_deletes_the_folder_of_the_run(tmp_path: Path) -> None:
    store, _ = known(tmp_path, folder=".ralph")
    (tmp_path / ".ralph/prd.json").unlink()
    (tmp_path / ".ralph/loop/prd.json").unlink()
    (tmp_path / ".ralph/loop").rmdir()
    (tmp_path / ".ralph").rmdir()
    assert [change.path for change in store.restore()] == [".ralph/prd.json"]
    assert (tmp_path / ".ralph/prd.json").read_text() == TEXT


def test_an_amended_criterion_is_put_back_in_the_file_with_every_unknown_key(tmp_path: Path) -> None:
    store, before = known(tmp_path)
    damaged = json.loads(TEXT)
    damaged["userStories"][0] |= {"acceptanceCriteria": ["easier"], "passes": True}
    del damaged["userStories"][1], damaged["reconciliation"]
    (tmp_path / "prd.json").write_text(json.dumps(damaged))
    after = store.read()
    spec = RunSpec("x", LoopPreset("prd", stories=True))
    judged = judging.judge_stories(spec, "US-001", before, after, CheckResult(green=True, ran=True))
    assert judged.prd is not None
    store.write(judged.prd)
    assert (tmp_path / "prd.json").read_text() == TEXT.replace('"passes": false', '"passes": true', 1)


def test_a_list_that_a_person_changes_between_sessions_is_taken_as_it_is(tmp_path: Path) -> None:
    store, _ = known(tmp_path)
    (tmp_path / "prd.json").write_text(TEXT.replace('"title": "B"', '"title": "Better"'))
    prd = store.read()
    assert prd is not None and prd.stories[1].title == "Better"
    store.write(passing(prd, "US-002"))
    assert '"title": "Better"' in (tmp_path / "prd.json").read_text()


def test_a_list_that_stands_nowhere_is_written_anew(tmp_path: Path) -> None:
    _, prd = known(tmp_path)
    elsewhere = tmp_path / "new"
    store = Stories(elsewhere)
    store.write(prd)
    assert store.read() == prd


def test_a_mark_of_an_editor_stays(tmp_path: Path) -> None:
    store, prd = known(tmp_path, "\ufeff" + TEXT)
    store.write(passing(prd, "US-001"))
    assert (tmp_path / "prd.json").read_text().startswith('\ufeff{\n  "project": "Shop",\n')


def test_a_link_within_the_work_tree_is_followed_and_one_that_leads_out_is_not(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside.json"
    (root / "docs").mkdir(parents=True)
    (root / "docs/list.json").write_text(TEXT)
    os.symlink("docs/list.json", root / "prd.json")
    store = Stories(root)
    prd = store.read()
    assert prd is not None
    store.write(passing(prd, "US-001"))
    assert (root / "prd.json").is_symlink()
    assert '"passes": true' in (root / "docs/list.json").read_text()
    outside.write_text(TEXT)
    (root / "prd.json").unlink()
    os.symlink(outside, root / "prd.json")
    store.write(passing(prd, "US-002"))
    assert outside.read_text() == TEXT


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_whatever_stands_in_the_lists_place_is_moved_aside(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "work"
    store, prd = known(root)
    (tmp_path / "outside.json").write_text('{"userStories": [{"id": "X", "passes": true}]}')
    for _ in range(2):
        (root / "prd.json").unlink()
        {
            "folder": lambda: (root / "prd.json").mkdir(),
            "pipe": lambda: os.mkfifo(root / "prd.json"),
            "link": lambda: os.symlink(tmp_path / "outside.json", root / "prd.json"),
        }[kind]()
        assert store.read() == prd
        assert store.complaint
        assert [change.how for change in store.restore()] == ["unreadable"]
        assert (root / "prd.json").read_text() == TEXT


def test_a_list_keeps_its_mode(tmp_path: Path) -> None:
    store, prd = known(tmp_path)
    (tmp_path / "prd.json").chmod(0o664)
    store.write(passing(prd, "US-001"))
    assert (tmp_path / "prd.json").stat().st_mode & 0o777 == 0o664


def test_the_list_of_the_branch_before_is_still_known(tmp_path: Path) -> None:
    store, _ = known(tmp_path)
    (tmp_path / "prd.json").write_text(TEXT.replace("ralph/one", "ralph/two"))
    store.read()
    assert Stories(tmp_path).text_of("ralph/one") == TEXT
    assert store.text_of("ralph/two") == TEXT.replace("ralph/one", "ralph/two")
    assert store.text_of("ralph/three") is None
