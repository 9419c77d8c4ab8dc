"""What one guard of a checkout that a session works in alone holds back."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from ralph_mission.gateways import (
    checkout_files,
    checkout_flags,
    checkout_guard,
    checkout_history,
    checkout_kept,
    checkout_listed,
    checkout_live,
    checkout_mark,
    checkout_sound,
    checkout_steering,
    checkout_user,
    checkout_writing,
    workshop,
    worktrees,
)
from ralph_mission.gateways.checkout_files import LINK, OTHER, REGULAR, File, Reader
from ralph_mission.gateways.git import Git, GitError
from ralph_mission.safety.patch import FileChange
from ralph_mission.trouble import Trouble

OID = "a" * 40


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """A repository with one commit."""
    top = tmp_path / "a checkout"
    top.mkdir()
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(
            ["git", "-c", "user.name=m", "-c", "user.email=m@example.org", *words],
            cwd=top,
            check=True,
            capture_output=True,
        )
    return Git.open(top)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Somebody's own folder beside the checkout, with a file."""
    (place := tmp_path / "elsewhere").mkdir()
    (place / "b.txt").write_text("theirs")
    return place


# --- writing and removing --------------------------------------------------------------


@pytest.mark.attack(46)
def test_nothing_is_written_or_removed_through_a_link(git: Git, elsewhere: Path) -> None:
    top = str(git.work_tree)
    os.symlink(elsewhere, f"{top}/a")
    checkout_writing.remove(top, "a/b.txt")
    assert (elsewhere / "b.txt").read_text() == "theirs"
    checkout_writing.restore(top, "a/b.txt", File(REGULAR, OID), b"ours")
    assert (elsewhere / "b.txt").read_text() == "theirs" and Path(top, "a/b.txt").read_text() == "ours"


@pytest.mark.attack(45)
def test_nothing_is_removed_by_a_path_that_leads_out(git: Git, elsewhere: Path) -> None:
    for path in ("../elsewhere/b.txt", ".git/HEAD"):
        checkout_writing.remove(str(git.work_tree), path)
    assert (elsewhere / "b.txt").exists() and (git.git_dir / "HEAD").exists()


@pytest.mark.attack(46)
def test_a_folder_is_removed_and_what_its_links_name_keeps_its_mode(tmp_path: Path, elsewhere: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    elsewhere.chmod(0o755)
    (folder / "link").symlink_to(elsewhere)
    checkout_kept.remove_folder(os.fsencode(folder))
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755 and not folder.exists()


# --- reading ---------------------------------------------------------------------------


@pytest.mark.attack(46)
def test_a_pipe_and_a_link_are_seen_as_what_they_are(git: Git, elsewhere: Path) -> None:
    top = Path(str(git.work_tree))
    os.mkfifo(top / "pipe")
    (top / "link").symlink_to(elsewhere / "b.txt")
    reader = Reader(git)
    assert reader._file(str(top / "pipe"), os.lstat(top / "pipe")).mode == OTHER
    assert reader._file(str(top / "link"), os.lstat(top / "link")).mode == LINK


@pytest.mark.attack(46)
def test_a_link_that_came_after_the_look_is_not_read(git: Git, elsewhere: Path) -> None:
    top = Path(str(git.work_tree))
    (top / "file").write_text("mine")
    before = os.lstat(top / "file")
    (top / "file").unlink()
    (top / "file").symlink_to(elsewhere / "b.txt")
    assert Reader(git)._file(str(top / "file"), before).oid == checkout_files.UNREADABLE


@pytest.mark.attack(50)
def test_a_time_that_a_session_cannot_set_tells_of_a_change() -> None:
    def seen(changed: int) -> checkout_files.Signature:
        file = SimpleNamespace(st_ctime_ns=changed, st_mtime_ns=1, st_ino=2, st_size=3, st_mode=4)
        return checkout_files._signature(file)  # type: ignore[arg-type]  # as much as is asked

    assert seen(5) == seen(5) != seen(6)


@pytest.mark.attack(50)
def test_what_changed_a_moment_ago_is_read_once_more() -> None:
    moment = 1_000_000_000_000_000_123
    assert not checkout_files.settled(moment, moment + checkout_files.FRESH)
    assert checkout_files.settled(moment, moment + checkout_files.FRESH + 1)
    assert not checkout_files.settled(moment - 123, moment + checkout_files.FRESH)  # a clock of whole seconds


@pytest.mark.attack(45)
@pytest.mark.parametrize("path", ["../x", "a/../x", ".git/config", "a/.GIT/x", "/x"])
def test_an_index_that_names_what_git_refuses_is_not_believed(path: str) -> None:
    with pytest.raises(GitError, match="the index names"):
        checkout_listed.listing([f"H 100644 {OID} 0\t{path}"])


@pytest.mark.attack(50)
def test_both_flags_that_hide_changes_are_known() -> None:
    assert [letter for letter in "HhSs" if checkout_flags.flagged(letter)] == ["h", "S", "s"]


# --- the repository --------------------------------------------------------------------


def test_what_a_session_began_and_did_not_end_is_ended(git: Git) -> None:
    (git.git_dir / "MERGE_HEAD").write_text(OID)
    assert [one.path for one in checkout_guard.abandon(git, frozenset())] == [".git/MERGE_HEAD"]
    assert not (git.git_dir / "MERGE_HEAD").exists()


@pytest.mark.attack(46)
def test_a_repository_that_was_exchanged_for_a_link_ends_it(git: Git, tmp_path: Path) -> None:
    git.git_dir.rename(tmp_path / "moved")
    git.git_dir.symlink_to(tmp_path / "moved")
    with pytest.raises(Trouble, match="is no folder any more"):
        checkout_guard._present(git)


def test_an_index_that_was_cut_is_not_whole(git: Git) -> None:
    (Path(str(git.work_tree)) / "x").write_text("x")
    git.run("update-index", "--add", "x")
    assert checkout_sound.index(git)
    raw = (git.git_dir / "index").read_bytes()
    (git.git_dir / "index").write_bytes(raw[:-30] + bytes(reversed(raw[-30:])))
    assert not checkout_sound.index(git)


def test_a_lock_of_a_ref_a_huge_one_and_one_that_names_nothing_are_no_refs(tmp_path: Path) -> None:
    said = {"a": OID, "b": "ref: refs/heads/a", "c.lock": OID, "d": "nothing", "e": OID + " " * 5_000}
    for name, text in said.items():
        (tmp_path / name).write_text(text)
    assert [name for name in said if checkout_sound._no_ref(str(tmp_path / name))] == ["c.lock", "d", "e"]


@pytest.mark.attack(44)
def test_only_an_id_names_a_commit_that_landed(git: Git) -> None:
    assert checkout_history.landed(git, git.resolve("HEAD"))
    assert not any(checkout_history.landed(git, name) for name in ("HEAD", "main", "--all", ""))


def test_a_commit_that_is_made_anew_has_no_signature_of_the_old_one() -> None:
    signed = f"tree {OID}\nauthor m\ngpgsig -----BEGIN\n abc\n -----END\n\nwords".encode()
    assert b"gpgsig" not in checkout_history._reheaded(signed, OID, [], False)
    assert b"gpgsig" in checkout_history._reheaded(signed, OID, [], True)


@pytest.mark.attack(19)
def test_a_note_moves_no_branch_back_and_none_that_no_loop_had_noted(git: Git) -> None:
    old = git.resolve("HEAD")
    new = git.commit_tree(git.text("rev-parse", "HEAD^{tree}"), [old], "more", datetime.now(UTC))

    def of_a_loop(before: dict[str, str], tip: str, was: str) -> bool:
        then = checkout_history.Place(old, "refs/heads/main", {"refs/heads/x": was}, noted=before)
        now = checkout_history.Place(old, "refs/heads/main", {"refs/heads/x": tip}, noted={"refs/heads/x": "now"})
        return checkout_history._of_a_loop(git, "refs/heads/x", then, now)

    assert of_a_loop({"refs/heads/x": "then"}, new, old)
    assert not of_a_loop({"refs/heads/x": "then"}, old, new)
    assert not of_a_loop({}, new, old)
    assert not of_a_loop({"refs/heads/x": "now"}, new, old)


@pytest.mark.attack(19)
def test_a_mark_that_is_none_is_refused(git: Git) -> None:
    tree = git.text("rev-parse", "HEAD^{tree}")
    forged = [git.commit_tree(tree, [], said, datetime.now(UTC)) for said in ('{"head": "forged"}', "[" * 200_000)]
    for name in (*forged, OID):
        with pytest.raises(Trouble, match="cannot be read"):
            checkout_mark.load(git, name)


def test_a_branch_that_moved_meanwhile_is_left_alone(git: Git) -> None:
    old = git.resolve("HEAD")
    new, other = (
        git.commit_tree(git.text("rev-parse", "HEAD^{tree}"), [old], said, datetime.now(UTC)) for said in "ab"
    )
    git.move_ref("refs/heads/main", other, old)
    with pytest.raises(Trouble, match="moved while it was put right"):
        checkout_history.moved(git, "refs/heads/main", new, old)
    assert git.resolve("refs/heads/main") == other


# --- other loops, settings, clones -----------------------------------------------------


@pytest.fixture
def held(git: Git) -> Iterator[Path]:
    """A lock that a loop holds."""
    lock = git.git_dir / checkout_live.LOCK
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lock


def test_a_lock_that_is_held_is_a_loop_that_runs(held: Path) -> None:
    assert checkout_live.held(held.parent) and not checkout_live.held(held.parent / "none")


def test_a_git_directory_that_is_held_is_a_loop_that_runs_whatever_became_of_its_note(git: Git) -> None:
    folder = os.open(git.git_dir, os.O_RDONLY)
    assert not checkout_live.held(git.git_dir)
    fcntl.flock(folder, fcntl.LOCK_EX)
    assert checkout_live.held(git.git_dir)
    os.close(folder)


@pytest.mark.attack(46)
def test_a_note_is_read_by_no_link(tmp_path: Path, elsewhere: Path) -> None:
    (tmp_path / "note").symlink_to(elsewhere / "b.txt")
    assert checkout_live._read(elsewhere / "b.txt") == "theirs" and checkout_live._read(tmp_path / "note") == ""


@pytest.mark.attack(60)
def test_settings_of_agents_that_came_go_and_what_their_links_name_stays(git: Git, elsewhere: Path) -> None:
    top = Path(str(git.work_tree))
    (top / ".claude").symlink_to(elsewhere)
    (top / ".mcp.json").write_text("{}")
    assert [one.path for one in checkout_steering.put_away(str(top), {".mcp.json"})] == [".claude"]
    assert (top / ".mcp.json").exists() and not (top / ".claude").is_symlink() and (elsewhere / "b.txt").exists()


@pytest.mark.attack(41)
def test_on_a_runner_no_settings_of_a_home_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "a file")
    assert checkout_user._environment()["GIT_CONFIG_GLOBAL"] == "a file"
    assert checkout_user._default_excludes() != os.devnull
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert checkout_user._environment()["GIT_CONFIG_GLOBAL"] == checkout_user._default_excludes() == os.devnull


@pytest.mark.attack(45)
@pytest.mark.parametrize("path", ["../x", ".git/config", "a/.GIT/hooks/x"])
def test_no_change_of_an_unsafe_path_is_made_in_a_clone(path: str) -> None:
    with pytest.raises(Trouble, match=re.escape(repr(path))):
        workshop._entries([FileChange(path, "", REGULAR, None, b"x")])


def test_of_two_builders_the_second_gives_way_above_below_and_at_a_path() -> None:
    taken = {"src/tide": "one"}
    assert [worktrees._met(path, taken) for path in ("src/tide", "src", "src/tide/a.py", "src/tides")] == [
        "one", "one", "one", ""
    ]  # fmt: skip  # one row
