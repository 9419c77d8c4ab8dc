"""A file that is written whole, whoever writes it at the same moment."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ralph_mission.adapters import files
from ralph_mission.cli.setup.files import SetupFile

TEXTS = (b"one" * 1_000, b"another" * 1_000)


def test_two_threads_that_write_one_file_leave_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both, real = threading.Barrier(2, timeout=300), os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            both.wait()  # each has written, and neither has put it in its place
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda text: files.write(tmp_path / "file", text), TEXTS)) == [None, None]
    assert (tmp_path / "file").read_bytes() in TEXTS and [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.attack(46)
def test_a_file_of_an_installation_is_written_through_no_link_that_came_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "theirs.yml").write_text("theirs")
    for name in ("ours.yml", f".ours.yml.{threading.get_native_id()}"):
        (tmp_path / name).symlink_to(tmp_path / "theirs.yml")
    SetupFile(tmp_path / "ours.yml", "text\n").write()
    assert (tmp_path / "theirs.yml").read_text() == "theirs"
    assert {file.name for file in tmp_path.iterdir() if not file.is_symlink()} == {"theirs.yml", "ours.yml"}


def test_a_file_is_on_the_disk_before_it_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, take = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("sync"), sync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda here, there: (done.append("replace"), take(here, there)))
    files.write(tmp_path / "a", b"x")
    assert done == ["sync", "replace", "sync"]
