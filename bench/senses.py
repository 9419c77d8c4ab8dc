"""What the senses cost: `python -m bench.senses`. Medians, all from one run, against servers on loopback.

Three tables: each kind of watch on a million rows of a real PostgreSQL, where the server's own time (by its log) and
the bare driver with the very same statements stand beside ours; cycles with every sense in a world where nothing
happens; and all observers at once beside one after another, when one of their sources is slow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from unittest import mock

from rich.console import Console
from rich.table import Table

from bench.run import Comparison, _measure, _report, _table, asked
from bench.senses_database import KINDS, ROWS, Measured, asking, backends, planted
from bench.senses_world import PAGES, Cost, World, quiet
from ralph_mission.adapters.observers.looking import together
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import git
from tests.postgres_server import Server, Unavailable

ROUNDS = 5
SMALL = 20_000
"""Rows that a cycle looks at."""
ADDED = {"sqlalchemy": 50, "prisma": 250}
"""Milliseconds that a look may add to the server's time; where thousands of rows come back, ten times as many."""
MANY_ROWS = "outlier"
SENSES = 1_500
"""Milliseconds that all senses may add to a cycle in a world that does not change."""
POLITE = 1 + len(PAGES)
"""Requests that no tag answers: one to OSV, and once a day robots.txt for each page of the site."""
SLOW = 1.0
"""Seconds that one source takes to answer."""
SOON = timedelta(minutes=10)
Say = Callable[[str], object]


def main(rounds: int = ROUNDS, rows: int = ROWS) -> int:
    """Print the three tables; targets that were missed are said, not punished."""
    progress, tables = Console(stderr=True), []
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
        try:
            tables.append(_watches(Path(folder), rounds, rows, progress.print))
            with planted(min(rows, SMALL)) as database:
                tables.append(_cycles(Path(folder), database, rounds, progress.print))
                tables.append(_at_once(Path(folder), database, rounds, progress.print))
        except Unavailable as missing:
            progress.print(f"senses: not measured: {missing}")
    Console(width=120).print(*tables)
    return 0


# --- watches ----------------------------------------------------------------------------


def _watches(folder: Path, rounds: int, rows: int, say: Say) -> Table:
    title = f"milliseconds of a watch on {rows:,} rows; python -c pass: {_python(rounds):.1f}"
    table = Table("watch", "by", "SQL", "server", "bare driver", "whole look", "beside the server", title=title)
    say(f"planting {rows:,} rows …")
    with planted(rows) as server:
        for backend in backends():
            with asking(server, rows, backend, folder) as bench:
                for kind in KINDS:
                    say(f"{kind}, {backend}: {rounds} rounds …")
                    _row(table, bench.measured(kind, rounds))
        if "prisma" not in backends():
            say("prisma: not measured, its packages are not in .venv/node: make test-real installs them")
    return table


def _row(table: Table, one: Measured) -> None:
    added, most = one.ours - one.server, ADDED[one.backend] * (10 if one.watch == MANY_ROWS else 1)
    bare = f"{one.bare:,.1f}" if one.bare else ""
    target = f"{added:+,.1f}, <= {most}: {'met' if added <= most else 'MISSED'}"
    table.add_row(one.watch, one.backend, str(one.statements), f"{one.server:,.1f}", bare, f"{one.ours:,.1f}", target)


def _python(rounds: int) -> float:
    return median(_timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(rounds))


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


# --- cycles -----------------------------------------------------------------------------


def _cycles(folder: Path, database: Server, rounds: int, say: Say) -> Table:
    title = f"a cycle on GitHub, and what the senses ask beside the forge; later ones are medians of {rounds}"
    columns = ("cycle", "ms", "forge", "HTTP", "304", "bytes", "SQL", "ms of it", "target")
    table = Table(*columns, title=title)
    say(f"cycles with code and forge alone: {rounds + 1} …")
    with quiet(folder / "alone", database, senses=False) as world:
        alone = _lived(table, world, "code and forge", rounds)
    say(f"cycles with every sense: {rounds + 2} …")
    with quiet(folder / "quiet", database) as world:
        _lived(table, world, "every sense", rounds, alone)
        soon = world.cycle(SOON)
        _cost(table, "every sense, 10 min on", soon, f"no HTTP: {_met(soon.requests == 0)}")
    return table


def _lived(table: Table, world: World, name: str, rounds: int, beside: Cost | None = None) -> Cost:
    """The first cycle, the second, and the median of as many as there are rounds."""
    _cost(table, f"{name}, first", world.cycle(), "")
    costs = [world.cycle() for _ in range(rounds)]
    later = _middle(costs)
    target = ""
    if beside:
        added = later.milliseconds - beside.milliseconds
        target = f"<= {POLITE} not 304: {_met(later.requests - later.unchanged <= POLITE)}\n"
        target += f"{added:+,.0f} <= {SENSES:,} ms: {_met(added <= SENSES)}"
    _cost(table, f"{name}, second", costs[0], "")
    _cost(table, f"{name}, later", later, target)
    return later


def _middle(costs: Sequence[Cost]) -> Cost:
    fields = Cost.__dataclass_fields__
    middles = {name: median(getattr(cost, name) for cost in costs) for name in fields}
    return Cost(
        **{name: value if name in ("milliseconds", "database") else int(value) for name, value in middles.items()}
    )


def _cost(table: Table, name: str, cost: Cost, target: str) -> None:
    counts = (cost.forge, cost.requests, cost.unchanged, cost.bytes, cost.statements)
    table.add_row(
        name, f"{cost.milliseconds:,.0f}", *(f"{count:,}" for count in counts), f"{cost.database:,.1f}", target
    )


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


# --- at once ----------------------------------------------------------------------------


def _at_once(folder: Path, database: Server, rounds: int, say: Say) -> Table:
    table = _table()
    with quiet(folder / "slow", database, pause=SLOW) as world, mock.patch.dict(os.environ, world.hub.environ):
        observers = world.hub.house().ports.observers
        head = Branch("main", git(world.hub.clone, "rev-parse", "HEAD"))
        context = ObservationContext(head, world.hub.now, None, "", str(folder))
        slow = [one for one in observers if one.name == "web.slow"]
        comparison = Comparison(
            f"{len(observers)} sources, of which one takes {SLOW:g} s",
            {
                "all at once": lambda: _seen(together([(one, context) for one in observers], 600)),
                "the slow one alone": lambda: _seen(one.observe(context) for one in slow),
                "one after another": lambda: _seen(one.observe(context) for one in observers),
            },
            1.5,
            "ratio",
            ROUNDS,
        )
        say(f"{comparison.title}: {min(rounds, comparison.rounds)} rounds …")
        _report(table, comparison, _measure(comparison, min(rounds, comparison.rounds)))
    return table


def _seen(observations: Iterable[object]) -> None:
    for one in observations:
        if getattr(one, "status", "") == "unavailable":
            raise SystemExit(str(one))


if __name__ == "__main__":
    sys.exit(main(asked(__doc__, "rounds", ROUNDS)))
