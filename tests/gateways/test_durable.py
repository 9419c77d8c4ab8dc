"""A file that is written whole, whoever writes it at the same moment."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ralph_mission.gateways import durable

TEXTS = (b"one" * 1_000, b"another" * 1_000)


def test_two_threads_that_write_one_file_leave_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both, real = threading.Barrier(2, timeout=10), os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            both.wait()  # each has written, and neither has put it in its place
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda text: durable.write(tmp_path / "file", text), TEXTS)) == [None, None]
    assert (tmp_path / "file").read_bytes() in TEXTS and [path.name for path in tmp_path.iterdir()] == ["file"]
