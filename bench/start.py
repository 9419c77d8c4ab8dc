"""What a start, an idle cycle and a session cost in processor time: `python -m bench.start`.

Each figure is the least of some rounds, with its children, and stands beside `python -c "import click"` of the same
run: a busy machine changes both. `--beside PYTHON` measures another installation of ralph in turns with this one.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.generated import generate

FILES = 1_800
SESSIONS = 5
WHO = "git -c user.name=Inge -c user.email=inge@slackwater.example"
AGENT = f"date +%s%N >> notes.txt && git add notes.txt && {WHO} commit --quiet --message Note"
QUIET = "observers: {forge: {}, code: {markers: {}}}\n"
OPEN = f"{QUIET}hands: {{agent: {{sandbox: env}}}}\n"
ALONE = "import click"
PR_SET_CHILD_SUBREAPER = 36
Task = Callable[[], float]


def main(rounds: int, beside: str) -> int:
    """Print the table: here, there, and how many times an `import click` it is."""
    pythons = {"here": sys.executable} | ({"beside": beside} if beside else {})
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
        tasks = {(what, who): run for who, python in pythons.items() for what, run in _tasks(python, Path(folder, who))}
        spent: dict[tuple[str, str], list[float]] = {key: [] for key in tasks}
        for _ in range(rounds):
            for key, run in tasks.items():
                spent[key].append(run())
    Console(width=100).print(_table({key: min(times) for key, times in spent.items()}, tuple(pythons)))
    return 0


def _table(least: dict[tuple[str, str], float], pythons: Sequence[str]) -> Table:
    table = Table("what", title="processor time, ms")
    for who in pythons:
        table.add_column(who, justify="right")
        table.add_column("import click", justify="right")
    for what in dict.fromkeys(what for what, _ in least):
        cells = [(least[what, who], least[what, who] / least[ALONE, who]) for who in pythons]
        table.add_row(what, *(text for ms, ratio in cells for text in (f"{ms * 1000:,.0f}", f"{ratio:.1f} x")))
    return table


def _tasks(python: str, folder: Path) -> Iterator[tuple[str, Task]]:
    repo = generate(folder / "repo", datetime.now(UTC), FILES)
    (repo / "ralph.yml").write_text(QUIET)
    (folder / "open.yml").write_text(OPEN)
    subprocess.run(f"git add ralph.yml && {WHO} commit --quiet --message Settings", shell=True, cwd=repo, check=True)
    ralph = [python, "-m", "ralph_mission"]
    cycle = [*ralph, "cycle", "--force", "--repo", str(repo)]
    for _ in range(3):  # the first ones have news, and propose; then every slot is taken, or nothing is new
        _spend(cycle, repo, python)
    yield ALONE, lambda: _spend([python, "-c", ALONE], repo, python)
    yield "ralph due", lambda: _spend([*ralph, "due", "--repo", str(repo)], repo, python)
    yield "ralph status", lambda: _spend([*ralph, "status", "--repo", str(repo)], repo, python)
    yield f"an idle cycle, {FILES:,} files", lambda: _spend(cycle, repo, python)
    yield "around a session", lambda: _spend_around(ralph, repo, python)
    yield "the same, at the level env", lambda: _spend_around(ralph, repo, python, f"--config={folder / 'open.yml'}")


def _spend_around(ralph: Sequence[str], repo: Path, python: str, *options: str) -> float:
    """What one more session of a run costs, without its agent's own: of many, less that of one."""

    def run(sessions: int) -> float:
        limits = ["--max-iterations", str(sessions), "--repo", str(repo), *options]
        return _spend([*ralph, "run", "Take notes", "--command", AGENT, *limits], repo, python)

    agent = _spend(["/bin/sh", "-c", AGENT], repo, python)
    return (run(1 + SESSIONS) - run(1)) / SESSIONS - agent


def _spend(command: Sequence[str], folder: Path, python: str) -> float:
    """Seconds of processors that a command and its children took. Exit codes are its own business.

    Those that their parent did not wait for, such as all within a bubblewrap's view, end as our own.
    """
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    line = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.posix_spawn("/bin/sh", line, environment | {"PATH": path}, file_actions=files)
    spent = 0.0
    with suppress(ChildProcessError):
        while usage := os.wait4(-1, 0)[2]:
            spent += usage.ru_utime + usage.ru_stime
    return spent


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    words.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds (default: 5)")
    words.add_argument("--beside", default="", metavar="PYTHON", help="the Python of another installation of ralph")
    asked = words.parse_args()
    sys.exit(main(max(1, asked.rounds), asked.beside))
