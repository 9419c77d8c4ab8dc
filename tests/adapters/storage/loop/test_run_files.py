"""How the loop's files are written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.errors import UserError


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file"
    run_files.write(place, b"one")
    place.chmod(0o640)
    run_files.write(place, b"two")
    assert place.read_bytes() == b"two"
    assert place.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in place.parent.iterdir()] == ["file"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("theirs")
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")
    run_files.write(tmp_path / "file", b"ours")
    assert (tmp_path / "elsewhere").read_text() == "theirs"
    assert not (tmp_path / "file").is_symlink()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_files.write(tmp_path / "file", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        run_files.write(tmp_path / "file", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_torn_last_line_is_ended_before_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"whole": 1}\n{"to')
    run_files.append(tmp_path / "log", b'{"next": 2}\n')
    assert (tmp_path / "log").read_bytes() == b'{"whole": 1}\n{"to\n{"next": 2}\n'


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_nothing_is_appended_to_what_is_no_file(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "log"
    if kind == "link":
        place.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    with pytest.raises((UserError, OSError)):
        run_files.append(place, b"line")
    assert not (tmp_path / "elsewhere").exists()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.raises(UserError, match="regular file"):
        run_files.read(tmp_path / "file", 10)


def test_reading_knows_a_missing_file_from_one_that_is_too_large(tmp_path: Path) -> None:
    assert run_files.read(tmp_path / "file", 10) is None
    (tmp_path / "file").write_bytes(b"x" * 11)
    with pytest.raises(UserError, match="larger than 10"):
        run_files.read(tmp_path / "file", 10)


def test_a_lock_that_stays_taken_is_trouble_with_its_name(tmp_path: Path) -> None:
    with (
        run_files.hold_file_lock(tmp_path / "file"),
        pytest.raises(UserError, match=r"file\.lock"),
        run_files.hold_file_lock(tmp_path / "file", wait=0.01),
    ):
        pytest.fail("two hold it")


def test_a_lock_is_free_as_soon_as_its_holder_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from ralph_mission.adapters.storage.loop import run_files\n"
        "with run_files.hold_file_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError), run_files.hold_file_lock(tmp_path / "file", wait=0):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with run_files.hold_file_lock(tmp_path / "file", wait=5):
        pass


def test_a_lock_file_that_was_deleted_while_we_waited_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "file.lock"
    try_lock, gone = files.try_lock, []

    def deleted_first(descriptor: int, wait: float | None = 0.0) -> bool:
        if not gone:
            lock.unlink()
            gone.append(True)
        return try_lock(descriptor, wait)

    monkeypatch.setattr(files, "try_lock", deleted_first)
    with run_files.hold_file_lock(tmp_path / "file"):
        assert lock.exists()
        with pytest.raises(UserError), run_files.hold_file_lock(tmp_path / "file", wait=0):
            pass


@pytest.mark.attack(46)
@pytest.mark.parametrize("ours", [".ralph", "ralph"])
@pytest.mark.parametrize("link", ["", "agent", "agent/memories.md"])
def test_nothing_is_read_by_a_link_in_a_git_directory_apart_either(tmp_path: Path, ours: str, link: str) -> None:
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")  # which makes it one
    (place := tmp_path / ours / "agent" / "memories.md").parent.mkdir(parents=True)
    place.write_text("theirs")
    assert run_files.read(place, 100) == b"theirs"
    (tmp_path / ours / link).rename(tmp_path / "theirs")
    (tmp_path / ours / link).symlink_to(tmp_path / "theirs")
    with suppress(UserError):  # of a file; a folder that is none is as one that is not there
        assert run_files.read(place, 100) is None


@pytest.mark.attack(57)
def test_a_lock_that_somebody_holds_is_trouble(tmp_path: Path) -> None:
    with (
        run_files.hold_file_lock(tmp_path / "a"),
        pytest.raises(UserError, match="another process"),
        run_files.hold_file_lock(tmp_path / "a", 0),
    ):
        pass


@pytest.mark.attack(46)
def test_a_link_in_place_of_a_folder_of_ours_leads_no_writing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (elsewhere := tmp_path / "somebody's own").mkdir()
    (tmp_path / ".ralph" / "loop").symlink_to(elsewhere)
    run_files.write(tmp_path / ".ralph" / "loop" / "state.json", b"{}")
    run_files.append(tmp_path / ".ralph" / "loop" / "log.jsonl", b"{}")
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / ".ralph" / "loop" / "state.json").read_bytes() == b"{}"
