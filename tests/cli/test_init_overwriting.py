"""`ralph init` where a person's file stands: it says what would go, asks, keeps or copies, and loses nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph_mission.cli import overwriting
from ralph_mission.cli.uninstall import Fate
from tests.cli.init_place import LOOP, PINNED, hosted, states, workflow
from tests.helpers import cli_here, git

pytestmark = pytest.mark.usefixtures("known_commit")
OWN = "on: push\njobs: {}\n"


def with_own_workflow(path: Path) -> Path:
    repo = hosted(path)
    (repo / LOOP).parent.mkdir(parents=True)
    (repo / LOOP).write_text(OWN)
    return repo


def test_a_persons_workflow_is_named_with_what_would_go_and_both_ways_on(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    told = cli_here("init", repo=repo)
    assert told.code == 2
    assert "ralph.yml is there already (1 of its lines would go)" in told.err
    assert "ralph-loop.yml is there already (2 of its lines would go)" in told.err
    assert "--keep to leave what is yours as it is" in told.err
    assert "--yes to overwrite it (a copy goes to .ralph/replaced/)" in told.err
    assert (repo / LOOP).read_text() == OWN


def test_keep_leaves_a_persons_files_and_writes_the_rest(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    told = cli_here("init", "--keep", "--json", repo=repo)
    assert states(told) == {"ralph.yml": "new", "ralph-loop.yml": "kept"}
    assert (repo / LOOP).read_text() == OWN
    assert any("which is yours: listen to ralph-loop-trigger" in step for step in told.json["steps"])


def test_settings_that_are_kept_are_the_ones_that_count(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("schedule: {wake: environment, high: 20m}\n")
    cli_here("init", "--keep", repo=repo)
    assert workflow(repo)["jobs"]["wake-high"]["name"] == "Wake after 20 minutes"


def test_what_is_overwritten_is_copied_byte_for_byte(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    for own in (OWN.encode(), b"\xff not text\r\n"):
        (repo / LOOP).write_bytes(own)
        told = cli_here("init", "--yes", "--json", repo=repo)
        (file,) = (file for file in told.json["files"] if file["state"] == "replaced")
        assert Path(file["copy"]).read_bytes() == own
    assert len(list((repo / ".ralph" / "replaced").iterdir())) == 2
    assert "?? .ralph" not in git(repo, "status", "--porcelain")


def on_a_full_disk(repo: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`ralph init` as a process under which no file grows over 1 kB."""
    command = [sys.executable, "-B", "-m", "ralph_mission", "init", *options, "--repo", str(repo)]
    full = ["/bin/sh", "-c", 'ulimit -f 2; exec "$@"', "sh"]
    return subprocess.run([*full, *command], capture_output=True, text=True, check=False, timeout=60)


def test_a_copy_that_the_disk_cut_short_is_not_taken_for_the_whole_one(tmp_path: Path) -> None:
    repo, own = hosted(tmp_path), "# a line that only its author knows\n" * 200
    (repo / "ralph.yml").write_text(own)
    assert on_a_full_disk(repo, "--yes").returncode == 1
    assert (repo / "ralph.yml").read_text() == own
    cli_here("init", "--yes", repo=repo)
    (copy,) = (repo / ".ralph" / "replaced").iterdir()
    assert ((repo / "ralph.yml").read_text() == own, copy.read_text() == own) == (False, True)


def test_a_piece_of_a_copy_under_its_name_is_made_whole(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    cli_here("init", "--yes", repo=repo)
    (copy,) = (repo / ".ralph" / "replaced").iterdir()
    copy.write_text(OWN[:4])
    (repo / LOOP).write_text(OWN)
    cli_here("init", "--yes", repo=repo)
    assert copy.read_text() == OWN


def test_what_the_disk_has_no_room_for_stands_in_nobodys_way_afterwards(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    assert on_a_full_disk(repo).returncode == 1
    assert git(repo, "status", "--porcelain", "--untracked-files=all") == ""
    assert cli_here("init", repo=repo).code == 0


def test_a_file_that_is_written_anew_keeps_who_may_read_it(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    (repo / "ralph.yml").chmod(0o664)
    cli_here("init", "--yes", repo=repo)
    (copy,) = (repo / ".ralph" / "replaced").iterdir()
    assert [file.stat().st_mode & 0o777 for file in (repo / "ralph.yml", copy)] == [0o664, 0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes another user's file and can give it back")
def test_a_file_that_is_written_anew_stays_its_owners(tmp_path: Path) -> None:
    (file := tmp_path / "ralph.yml").write_text("mine\n")
    os.chown(file, 1234, 4321)
    overwriting.write([overwriting.Planned(file, "x: 1\n")], [Fate(file, "replaced")])
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321) and "x: 1" in file.read_text()


def test_where_one_file_is_for_reading_only_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "ours.yml"
    (file := tmp_path / "ralph.yml").write_text("mine\n")
    real = os.open

    def for_reading_only(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if Path(path) == file and flags & os.O_ACCMODE != os.O_RDONLY:  # root may all the same
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", for_reading_only)
    with pytest.raises(PermissionError, match=r"ralph\.yml"):
        overwriting.write(
            [overwriting.Planned(other, "x: 1\n"), overwriting.Planned(file, "x: 1\n")],
            [Fate(other, "new"), Fate(file, "replaced", tmp_path / "copy")],
        )
    assert [place.name for place in tmp_path.iterdir()] == ["ralph.yml"] and file.read_text() == "mine\n"


def test_a_person_is_told_where_the_copy_is(tmp_path: Path) -> None:
    told = cli_here("init", "--yes", repo=with_own_workflow(tmp_path))
    assert "what stood there: " in told.out and ".ralph/replaced/ralph-loop." in told.out


def test_copies_are_not_written_through_a_link(tmp_path: Path) -> None:
    repo, elsewhere = with_own_workflow(tmp_path / "repo"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repo / ".ralph").symlink_to(elsewhere)
    assert cli_here("init", "--yes", repo=repo).code == 2
    assert ((repo / LOOP).read_text(), list(elsewhere.iterdir())) == (OWN, [])


def test_a_folder_where_a_file_belongs_is_said(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / LOOP).mkdir(parents=True)
    told = cli_here("init", "--yes", repo=repo)
    assert (told.code, "ralph-loop.yml is a folder" in told.err) == (2, True)


def test_keeping_and_overwriting_at_once_is_wrong_usage(tmp_path: Path) -> None:
    assert cli_here("init", "--keep", "--yes", repo=hosted(tmp_path)).code == 2


# --- asked at a terminal ----------------------------------------------------------------


def at_a_terminal(repo: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """`ralph init` as a process with somebody there who types `answer`."""
    person, terminal = os.openpty()
    try:
        os.write(person, f"{answer}\n".encode())
        command = [sys.executable, "-m", "ralph_mission", "init", "--action", PINNED, "--repo", str(repo)]
        return subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=False, timeout=60)
    finally:
        os.close(person)
        os.close(terminal)


@pytest.mark.parametrize("answer", ["keep", ""])
def test_who_is_asked_sees_the_difference_and_may_keep_it(tmp_path: Path, answer: str) -> None:
    repo = with_own_workflow(tmp_path)
    told = at_a_terminal(repo, answer)
    assert told.returncode == 0
    assert "\n-on: push\n" in told.stderr and "\n+name: ralph-loop\n" in told.stderr
    assert "keep it, overwrite it (yours is copied to " in told.stderr
    assert "kept " in told.stdout and (repo / LOOP).read_text() == OWN


def test_who_is_asked_may_overwrite_it_and_has_a_copy(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    assert at_a_terminal(repo, "overwrite").returncode == 0
    assert PINNED in (repo / LOOP).read_text()
    (copy,) = (repo / ".ralph" / "replaced").iterdir()
    assert copy.read_text() == OWN


def test_who_says_stop_finds_nothing_changed(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    told = at_a_terminal(repo, "stop")
    assert (told.returncode, "nothing was written" in told.stderr) == (1, True)
    assert git(repo, "status", "--porcelain", "--untracked-files=all") == f"?? {LOOP}"


def test_a_difference_cannot_paint_the_terminal(tmp_path: Path) -> None:
    repo = with_own_workflow(tmp_path)
    (repo / LOOP).write_text("on: push # \x1b[2J\n" * 100)
    told = at_a_terminal(repo, "keep")
    assert "\x1b[2J" not in told.stderr
    assert " more lines\n" in told.stderr
