"""How fast ralph is beside what it replaces: `make bench`. Medians and ratios, all from one run.

Both sides of a comparison take turns, so that a busy moment of the machine hits them alike.
The repositories are generated in a temporary folder; nothing is fetched and nothing is kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from bench.generated import generate
from examples.unpack import unpack
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import code
from ralph_mission.app.cycle import build_app
from ralph_mission.config.observers import CodeSettings
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.model.proposal import ObservationContext

RALPH = Path(sys.executable).with_name("ralph")
LOG = ("git", "log", "--since=6 hours ago", "--oneline")
GREP = ("grep", "-rn", r"TODO\|FIXME\|HACK\|@ts-ignore\|: any", "src/", "server/")
MARKER = re.compile(r"\b(TODO|FIXME|HACK)\b")

Action = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sides that take turns. The first is ours; `limit` is in ms, or a ratio to the second side."""

    title: str
    sides: Mapping[str, Action]
    limit: float
    unit: str  # ms | ratio
    rounds: int


def main(most: int = 20) -> int:
    """Run every comparison, at most so many rounds, and print the table; a missed target is said, not punished."""
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
        progress.print("generating repositories, one of them with 200 cycles behind it …")
        comparisons = _comparisons(Path(folder))
        table = _table()
        for comparison in comparisons:
            rounds = min(most, comparison.rounds)
            progress.print(f"{comparison.title}: {rounds} rounds …")
            _report(table, comparison, _measure(comparison, rounds))
    Console(width=120).print(table)
    return 0


def _comparisons(folder: Path) -> list[Comparison]:
    idle, large = _idle(folder / "idle"), generate(folder / "large", datetime.now(UTC))
    first, later = _look(large, ""), _look(large, Git.open(large).resolve("HEAD~1"))
    raw = _commands(large, LOG, GREP)
    due = _ralph(idle, "due", expected=(0, 10))
    return [
        Comparison(
            "the gate",
            {"ralph due": due, "python -c pass": _commands(idle, (sys.executable, "-c", "pass"))},
            120,
            "ms",
            20,
        ),
        Comparison("an idle cycle", {"ralph cycle --force": _ralph(idle, "cycle", "--force")}, 1000, "ms", 10),
        Comparison("5,200 files, first look", {"code observer": first, "git log; grep -rn": raw}, 1.5, "ratio", 10),
        Comparison("5,200 files, next look", {"code observer": later, "git log; grep -rn": raw}, 1.5, "ratio", 10),
        Comparison(
            "memory read and written",
            {"at cycle 200": _remembering(folder / "old", 200), "at cycle 10": _remembering(folder / "young", 10)},
            1.2,
            "ratio",
            20,
        ),
    ]


def _remembering(repo: Path, cycles: int) -> Action:
    """What a cycle does with its memory, after so many cycles: recall, look keys up, commit with a journal."""
    unpack(repo)
    start = datetime(2026, 11, 1, tzinfo=UTC)
    for cycle in range(cycles):
        house = build_app(repo, now=start + cycle * timedelta(hours=7))
        run_cycle(house.ports, house.settings, CycleRequest(force=True), house.secrets)
    store = house.store
    known = [key for mission in (store.recall() or _none()).state.missions for key in mission.members]

    def remember() -> None:
        past = store.recall() or _none()
        store.records(known, past)
        page = house.ports.dashboard(past.memory, past.state)
        journal = (f"bench-{past.memory.header.serial}", {"cycle": cycles})
        store.commit(MemoryBatch(past.memory, past.state, (), "bench", journal=journal, dashboard=page), past)

    return remember


def _none() -> NoReturn:
    raise SystemExit("there is no memory")


def _idle(repo: Path) -> Path:
    """The sample with every flaw mended and every issue closed, after its first cycle."""
    unpack(repo)
    for issue in (repo / ".ralph" / "forge" / "issues").iterdir():
        issue.unlink()
    _commands(
        repo,
        ("typos", "--isolated", "--write-changes", "--quiet", "."),
        ("ruff", "check", "--quiet", "--isolated", "--no-cache", "--select", "F401", "--fix", "."),
    )()
    for path in repo.glob("slackwater/*.py"):
        path.write_text(MARKER.sub("Note", path.read_text()))
    for path in repo.glob("reports/*.sarif"):
        path.write_text('{"version": "2.1.0", "runs": []}\n')
    who = ("-c", "user.name=Inge", "-c", "user.email=inge@slackwater.example")
    _commands(repo, ("git", *who, "commit", "--quiet", "--all", "--message", "Mend everything"))()
    _ralph(repo, "cycle", "--force")()
    return repo


def _look(repo: Path, cursor: str) -> Action:
    git = Git.open(repo)
    observer = code.build(CodeSettings(), git)
    head = Branch("main", git.resolve("HEAD"))
    return lambda: observer.observe(ObservationContext(head, datetime.now(UTC), None, cursor, str(repo)))


def _ralph(repo: Path, *arguments: str, expected: Sequence[int] = (0,)) -> Action:
    return _commands(repo, (str(RALPH), *arguments, "--repo", str(repo)), expected=expected)


def _commands(folder: Path, *commands: Sequence[str], expected: Sequence[int] = (0,)) -> Action:
    environment = os.environ | {"PATH": f"{RALPH.parent}{os.pathsep}{os.environ['PATH']}"}

    def run() -> None:
        for command in commands:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode not in expected and command is not LOG:
                raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")

    return run


def _measure(comparison: Comparison, rounds: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in comparison.sides}
    for action in comparison.sides.values():  # one round that does not count warms the caches
        action()
    for _ in range(rounds):
        for name, action in comparison.sides.items():
            start = time.perf_counter()
            action()
            samples[name].append((time.perf_counter() - start) * 1000)
    return samples


def _table() -> Table:
    head = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    table = Table("what", "side", title=f"milliseconds; {head}")
    for column in ("min", "median", "max", "ratio"):
        table.add_column(column, justify="right")
    table.add_column("target")
    return table


def _report(table: Table, comparison: Comparison, samples: dict[str, list[float]]) -> None:
    middles = [median(times) for times in samples.values()]
    for place, (name, times) in enumerate(samples.items()):
        ratio = f"{middles[0] / middles[1]:.2f}" if place == 0 and len(middles) > 1 else ""
        target = _target(comparison, middles) if place == 0 else ""
        row = [f"{value:,.1f}" for value in (min(times), median(times), max(times))]
        table.add_row(
            "" if place else comparison.title, name, *row, ratio, target, end_section=place + 1 == len(samples)
        )


def _target(comparison: Comparison, middles: Sequence[float]) -> str:
    value = middles[0] if comparison.unit == "ms" else middles[0] / middles[1]
    goal = f"<= {comparison.limit:g} ms" if comparison.unit == "ms" else f"<= {comparison.limit:g}x"
    return f"{goal}: {'met' if value <= comparison.limit else 'MISSED'}"


def asked(about: str | None, what: str, usual: int) -> int:
    """The one number that a benchmark takes on its command line, `--what N`; `--help` says what it is about."""
    words = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    words.add_argument(f"--{what}", type=int, default=usual, metavar="N", help=f"at most so many (default: {usual})")
    return max(1, int(getattr(words.parse_args(), what)))


if __name__ == "__main__":
    sys.exit(main(asked(__doc__, "rounds", 20)))
