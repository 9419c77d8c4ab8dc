"""Ten misbehaving agents in our loop and in its peers': `python -m bench.peers FOLDER [--only NAME...]`.

Who ends as complete with work missing? The agents are those of `tests/cli/loop/test_run_misbehaviours.py`, on three
stories of `prd.json` with at most eight sessions; each also says the loop's own promise once nothing is open, as a
cooperative agent does. A second table has the processor time of each loop with a good agent. FOLDER holds what is not
ours, and nothing is downloaded here: a checkout of snarktank/ralph in `snarktank`, and an environment with
ralph-orchestrator 1.2.3 from pip in `ro`. What is not there is left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.cli.loop.test_run_misbehaviours import AGENTS, CHECK, COUNT, WORKS, done_in
from tests.cli.loop_world import RALPH, World, world

SESSIONS, PATIENCE = 8, 900.0
"""The limit that each loop is given, and the seconds after which it is ended from outside."""
GOOD, ROUNDS = "good", 3
SETTINGS = "hands: {agent: {sandbox: env}}\nevent_loop: {cooldown_delay_seconds: 0}\n"
"""Ours as the others: the agent counts its calls outside of the repository, and nobody pauses."""
ASKED = "Work on the next open story of prd.json: build it, commit, set its passes to true.\n"
LAST = "\nif not todo(): print({promise!r})\n"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: the program in FOLDER that has to be there, its promise, and how it is started in a repository."""

    needs: str
    promise: str
    line: Callable[[World, Path], Sequence[str]]
    program: str = "claude"  # the name by which it starts its agent


def _ours(*options: str) -> Callable[[World, Path], Sequence[str]]:
    return lambda here, _: [
        *RALPH, "run", "--prd", "--max-iterations", str(SESSIONS), *options, "--command",
        f"{sys.executable} -S {here.aside / 'agent.py'}",
    ]  # fmt: skip  # one command line


def _snarktank(here: World, folder: Path) -> Sequence[str]:
    script = (folder / "snarktank" / "ralph.sh").read_text()
    (here.repo / "ralph.sh").write_text(script.replace("sleep 2", "sleep 0"))
    (here.repo / "CLAUDE.md").write_text(ASKED)
    return ["bash", "ralph.sh", "--tool", "claude", str(SESSIONS)]


def _orchestrator(here: World, folder: Path) -> Sequence[str]:
    (here.repo / "PROMPT.md").write_text(ASKED)
    return [str(folder / "ro" / "bin" / "ralph"), "run", "-a", "kiro", "-i", str(SESSIONS), "--no-metrics"]


def _alone(here: World, _: Path) -> Sequence[str]:
    agent = f"{sys.executable} -S {here.aside / 'agent.py'}"
    return ["sh", "-c", "; ".join([f"{agent} < /dev/null"] * COUNT)]


ALONE = Loop("", "COMPLETE", _alone)
LOOPS: Mapping[str, Loop] = {
    "ours, no check": Loop("", "COMPLETE", _ours()),
    "ours, a check": Loop("", "COMPLETE", _ours("--verify", f"{sys.executable} check.py")),
    "snarktank/ralph": Loop("snarktank/ralph.sh", "<promise>COMPLETE</promise>", _snarktank),
    "ralph-orchestrator 1.2.3": Loop("ro/bin/ralph", "LOOP_COMPLETE", _orchestrator, "kiro-cli"),
}


def main(folder: Path, only: Sequence[str]) -> int:
    """Play them all and print the table; the exit code tells whether a loop of ours ended as complete too early."""
    loops = {name: loop for name, loop in LOOPS.items() if not only or name in only}
    loops = {name: loop for name, loop in loops.items() if (folder / loop.needs).exists()}
    table = Table("agent", *loops, title="stories done (sessions), exit code; FALSE: complete with work missing")
    false = dict.fromkeys(loops, 0)
    for agent in AGENTS:
        row = []
        for name, loop in loops.items():
            end = play(loop, agent, folder)
            false[name] += end.lied
            row.append(str(end))
            Console(stderr=True).print(f"{agent}, {name}: {end}")
        table.add_row(agent, *row)
    table.add_row("false completions", *map(str, false.values()))
    Console(width=160).print(table)
    Console(width=160).print(_costs({"the agent alone": ALONE, **loops}, folder))
    return int(any(count for name, count in false.items() if name.startswith("ours")))


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """How a loop ended: stories done, sessions, exit code (None: not at all), and seconds of the processor."""

    done: int
    sessions: int
    code: int | None
    seconds: float

    @property
    def lied(self) -> bool:
        """Whether it was a false completion."""
        return self.code == 0 and self.done < COUNT

    def __str__(self) -> str:
        ended = "no end" if self.code is None else f"{self.code}"
        return f"{'FALSE ' * self.lied}{self.done}/{COUNT} ({self.sessions}), {ended}"


def _costs(loops: Mapping[str, Loop], folder: Path) -> Table:
    """Processor time of a session, with all that is around it, of a good agent; in turns."""
    ends = [{name: play(loop, GOOD, folder) for name, loop in loops.items()} for _ in range(ROUNDS)]
    each = {name: statistics.median(turn[name].seconds / turn[name].sessions for turn in ends) for name in loops}
    least = next(iter(each.values()))
    table = Table("loop", "s a session", "ratio", title=f"processor time with a good agent, median of {ROUNDS}")
    for name, seconds in each.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / least:.1f}")
    return table


def play(loop: Loop, agent: str, folder: Path) -> LoopEnd:
    """How a loop ended with an agent."""
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as place:
        here = world(Path(place), {"check.py": CHECK, **({} if loop.needs else {"ralph.yml": SETTINGS})})
        here.stories(COUNT, branch="main")
        here.agent((WORKS + AGENTS[agent]).replace("COMPLETE", loop.promise) + LAST.format(promise=loop.promise))
        environ, before = _environ(here, loop.program), _children()
        try:
            code: int | None = subprocess.run(
                loop.line(here, folder), cwd=here.repo, env=environ, timeout=PATIENCE, check=False,
                stdin=subprocess.DEVNULL, stdout=(here.aside / "out").open("w"), stderr=subprocess.STDOUT,
            ).returncode  # fmt: skip  # one call
        except subprocess.TimeoutExpired:
            code = None
        seconds = _children() - before
        return LoopEnd(len(done_in(here)), len(here.calls), code, seconds)


def _children() -> float:
    """Seconds of the processor that ended child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environ(here: World, program: str) -> Mapping[str, str]:
    """The agent under the name by which a loop looks for it, an empty home, and what its script reads."""
    place = here.aside / "bin"
    place.mkdir()
    home = here.aside / "home"
    home.mkdir()
    start = place / program
    start.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "2.1.0 (Claude Code)" && exit\n'
                     f"exec {sys.executable} -S {here.aside / 'agent.py'}\n")  # fmt: skip  # one script
    start.chmod(start.stat().st_mode | stat.S_IXUSR)
    shutil.copy(here.repo / ".git" / "config", home / ".gitconfig")
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "RALPH_HAT": "none", "RALPH_RUN_DIR": str(here.aside), "LANG": "C.UTF-8"}


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("folder", type=Path, metavar="FOLDER", help="what is not ours (see the top of this file)")
    words.add_argument("--only", nargs="+", default=(), choices=LOOPS, help="these loops")
    given = words.parse_args()
    sys.exit(main(given.folder.resolve(), given.only))
