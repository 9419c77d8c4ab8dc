"""A run of ours as a process of its own, with a token in its environment, and what it starts trying to do harm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.sandbox.isolation import Level, missing_bwrap
from tests.conftest import NO_BWRAP

TOKEN = "ghs_canary0123456789canary0123456789"
DRIVER = """
import json, os, sys
from pathlib import Path
from ralph_mission.adapters.sandbox.isolation import Sandbox
from ralph_mission.adapters.sandbox.bwrap import endpoint
from ralph_mission.adapters.sandbox.process import run_foreign
order = json.load(sys.stdin)
ends = order["endpoints"]
sandbox = Sandbox(
    order["level"], *(tuple(map(Path, order[name])) for name in ("writable", "readable", "hidden")),
    None if ends is None else tuple(map(endpoint, ends)),
)
argv = [word.replace("RALPH_PID", str(os.getpid())) for word in order["argv"]]
done = run_foreign(
    argv, cwd=Path(order["cwd"]), home=Path(order["home"]), timeout=order["timeout"], grace=order["grace"],
    sandbox=sandbox, extra_env=order["env"], stdin=order["stdin"].encode(),
    stopped=lambda: bool(order["until"]) and os.path.exists(order["until"]),
)
told = {"code": done.code, "out": done.stdout.decode(), "err": done.stderr.decode(), "left": done.left}
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Ended:
    """What came of it."""

    code: int
    out: str
    err: str
    left: list[str]

    @property
    def told(self) -> Any:
        """What an attack prints."""
        assert self.out, self
        return json.loads(self.out)


@dataclass(frozen=True)
class Place:
    """`work` is a run's, as is `home`; `ours` is a folder nobody else may enter."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def ours(self) -> Path:
        return self.root / "ours"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def run(self, level: str, argv: list[str], timeout: float = 300, **more: Any) -> Ended:
        """Play `argv` in the sandbox, started by a process that has a token; it is ended once the file `until` is
        there."""
        with self.started(level, argv, timeout, **more) as process:
            out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        return Ended(**json.loads(out))

    @contextmanager
    def started(
        self, level: str, argv: list[str], timeout: float = 300, **more: Any
    ) -> Iterator[subprocess.Popen[str]]:
        """The process of ours, under way."""
        order = {
            "level": level, "argv": argv, "cwd": str(self.work), "home": str(self.home), "timeout": timeout,
            "writable": [str(self.work)], "readable": [], "hidden": [], "endpoints": None, "env": {}, "stdin": "",
            "grace": 1.0, "until": "",
        } | more  # fmt: skip  # one value
        environment = {**os.environ, "GITHUB_TOKEN": TOKEN}
        with tempfile.TemporaryFile("w+") as spool:
            json.dump(order, spool)
            spool.seek(0)
            with subprocess.Popen(
                [sys.executable, "-c", DRIVER],
                env=environment, stdin=spool, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            ) as process:  # fmt: skip  # one call
                yield process

    def attack(self, level: str, source: str, *words: str | Path, **more: Any) -> Any:
        """Play Python that prints a JSON value; the process id of ours stands for the word RALPH_PID."""
        ended = self.run(level, [sys.executable, "-I", "-S", "-c", source, *map(str, words)], **more)
        assert ended.code == 0, ended
        return ended.told


def offer_bwrap() -> None:
    """Until the end of the test, bubblewrap is found where the machine has it."""
    folders = os.environ["PATH"].split(os.pathsep)  # a worker of pytest-xdist has its parent's folder there too
    os.environ["PATH"] = os.pathsep.join(one for one in folders if Path(one).name != NO_BWRAP)


def level_or_skip(name: Level) -> Level:
    """The level. The test is left out where the machine cannot offer it, and fails where it could and ours does not."""
    if name == "bwrap":
        offer_bwrap()
        why, remedy = missing_bwrap()
        if why:
            assert not _could(), f"{why}, though this machine could"
            pytest.skip(f"{why} -> {remedy}")
    return name


def _could() -> bool:
    """Whether bubblewrap itself starts a program here, asked without our code."""
    simplest = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-user", "--unshare-pid", "true"]
    return (
        shutil.which("bwrap") is not None and subprocess.run(simplest, check=False, capture_output=True).returncode == 0
    )


@contextmanager
def place(folder: str | None = None) -> Iterator[Place]:
    """One of them in `folder`, else where all tests work; gone afterwards."""
    made = Place(Path(tempfile.mkdtemp(prefix="ralph-attack-", dir=folder)).resolve())
    try:
        made.work.mkdir()
        made.ours.mkdir(mode=0o700)
        yield made
    finally:
        shutil.rmtree(made.root)
