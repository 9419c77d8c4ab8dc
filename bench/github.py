"""What GitHub costs: `python -m bench.github`. Against the suite's fake of GitHub, on loopback.

Times are of this machine and know no network; requests are those that a real server would get.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.run import RALPH, asked
from tests.action.warm import warm_start
from tests.integration.hub import Hub, open_hub
from tests.integration.test_hub_requests import WAITING_CONFIG, WAITING_FILES, crowd, three_waiting

ROUNDS = 15
WARM, GATE = 200, 250  # milliseconds that a start of the action may add, and that the gate may take
CROWDS = ((0, 0), (50, 20), (300, 80))  # open issues and pull requests of others
FIRST, NEXT, IDLE, WAITING = 24, 11, 3, 8
"""REST requests of a cycle at most: the first, later ones, with nothing to do, with three missions that wait. The list
of 380 issues and pull requests takes four of them; all but one or two of later ones are answered with 304."""


def main(rounds: int = ROUNDS) -> int:
    """Print both tables; targets that were missed are said, not punished."""
    progress = Console(stderr=True)
    progress.print("starting the action, asking the gate, running cycles …")
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
        Console(width=120).print(_times(Path(folder), rounds), _requests(Path(folder)))
    return 0


def _times(folder: Path, rounds: int) -> Table:
    table = Table("what", "min", "median", "max", "target", title="milliseconds")
    python = _timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), rounds)
    _row(table, "the action, first step on a warm runner", [seconds * 1000 for seconds in warm_start(rounds)], WARM)
    with open_hub(_new(folder / "gate"), {"a.txt": "fine\n"}) as hub:
        hub.cycle()
        _row(table, "ralph due, looking at the server", _timed(lambda: _gate(hub), rounds), GATE)
    _row(table, "python -c pass, beside them", python, 0)
    return table


def _gate(hub: Hub) -> None:
    environ = {**os.environ, **hub.environ, "GITHUB_ACTIONS": "true", "RUNNER_TOOL_CACHE": str(hub.folder)}
    done = subprocess.run([str(RALPH), "due"], env=environ, cwd=hub.folder, capture_output=True, check=False)
    if done.returncode not in (0, 10):
        raise SystemExit(done.stderr.decode())


def _timed(action: Callable[[], object], rounds: int) -> list[float]:
    action()
    return list(_rounds(action, rounds))


def _rounds(action: Callable[[], object], rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        yield (time.perf_counter() - start) * 1000


def _row(table: Table, what: str, times: list[float], limit: float) -> None:
    met = "met" if median(times) <= limit else "MISSED"
    figures = [f"{value:,.1f}" for value in (min(times), median(times), max(times))]
    table.add_row(what, *figures, f"<= {limit:g} ms: {met}" if limit else "")


def _requests(folder: Path) -> Table:
    table = Table("cycle", "REST", "of these 304", "GraphQL", "git", "target", title="requests")
    with open_hub(_new(folder / "idle"), {"a.txt": "fine\n"}) as hub:
        hub.cycle()
        hub.cycle()
        _count(table, hub, "nothing to do", IDLE)
    with open_hub(_new(folder / "waiting"), WAITING_FILES, WAITING_CONFIG) as hub:
        three_waiting(hub)
        _count(table, hub, "three missions wait", WAITING, timedelta(minutes=20))
    for issues, pulls in CROWDS:
        with open_hub(_new(folder / f"crowd-{issues}")) as hub:
            hub.fake.validate = False
            crowd(hub, issues, pulls)
            there = f"{issues} issues, {pulls} pull requests" if issues else "an empty repository"
            _count(table, hub, f"{there}: first", FIRST)
            _count(table, hub, "second", NEXT)
            _count(table, hub, "later", NEXT)
    return table


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _count(table: Table, hub: Hub, what: str, most: int, after: timedelta = timedelta(hours=7)) -> None:
    hub.fake.journal.clear()
    hub.cycle(after)
    told = Counter(request.transport for request in hub.fake.journal)
    unchanged = hub.fake.count(transport="rest", status=304)
    met = "met" if told["rest"] <= most else "MISSED"
    table.add_row(what, str(told["rest"]), str(unchanged), str(told["graphql"]), str(told["git"]), f"<= {most}: {met}")


if __name__ == "__main__":
    sys.exit(main(asked(__doc__, "rounds", ROUNDS)))
