"""A loop that begins and ends elsewhere within one session has noted its branch: nobody undoes what it did there.

A note can be forged by a session, which gains a branch of its own by it and nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph_mission.gateways import checkout_live as live
from ralph_mission.gateways.checkout import Checkout
from ralph_mission.gateways.git import Git
from tests.gateways.checkout_world import by, opened
from tests.helpers import commit, git

BESIDE = "refs/heads/ralph-run/beside"


def noted(repo: Path, branch: str = BESIDE) -> None:
    live.note(Git.open(repo), branch)


def grown(repo: Path, branch: str) -> str:
    """The branch with a commit more, made without its work tree."""
    made = git(repo, "-c", "user.name=A", "-c", "user.email=a@example.org",
               "commit-tree", "HEAD^{tree}", "-p", branch, "-m", "x")  # fmt: skip  # one call
    by(repo, "update-ref", branch, made)
    return made


def told(checkout: Checkout, mark: str) -> dict[str, str]:
    return {change.path: change.how for change in checkout.changed(mark).foreign}


def test_the_new_branch_of_a_loop_that_came_and_went_stays(repo: Path, checkout: Checkout) -> None:
    mark = checkout.mark()
    noted(repo)
    git(repo, "branch", "ralph-run/beside")
    made = grown(repo, BESIDE)
    assert told(checkout, mark) == {}
    assert git(repo, "rev-parse", BESIDE) == made


def test_a_branch_without_a_note_does_not_stay(repo: Path, checkout: Checkout) -> None:
    mark = checkout.mark()
    git(repo, "branch", "ralph-run/beside")
    assert told(checkout, mark) == {BESIDE: "created"}


def test_a_loop_that_goes_on_elsewhere_keeps_its_commits(repo: Path, tmp_path: Path) -> None:
    git(repo, "branch", "ralph-run/beside")
    noted(repo)
    mark = opened(repo, tmp_path).mark()
    noted(repo)
    made = grown(repo, BESIDE)
    assert told(opened(repo, tmp_path), mark) == {}  # also for a process that only reads the mark
    assert git(repo, "rev-parse", BESIDE) == made


@pytest.mark.parametrize("name", ["other", "main"])
def test_a_forged_note_gains_no_branch_that_no_loop_had(repo: Path, checkout: Checkout, name: str) -> None:
    git(repo, "checkout", "--quiet", "-b", "mine")
    before, mark = git(repo, "rev-parse", name), checkout.mark()
    noted(repo, f"refs/heads/{name}")
    grown(repo, f"refs/heads/{name}")
    assert told(checkout, mark) == {f"refs/heads/{name}": "moved"}
    assert git(repo, "rev-parse", name) == before


def test_the_branch_of_the_main_work_tree_is_nobody_elses(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "-b", "apart", str(tmp_path / "apart"))
    noted(repo, "refs/heads/main")
    checkout = opened(tmp_path / "apart", tmp_path)
    before, mark = git(repo, "rev-parse", "main"), checkout.mark()
    noted(repo, "refs/heads/main")
    grown(repo, "refs/heads/main")
    assert told(checkout, mark) == {"refs/heads/main": "moved"}
    assert git(repo, "rev-parse", "main") == before


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_no_note_loses_what_stood_on_a_branch(repo: Path, checkout: Checkout, how: str) -> None:
    commit(repo, {"src/a.py": "a = 2\n"})
    git(repo, "branch", "ralph-run/beside")
    noted(repo)
    before, mark = git(repo, "rev-parse", BESIDE), checkout.mark()
    noted(repo)
    by(repo, "update-ref", *(("-d", BESIDE) if how == "deleted" else (BESIDE, "HEAD~1")))
    assert told(checkout, mark) == {BESIDE: how}
    assert git(repo, "rev-parse", BESIDE) == before


def test_what_a_session_puts_in_place_of_notes_is_no_note(repo: Path) -> None:
    folder = repo / ".git" / live.NOTES
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(repo / ".git/HEAD")
    (folder / "bytes").write_bytes(b"\0\xff\n \n")
    assert live.noted(Git.open(repo)) == {}
    noted(repo)
    assert list(live.noted(Git.open(repo))) == [BESIDE]


@pytest.mark.parametrize("there", ["file", "link", "nothing"])
def test_a_note_is_written_whatever_stands_in_its_way(repo: Path, tmp_path: Path, there: str) -> None:
    folder, beyond = repo / ".git" / live.NOTES, tmp_path / "beyond"
    beyond.mkdir()
    if there == "file":
        folder.write_text("x")
    elif there == "link":
        folder.symlink_to(beyond)
    noted(repo)
    assert list(live.noted(Git.open(repo))) == [BESIDE] and not list(beyond.iterdir())
