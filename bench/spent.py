"""What a process took: its time, the most memory it held, and the git processes that it started."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from rich.table import Table

RUN = "import sys; from ralph_mission.cli.main import main; sys.exit(main())"
WATCHED = """
import os, sys, time
began, child = time.perf_counter(), os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
worked = usage.ru_utime + usage.ru_stime
open(sys.argv[1], "w").write(f"[{time.perf_counter() - began}, {worked}, {usage.ru_maxrss}]")
sys.exit(os.waitstatus_to_exitcode(status))
"""
SHIM = "counted"  # the folder of the git that counts
Figures = dict[str, float]
Told = dict[str, dict[str, Figures]]


@dataclass(frozen=True, slots=True)
class Spent:
    """Wall time, that of processors (a busy machine changes the one), with its children, the largest process among
    them, the git processes it started, and what it said."""

    seconds: float
    worked: float
    mebibytes: float
    git: int
    out: bytes

    @property
    def figures(self) -> Figures:
        """As they stand in a table."""
        spent = {"seconds": round(self.seconds, 2), "processor": round(self.worked, 2)}
        return spent | {"MiB": round(self.mebibytes), "git processes": self.git}


def counter(folder: Path) -> Path:
    """The file to which a `git` ahead of the real one, in a folder beside it, adds a byte for each process."""
    log, shim = folder / "git.log", folder / SHIM / "git"
    shim.parent.mkdir(parents=True)
    real = shutil.which("git") or "git"
    shim.write_text(f'#!/bin/sh\nprintf . >>{shlex.quote(str(log))}\nexec {shlex.quote(real)} "$@"\n')
    shim.chmod(0o755)
    log.write_bytes(b"")
    return log


def counted(log: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git processes are counted."""
    return {**environ, "PATH": f"{log.with_name(SHIM)}{os.pathsep}{environ['PATH']}"}


@contextmanager
def git_counted(folder: Path) -> Iterator[Path]:
    """The git processes of this process are counted, too."""
    log = counter(folder)
    with mock.patch.dict(os.environ, counted(log, os.environ)):
        yield log


def cycle(repo: Path, now: str, log: Path, *options: str) -> Spent:
    """One cycle of `ralph` on the local forge, in a process of its own, at a moment."""
    line = [sys.executable, "-c", RUN, "cycle", "--json", "--force", "--repo", str(repo), "--now", now, *options]
    return spent(line, log, os.environ)


def spent(command: Sequence[str], log: Path, environ: Mapping[str, str]) -> Spent:
    """What a command took, with the git processes that it started and no other's. Raises SystemExit when it failed.

    A small process starts it: what one of this size starts would count as large before it has done anything.
    """
    before, figures = log.stat().st_size, log.with_name("figures.json")
    line = [sys.executable, "-I", "-S", "-c", WATCHED, str(figures), *command]
    done = subprocess.run(line, capture_output=True, env=counted(log, environ), check=False)
    if done.returncode:
        raise SystemExit(f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    seconds, worked, kibibytes = json.loads(figures.read_text())
    return Spent(seconds, worked, kibibytes / 1024, log.stat().st_size - before, done.stdout)


def table(title: str, rows: Mapping[str, Figures], bounds: Sequence[str]) -> Table:
    """Rows and their figures, and below what bounds them."""
    names = list(dict.fromkeys(name for figures in rows.values() for name in figures))
    made = Table("what", title=title, caption="\n".join(bounds), caption_justify="left", title_justify="left")
    for name in names:
        made.add_column(name, justify="right")
    for what, figures in rows.items():
        made.add_row(what, *(f"{figures[name]:,g}" if name in figures else "" for name in names))
    return made


def ratio(large: Figures, small: Figures) -> Figures:
    """How many times as much each figure is."""
    return {name: round(value / small[name], 1) for name, value in large.items() if small.get(name)}


def written(place: Path | None, told: Told) -> None:
    """Every figure by table and row, as JSON."""
    if place:
        place.write_text(json.dumps(told, indent=2, sort_keys=True) + "\n")


def report(out: bytes) -> dict[str, Any]:
    """The cycle's report."""
    found: dict[str, Any] = json.loads(out)
    return found
