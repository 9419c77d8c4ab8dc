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

from ralph_mission.gateways.isolation import Level
from ralph_mission.gateways.isolation_probe import probe

TOKEN = "ghs_canary0123456789canary0123456789"
DRIVER = """
import json, os, sys
from pathlib import Path
from ralph_mission.gateways.isolation import Cage
from ralph_mission.gateways.isolation_relay import endpoint
from ralph_mission.gateways.process import run_foreign
order = json.load(sys.stdin)
ends = order["endpoints"]
cage = Cage(
    order["level"], *(tuple(map(Path, order[name])) for name in ("writable", "readable", "hidden")),
    None if ends is None else tuple(map(endpoint, ends)),
)
argv = [word.replace("RALPH_PID", str(os.getpid())) for word in order["argv"]]
done = run_foreign(
    argv, cwd=Path(order["cwd"]), home=Path(order["home"]), timeout=order["timeout"], grace=1.0, cage=cage,
    extra_env=order["env"], stdin=order["stdin"].encode(),
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

    def run(self, level: str, argv: list[str], timeout: float = 60, **more: Any) -> Ended:
        """Play `argv` in the cage, started by a process that has a token."""
        with self.started(level, argv, timeout, **more) as process:
            out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err
        return Ended(**json.loads(out))

    @contextmanager
    def started(self, level: str, argv: list[str], timeout: float = 60, **more: Any) -> Iterator[subprocess.Popen[str]]:
        """The process of ours, under way."""
        order = {
            "level": level, "argv": argv, "cwd": str(self.work), "home": str(self.home), "timeout": timeout,
            "writable": [str(self.work)], "readable": [], "hidden": [], "endpoints": None, "env": {}, "stdin": "",
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


def level_or_skip(name: str) -> Level:
    """The level. The test is left out where the machine cannot offer it, and fails where it could and ours does not."""
    found = probe(name)  # type: ignore[arg-type]  # one of the levels
    if not found.available:
        assert not _could(name), f"{found.why}, though this machine could"
        pytest.skip(f"{found.why} -> {found.mend}")
    return found.level


def cage_or_skip(name: str) -> Level:
    """The level for what needs no Python of ours in it, as a cage itself does not."""
    if name != "env" and not _could(name, "/bin/true"):
        pytest.skip(f"this machine does not offer {name}")
    return name  # type: ignore[return-value]  # one of the levels


def _could(name: str, program: str = sys.executable) -> bool:
    """Whether the tools themselves start a program here, asked without our code."""
    if name == "uid":
        as_another = ["setpriv", "--reuid=70300", "--clear-groups", "/bin/sh", "-c", 'exec "$0" --version', program]
        tools = os.geteuid() == 0 and shutil.which("setpriv") is not None
        return tools and subprocess.run(as_another, check=False, capture_output=True).returncode == 0
    simplest = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-user", "--unshare-pid", "true"]
    return (
        shutil.which("bwrap") is not None and subprocess.run(simplest, check=False, capture_output=True).returncode == 0
    )


@contextmanager
def place() -> Iterator[Place]:
    """Below a folder that other users may pass through; pytest's own may be entered by its owner only."""
    made = Place(Path(tempfile.mkdtemp(prefix="ralph-attack-")).resolve())
    try:
        made.root.chmod(0o711)
        made.work.mkdir()
        made.ours.mkdir(mode=0o700)
        yield made
    finally:
        shutil.rmtree(made.root)
