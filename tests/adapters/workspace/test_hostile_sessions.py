"""Whatever a session does, nothing of it reaches the user's checkout but what was judged; nothing of it is executed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph_mission.adapters.workspace.workplace import Workspace
from tests.adapters.workspace.ways import WAYS, folder_symlinked, hook
from tests.adapters.workspace.world import FILES, WHO, after, by, opened, state
from tests.helpers import git, make_repo

WRITES = """
import pathlib, sys, time
end = time.monotonic() + 20
while time.monotonic() < end:
    pathlib.Path("src/b.py").write_text("evil = 1\\n")
    pathlib.Path("src/c.py").write_text("evil = 1\\n")
"""


@pytest.mark.attack(41)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_a_session_does_never_reaches_the_checkout(way, repo, workspace, clone, tmp_path):
    before = state(repo)
    mark = workspace.mark()
    way(clone)
    (clone / "src/b.py").write_text("b = 1\n")
    work, told = after(workspace, mark)
    assert WAYS[way] <= told and "src/b.py" not in told
    assert "src/b.py" in {change.path for change in work.changes}
    assert all(change.path.startswith("src/") for change in work.changes)
    assert state(repo) == before
    assert workspace.land("Built", lists=True)
    touched = git(repo, "diff", "--name-only", "main~1", "main").split("\n")
    assert "src/b.py" in touched and all(path.startswith("src/") for path in touched)
    now = state(repo)
    same = ("obeyed", "config", "head", "dirty")
    assert {key: now[key] for key in same} == {key: before[key] for key in same}
    assert [ref for ref in now["refs"] if "/main " not in ref] == [ref for ref in before["refs"] if "/main " not in ref]
    assert not {"hooked", "monitored", "filtered"} & set(os.listdir(tmp_path))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_next_session_begins_as_if_nothing_had_been(way, repo, workspace, clone):
    mark = workspace.mark()
    way(clone)
    after(workspace, mark)
    workspace.land("Built", lists=True)
    workspace.mark()
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "log", "--format=%s") == git(repo, "log", "--format=%s")
    assert git(clone, "show-ref") == git(repo, "show-ref")
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/main" and not (clone / ".git/hooks").exists()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_later_process_finds_what_a_session_left_that_died(way, repo, workspace, clone):
    before = state(repo)
    mark = workspace.mark()
    way(clone)
    (clone / "src/b.py").write_text("b = 1\n")
    later = opened(repo)
    told = {change.path: change.reverted for change in later.set_aside(mark)}
    assert "src/b.py" in told and state(repo) == before
    later.mark()
    assert git(clone, "status", "--porcelain") == "" and not (clone / "src/b.py").exists()


@pytest.mark.attack(46)
def test_a_program_that_outlives_its_session_writes_in_the_clone_alone(repo, workspace, clone):
    mark = workspace.mark()
    (clone / "src/b.py").write_text("b = 1\n")
    (clone / "src/c.py").write_text("c = 1\n")
    work = workspace.changed(mark)
    process = subprocess.Popen([sys.executable, "-c", WRITES], cwd=clone)
    try:
        deadline = time.monotonic() + 60
        while (clone / "src/b.py").read_text() != "evil = 1\n":
            assert time.monotonic() < deadline
        assert {change.path for change in work.changes} == {"src/b.py", "src/c.py"}
        workspace.land("Built", lists=True)
    finally:
        process.kill()
        process.wait()
    assert (repo / "src/b.py").read_text() == "b = 1\n" and (repo / "src/c.py").read_text() == "c = 1\n"
    assert git(repo, "status", "--porcelain") == ""


def test_nothing_beyond_a_link_is_touched(repo, workspace, clone, tmp_path):
    mark = workspace.mark()
    folder_symlinked(clone)
    after(workspace, mark)
    assert (tmp_path / "elsewhere/guide.md").read_text() == "beyond the link\n"
    assert not (clone / "docs").is_symlink() and (clone / "docs/guide.md").read_text() == "guide 2\n"


def test_a_repository_beyond_a_link_is_left_alone(workspace, clone, tmp_path):
    mark = workspace.mark()
    make_repo(tmp_path / "elsewhere", {"y.md": "y\n"})
    (clone / "linked").symlink_to(tmp_path / "elsewhere")
    _, told = after(workspace, mark)
    assert told == {"linked"} and (tmp_path / "elsewhere/.git").is_dir() and not (clone / "linked").is_symlink()


def test_a_link_for_the_clone_itself_gives_way(repo, workspace, clone, tmp_path):
    workspace.mark()
    clone.rename(tmp_path / "moved")
    clone.symlink_to(repo)
    before = state(repo)
    opened(repo).mark()
    assert not clone.is_symlink() and (clone / "run.sh").exists() and state(repo) == before


def test_no_hook_of_the_user_runs_when_it_lands(repo, workspace, clone, tmp_path):
    hook(repo)
    mark = workspace.mark()
    (clone / "src/b.py").write_text("b = 1\n")
    workspace.changed(mark)
    workspace.land("Built", lists=True)
    assert not (tmp_path / "hooked").exists() and (repo / "src/b.py").exists()


def test_a_session_has_no_remote_no_credential_and_no_setting_of_the_user(repo, workspace, clone):
    git(repo, "remote", "add", "origin", "https://mara:secret@example.invalid/x.git")
    git(repo, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(repo, "config", "alias.x", "!touch ran")
    workspace.mark()
    assert git(clone, "remote") == "" and "secret" not in (clone / ".git/config").read_text()
    assert "remotes" not in git(clone, "for-each-ref") and "alias" not in (clone / ".git/config").read_text()


def test_two_histories_that_a_session_makes_of_one_land_as_one_commit(repo, workspace, clone):
    mark = workspace.mark()
    for number in (1, 2):
        (clone / "src/b.py").write_text(f"b = {number}\n")
        by(clone, "add", ".")
        by(clone, "commit", "--quiet", "--message", f"Step {number}")
    work = workspace.changed(mark)
    assert work.messages == ("Step 1", "Step 2")
    workspace.land("\n\n".join(work.messages), lists=True)
    assert git(repo, "log", "--format=%an: %s", "main~1..main") == "Mara: Step 1"


@pytest.mark.parametrize("base", ["", "HEAD~1"], ids=["no parent", "another base"])
def test_messages_of_another_history_are_read_no_further_than_their_bounds(base, repo, workspace, clone):
    mark = workspace.mark()
    tree = git(clone, "rev-parse", "HEAD^{tree}")
    tip = ""
    for number in range(30):
        parents = ("-p", tip) if tip else (("-p", base) if base else ())
        tip = git(clone, *WHO, "commit-tree", tree, *parents, "-m", f"Step {number}")
    git(clone, "update-ref", "refs/heads/main", tip)
    assert len(workspace.changed(mark).messages) <= 20


@pytest.mark.parametrize("content", [b"", b"ref: ../../../x\n", b"ref: refs/heads/none\n", b"\xff" * 10_000, b"0" * 40])
def test_a_head_that_names_nothing_gives_no_messages(content, workspace, clone):
    mark = workspace.mark()
    (clone / ".git/HEAD").write_bytes(content)
    assert workspace.changed(mark).messages == ()


def test_what_was_ignored_when_the_session_began_stays_for_the_next(repo, workspace: Workspace, clone: Path) -> None:
    mark = workspace.mark()
    (clone / "build").mkdir()
    (clone / "build/x.o").write_text("object\n")
    (clone / "src/b.py").write_text("b = 1\n")
    workspace.changed(mark)
    workspace.land("Built", lists=True)
    workspace.mark()
    assert (clone / "build/x.o").read_text() == "object\n" and not (repo / "build").exists()
    assert FILES[".gitignore"] == "build/\n"
