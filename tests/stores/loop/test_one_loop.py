"""One loop per checkout, of whatever mode, and none that is dead holds another one up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ralph_mission.loop.order import Order
from ralph_mission.stores.loop import lock
from ralph_mission.stores.loop.desk import Desk
from ralph_mission.trouble import Trouble
from tests.stores.loop.desks import FREE, NOON, STANDING, Make, begun

HOLDING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from ralph_mission.stores.loop import lock
root = Path(sys.argv[1])
with lock.exclusive(root / ".git", root, "fresh", datetime(2026, 5, 4, 12, 0, tzinfo=UTC)):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(root: Path) -> subprocess.Popen[str]:
    """Another process that runs a loop in this checkout."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(root)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_loop_is_refused_and_told_who_runs(desk_at: Make, root: Path) -> None:
    with holding(root) as other:
        with pytest.raises(Trouble) as caught, desk_at().exclusive(FREE):
            pass
        found = lock.holder(root / ".git")
        other.communicate()
    assert (
        caught.value.what
        == f"a fresh loop (process {other.pid}, since 2026-05-04T12:00:00+00:00) works in this checkout"
    )
    assert "ralph cancel" in caught.value.next_step
    assert found is not None
    assert found.pid == other.pid
    assert lock.holder(root / ".git") is None


def test_a_loop_that_was_killed_holds_nobody_up(desk_at: Make, root: Path) -> None:
    with holding(root) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    begun(desk_at())


def test_a_session_that_deletes_ralphs_folder_lets_no_second_loop_in(desk_at: Make, root: Path) -> None:
    with desk_at().exclusive(FREE):
        shutil.rmtree(root / ".ralph")
        with pytest.raises(Trouble, match="works in this checkout"), desk_at().exclusive(FREE):
            pass


def test_a_checkout_that_is_not_ready_gives_the_lock_back(desk_at: Make, root: Path) -> None:
    def refuse(order: Order) -> None:
        raise Trouble("dirty", "clean it")

    desk = Desk(root, root / ".git", lambda: STANDING, lambda: NOON, ready=refuse)
    with pytest.raises(Trouble, match="dirty"), desk.exclusive(FREE):
        pass
    begun(desk_at())
