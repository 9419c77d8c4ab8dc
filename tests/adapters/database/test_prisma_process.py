"""The process that holds the Prisma client is ended with the look that it belongs to, whatever it is busy with."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.database import prisma as prisma_process
from ralph_mission.adapters.database import prisma_worker
from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.prisma import Node, Tools
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.sandbox import process
from ralph_mission.errors import UserError

WORKER = """
import json, os, subprocess, sys
line = sys.stdin.readline()
open("started", "w").close()
if {ready}:
    print(json.dumps({{"ready": True}}), flush=True)
    sys.stdin.readline()
engine = subprocess.Popen(["sleep", "600"])
with open("busy.tmp", "w") as file:
    file.write(str(engine.pid))
os.rename("busy.tmp", "busy")
engine.wait()
"""
ADDRESS = read_address("postgresql://reader:secret@127.0.0.1:1/app", "DATABASE_URL")
QUESTION = ("SELECT 1", [])


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(Node(Path("node"), ("npm",)), tmp_path, tmp_path / "engine", None, tmp_path)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """What is run in place of the client: it never comes up, or comes up and never answers; its engine runs on."""

    def made(ready: bool) -> None:
        script = tmp_path / "worker.py"
        script.write_text(WORKER.format(ready=ready))
        monkeypatch.setattr(prisma_worker, "__file__", str(script))

    return made


@pytest.fixture
def told_to_end(tmp_path: Path) -> Iterator[None]:
    """As a thread whose look is over: as soon as the engine is busy, nobody wants its answer any more."""
    token = process.STOPPED.set((tmp_path / "busy").exists)
    yield
    process.STOPPED.reset(token)


def running(folder: Path) -> bool:
    """Whether the engine still runs; what is dead and not yet collected does not. A kill may take a moment."""
    pid = (folder / "busy").read_text()
    for _ in range(3000):
        done = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False)
        if done.stdout.strip()[:1] in ("", "Z"):
            return False
        time.sleep(0.1)
    return True


@pytest.mark.usefixtures("told_to_end")
@pytest.mark.parametrize("ready", [True, False], ids=["over a question", "coming up"])
def test_a_look_that_is_over_ends_it_at_once(tmp_path: Path, tools: Tools, worker, ready: bool) -> None:
    worker(ready)
    with (
        pytest.raises(UserError, match="nothing waits any longer"),
        prisma_process.connect_worker(tools, ADDRESS, Caps(seconds=600)) as client,
    ):
        client.ask(*QUESTION, "table chains")
    assert not running(tmp_path)


def test_one_that_is_asked_again_after_that_says_so(tmp_path: Path, tools: Tools, worker) -> None:
    worker(True)
    token = process.STOPPED.set((tmp_path / "busy").exists)
    with prisma_process.connect_worker(tools, ADDRESS, Caps(seconds=600)) as client:
        with pytest.raises(UserError, match="nothing waits any longer for table chains"):
            client.ask(*QUESTION, "table chains")
        process.STOPPED.reset(token)
        with pytest.raises(UserError, match="engine of Prisma ended"):
            client.ask(*QUESTION, "table tags")


def test_a_client_that_does_not_hear_the_goodbye_is_ended_with_its_engine(
    tmp_path: Path, tools: Tools, worker, monkeypatch
) -> None:
    worker(True)
    monkeypatch.setattr(prisma_process, "GRACE", 0.1)
    with prisma_process.connect_worker(tools, ADDRESS, Caps()) as client:
        assert client.process.stdin
        client.process.stdin.write(b"{}\n")
        client.process.stdin.flush()
        while not (tmp_path / "busy").exists():
            assert client.process.poll() is None
    assert not running(tmp_path) and client.process.returncode == -9
