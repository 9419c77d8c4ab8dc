"""Tests played in processes of their own, a few at a time: as they are, or with a guard switched off.

A fork has pytest loaded already, and of the product nothing. What is no module (a script, the action) is switched off
in a copy of the checkout, where a new process plays the test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.guards.guard import ROOT, Guard

LIMIT = 240.0
"""Seconds after which a play is given up."""
OPTIONS = ("-q", "-m", "", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass(frozen=True)
class Play:
    """Tests to play, and what is to be switched off meanwhile. `most`: after how many failures enough is known."""

    tests: tuple[str, ...]
    guard: Guard | None = None
    most: int = 1


@dataclass(frozen=True)
class Played:
    """What passed, what failed how, what was skipped and why.

    `broke` is the end of what was printed when it told nothing at all.
    """

    play: Play
    passed: tuple[str, ...] = ()
    failed: tuple[dict[str, str], ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    broke: str = ""


@dataclass
class _Child:
    play: Play
    folder: Path
    pid: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def told(self) -> Path:
        return self.folder / "told.json"

    @property
    def printed(self) -> Path:
        return self.folder / "printed.txt"


def play_all(plays: Iterable[Play], jobs: int) -> Iterator[Played]:
    """Each play's outcome as it ends."""
    waiting, children = list(plays), list[_Child]()
    with tempfile.TemporaryDirectory(prefix="ralph-guards-") as folder, _compiled_once(folder):
        _load()
        try:
            while waiting or children:
                while waiting and len(children) < jobs:
                    children.append(_begin(waiting.pop(0), Path(tempfile.mkdtemp(dir=folder))))
                time.sleep(0.02)
                for child in [child for child in children if _has_ended(child)]:
                    children.remove(child)
                    yield _outcome(child)
                    shutil.rmtree(child.folder, ignore_errors=True)
        finally:
            for child in children:  # of whoever interrupts it nothing runs on
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def _compiled_once(folder: str) -> Iterator[None]:
    """Most of the time goes into compiling the same files again where no bytecode is kept."""
    before = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode, sys.pycache_prefix = False, os.path.join(folder, "bytecode")
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = before


def _load() -> None:
    """What nearly every test imports and nobody switches off, once for all forks."""
    import github
    import hypothesis
    import markdown_it
    import pathspec
    import pydantic
    import pytest
    import yaml

    del github, hypothesis, markdown_it, pathspec, pydantic, pytest, yaml


def _begin(play: Play, folder: Path) -> _Child:
    child = _Child(play, folder)
    sys.stdout.flush()
    child.pid = os.fork()
    if not child.pid:
        try:
            _play(child)
        finally:
            os._exit(70)
    return child


def _play(child: _Child) -> None:
    """In the new process: nothing of it returns to the runner."""
    os.setsid()
    out = os.open(child.printed, os.O_WRONLY | os.O_CREAT, 0o600)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    os.environ["CI"] = "1"  # so that chance is the same each time
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none of them is needed, and loading them takes longest
    arguments = _arguments(child)
    if child.play.guard and not child.play.guard.module:
        _elsewhere(child.play.guard, child.folder / "a copy")
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments])
    import pytest

    code = pytest.main(arguments)
    sys.stdout.flush()
    os._exit(int(code))


def _arguments(child: _Child) -> list[str]:
    guard = child.play.guard
    off = ["-p", "tests.guards.off", "--guard-off", guard.name] if guard and guard.module else []
    most = [f"--maxfail={child.play.most}"] if guard else []
    telling = ["-p", "tests.guards.telling", "--guard-told", str(child.told)]
    return [*OPTIONS, f"--basetemp={child.folder / 'temporary'}", *telling, *off, *most, *child.play.tests]


def _elsewhere(guard: Guard, place: Path) -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)
    (place / guard.file).write_text(guard.without(), encoding="utf-8")
    (place / ".venv").symlink_to(ROOT / ".venv")
    os.chdir(place)


def _has_ended(child: _Child) -> bool:
    if time.monotonic() - child.begun > LIMIT:
        os.killpg(child.pid, signal.SIGKILL)
    return os.waitpid(child.pid, os.WNOHANG)[0] != 0


def _outcome(child: _Child) -> Played:
    try:
        told = json.loads(child.told.read_text())
    except (OSError, ValueError):
        said = child.printed.read_text(errors="replace") if child.printed.exists() else ""
        return Played(child.play, broke=said.strip()[-600:] or "it told nothing")
    return Played(child.play, tuple(told["passed"]), tuple(told["failed"]), told["skipped"])
