"""What a crowd costs: `python -m bench.load`. A large case beside a small one of the same run, and what bounds it.

Everything is real but GitHub, which is the suite's fake on loopback: git, processes, memory branch. Each cycle is a
process of its own, but for those of the endurance; the pauses between its writes on GitHub are left out.
`--figures FILE` writes the figures as JSON, `--scale N` divides the large sizes (default: 1) to twice the small ones at
the least, `--endurance N` is how many cycles the longest life has (default: 5,000), `--only WORD` takes the cases with
this word in their title. At full size it takes about half an hour of two idle cores.

It ends with 1, and names the row, where a large case took more than its bound allows (`bench.bounds`): so many times as
much as the small one, and so much more for each time it is larger. Bounds stand a third or more above what was measured
at full size (an eighth where it is of bytes that are the same on any machine), and far below what would grow with the
square.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from bench import endurance
from bench.bounds import AT_MOST, Bounds, Most, beyond, limits
from bench.generated import PLAIN, TOUCHED, generate
from bench.spent import Figures, Spent, Told, counter, cycle, git_counted, ratio, report, spent, table, written
from ralph_mission.adapters.fixers import verify
from ralph_mission.adapters.forges.github import api
from ralph_mission.adapters.observers import commands, forge, markers
from ralph_mission.mission.coder.tasks import REMARK, REMARKS
from ralph_mission.mission.findings import identity
from ralph_mission.mission.issues import tasks
from tests.fakes.github.actions import threads
from tests.helpers import commit, make_repo
from tests.integration.hub import UNPACED, Hub, open_hub
from tests.integration.test_hub_requests import crowd

LATER = timedelta(hours=7)
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
LINE = "parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}"
RESULTS = f"""\
observers:
  code: {{markers: {{}}}}
  commands:
    - {{name: errors, run: cat errors.txt, kind: bug, {LINE}}}
    - {{name: style, run: cat style.txt, kind: code-quality, {LINE}}}
hands: {{fixers: []}}
"""
PAUSE = f"left out of the seconds: {api.PACE:g} s from one write to the next, PACE, adapters/forges/github/api.py"
TIMES = "times as much"
Rows = dict[str, Figures]


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of load: what a small and a large one of it cost, the names in the code that bound it, and how many
    times as much the large one may cost."""

    title: str
    small: int
    large: int
    run: Callable[[int, Path, Path], Iterator[tuple[str, Figures]]]
    bounds: tuple[str, ...]
    most: Bounds


@dataclass(slots=True)
class Progress:
    """Says how far it is, and how many seconds have passed."""

    progress: Console
    begun: float = field(default_factory=time.monotonic)

    def __call__(self, what: str) -> None:
        """One line."""
        self.progress.print(f"{time.monotonic() - self.begun:5.0f} s  {what}")


def main(scale: int = 1, oldest: int = endurance.OLDEST, figures: Path | None = None, only: str = "") -> int:
    """Print a table for each case, and those of endurance; 1 where a figure is beyond its bound."""
    told = Told()
    with tempfile.TemporaryDirectory(prefix="ralph load ", ignore_cleanup_errors=True) as folder:
        for title, rows, bounds in _tables(scale, oldest, only, Path(folder)):
            told[title] = rows
            Console(width=150).print(table(title, rows, bounds))
            written(figures, told)  # each time: what takes half an hour may be broken off
    return _verdict(told)


def _verdict(told: Told) -> int:
    """0, or 1 with a line for each figure beyond its bound."""
    lines = beyond(told)
    for line in lines:
        print(line, file=sys.stderr)
    return int(bool(lines))


def _tables(scale: int, oldest: int, only: str, folder: Path) -> Iterator[tuple[str, Rows, tuple[str, ...]]]:
    """Each table when it was measured: its title, its rows, and what bounds it."""
    progress, log = Console(stderr=True), counter(folder)
    for place, case in enumerate(CASES):
        if only in case.title:
            yield case.title, compared(case, scale, folder / str(place), log, Progress(progress)), case.bounds
    if any(only in title for title in endurance.BOUNDS):
        for title, rows in _lived(oldest, folder / "endurance", Progress(progress)).items():
            yield title, rows, endurance.BOUNDS[title]


def _lived(oldest: int, folder: Path, progress: Progress) -> Told:
    folder.mkdir()
    with git_counted(folder) as log:
        progress(f"{endurance.COST}: {oldest:,}")
        return endurance.measured(oldest, folder / "repo", log, progress)


def compared(case: Case, scale: int, folder: Path, log: Path, progress: Progress) -> Rows:
    """The rows of a case: each cycle of the small and of the large one, and how many times as much that is."""
    large = max(2 * case.small, case.large // scale)
    rows: Rows = {}
    for size in (case.small, large):
        place = folder / f"of {size}"
        place.mkdir(parents=True)
        progress(f"{case.title}: {size:,}")
        for what, figures in case.run(size, place, log):
            rows[f"{size:,}, {what}"] = figures
            progress(f"  {what}")
    count = len(rows) // 2
    names = list(rows)
    for small, big in zip(names[:count], names[count:], strict=True):
        rows[f"{TIMES}, {small.partition(', ')[2]}"] = ratio(rows[big], rows[small])
    rows[f"{TIMES}, {AT_MOST}"] = limits(case.most, large / case.small)
    return rows


# --- on GitHub ------------------------------------------------------------------------


def asked(hub: Hub, log: Path) -> tuple[Spent, Figures]:
    """A cycle some hours later, and what it asked of the server."""
    hub.now = max(hub.now + LATER, hub.fake.clock.present())
    hub.fake.clock.now = hub.now
    hub.fake.journal.clear()
    line = [sys.executable, "-c", UNPACED, "cycle", "--json", "--force", "--forge", "github"]
    line += ["--repo", str(hub.clone), "--now", hub.now.isoformat()]
    took = spent(line, log, hub.process_environ)
    told = {
        "requests": hub.fake.count(transport="rest"),
        "of these 304": hub.fake.count(transport="rest", status=304),
        "GraphQL": hub.fake.count(transport="graphql"),
        "writes": sum(one.transport == "rest" and one.method != "GET" for one in hub.fake.journal),
    }
    return took, took.figures | told


def people(size: int, folder: Path, log: Path) -> Iterator[tuple[str, Figures]]:
    """So many open issues, two pulls for every five of them, a comment on each, of four people."""
    with open_hub(folder) as hub:
        hub.fake.validate = False
        crowd(hub, size, size * 2 // 5)
        for what in ("first cycle", "next cycle", "nothing to do"):
            yield what, asked(hub, log)[1]


def remarks(size: int, folder: Path, log: Path) -> Iterator[tuple[str, Figures]]:
    """So many comments of a stranger on a mission's pull request."""
    with open_hub(folder) as hub:
        hub.fake.validate = False
        asked(hub, log)
        number, eve = hub.pulls[0].number, hub.fake.person("eve", "read")
        for n in range(size):
            threads.comment(hub.fake.world, eve.account, hub.fake.threads[number], f"{n} {'me too ' * 20}")
        for what in ("read first", "read again"):
            figures = asked(hub, log)[1]
            kept = (hub.clone / ".git" / "ralph" / "github.json").stat().st_size
            yield what, figures | {"kept, kB": kept // 1000, "prompt, characters": longest_prompt(hub, number)}
        hub.person().comment(number, "/ralph reject no, thank you")
        took, figures = asked(hub, log)
        heard = [one["status"] for one in report(took.out)["missions"]] == ["REJECTED"]
        yield "an owner's word is heard", figures | {"heard": int(heard)}


def longest_prompt(hub: Hub, number: int) -> int:
    """What an agent would be told of a pull request if all of its comments were those of people who may decide."""
    issue = hub.house().ports.forge.pull(number).as_issue()
    return len(tasks.issue_prompt(issue, issue.remarks, ""))


def outsiders(size: int, folder: Path, log: Path) -> Iterator[tuple[str, Figures]]:
    """So many issues of strangers with a text of 2,000 characters; then the owner's own mission."""
    with open_hub(folder) as hub:
        hub.fake.validate = False
        eve = hub.fake.person("eve", "read")
        for n in range(size):
            threads.create(hub.fake.world, eve.account, f"Mine first {n}", "w" * 2000)
        yield "first cycle", asked(hub, log)[1]
        number = hub.person().create_issue("Paint the quay", "It is grey.")
        hub.person().label(number, ("ralph:mission",))
        took, figures = asked(hub, log)
        taken = number in [one["issue"] for one in report(took.out)["missions"]]
        yield "with an owner's mission", figures | {"it is one": int(taken)}


# --- here -----------------------------------------------------------------------------


def files(size: int, folder: Path, log: Path) -> Iterator[tuple[str, Figures]]:
    """A repository of so many files; before the last cycle forty of them have changed, one with a misspelling."""
    repo = generate(folder / "repo", NOW, size)
    for place, what in enumerate(("first cycle", "next cycle", "after a change")):
        if what == "after a change":
            news = "// We recieve the value of another module, and add it to ours.\n"
            commit(repo, {f"src/part1/new{number}.ts": news * (not number) + PLAIN for number in range(TOUCHED)})
        yield what, cycle(repo, (NOW + place * LATER).isoformat(), log).figures


def results(size: int, folder: Path, log: Path) -> Iterator[tuple[str, Figures]]:
    """So many results of two checkers."""
    half = {name: "".join(f"src/{n}.py:{n}: {name} {n}\n" for n in range(size // 2)) for name in ("errors", "style")}
    repo = make_repo(folder / "repo", {"ralph.yml": RESULTS, **{f"{name}.txt": text for name, text in half.items()}})
    for place, what in enumerate(("first cycle", "next cycle")):
        took = cycle(repo, (NOW + place * LATER).isoformat(), log)
        told = report(took.out)
        counted = {"findings": len(told["findings"]), "report, kB": len(took.out) // 1000}
        yield what, took.figures | counted


def _costs(processor: Most, mebibytes: Most, git: Most) -> dict[str, Most]:
    """What every case has bounds of."""
    return {"seconds": processor.waited, "processor": processor, "MiB": mebibytes, "git processes": git}


CASES = (
    Case(
        "open issues, and pulls",
        50,
        500,
        people,
        (
            "a page for each hundred of a list: 'per_page=100', adapters/forges/github/threads.py",
            "two git processes for each open pull (its base, what it changes): adapters/forges/commits.py",
            f"in full at most {forge.ISSUES} issues and {forge.PULLS} pulls of a look: adapters/observers/forge",
            PAUSE,
        ),
        # Measured: processors 1.9 times as much, memory 1.2, git 5.6 (two for each pull), requests 2.1, writes 1.
        _costs(Most(3, 0.4), Most(1.5, 0.05), Most(1.5, 1)) | {"requests": Most(1.5, 0.2), "writes": Most(1.5)},
    ),
    Case(
        "comments of a stranger on a mission's issue",
        100,
        10_000,
        remarks,
        (
            f"a page for each hundred, at most {api.LONGEST:,} pages: LONGEST, adapters/forges/github/api.py",
            f"kept {api.MOST // 1_000_000} MB of characters in all: MOST, adapters/forges/github/api.py",
            f"in a prompt {REMARKS} comments of {REMARK:,} characters: mission/coder/tasks.py",
            PAUSE,
        ),
        # Measured: processors 2.1 times as much, memory 1.8, git 1, requests 12, writes 1, kept 45, prompt 1.
        _costs(Most(3, 0.1), Most(1.5, 0.02), Most(1.5))
        | {"requests": Most(1.5, 0.15), "writes": Most(1.5), "kept, kB": Most(1, 1), "prompt, characters": Most(1.5)},
    ),
    Case(
        "issues of strangers",
        100,
        10_000,
        outsiders,
        (
            f"a page for each hundred, at most {api.LONGEST:,}: LONGEST, adapters/forges/github/api.py",
            "the list is asked for again before each issue that is opened, of which a cycle has three at most",
            f"in full at most {forge.ISSUES} of a look, told at most {forge.MOST} of a kind: adapters/observers/forge",
            PAUSE,
        ),
        # Measured: processors 7.8 times as much, memory 4.6 (every issue is held), git 1, requests 16, writes 1.
        _costs(Most(3, 0.15), Most(1.5, 0.06), Most(1.5)) | {"requests": Most(1.5, 0.25), "writes": Most(1.5)},
    ),
    Case(
        "files of a repository",
        400,
        50_000,
        files,
        (
            f"markers: {markers.MARKER_SECONDS:g} s of a look, adapters/observers/markers.py",
            f"fixers: {verify.MOST_FILES} files and {verify.SURVEY_SECONDS:g} s of a look, adapters/fixers/verify.py",
        ),
        # Measured: processors 37 to 47 times as much (a first look reads each file), memory 3.4, git 3.2.
        _costs(Most(3, 0.4), Most(1.5, 0.02), Most(1.5, 0.15)),
    ),
    Case(
        "findings",
        100,
        1_000,
        results,
        (
            f"{commands.MOST} results of one command: MOST, adapters/observers/commands.py",
            f"{identity.BACKLOG} findings wait in memory: BACKLOG, mission/findings/identity.py",
        ),
        # Measured: processors 3.8 times as much, memory 1.5, git 1, the report 9.8 (each finding is told in it).
        _costs(Most(3, 0.6), Most(1.5, 0.1), Most(1.5)) | {"report, kB": Most(1, 1)},
    ),
)


def _asked() -> argparse.Namespace:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--scale", type=int, default=1, metavar="N", help="divide the large sizes by N (default: 1)")
    words.add_argument(
        "--endurance", type=int, default=endurance.OLDEST, metavar="N", help="cycles of the longest life"
    )
    words.add_argument("--only", default="", metavar="WORD", help="only the cases with this word in their title")
    words.add_argument("--figures", type=Path, metavar="FILE", help="write the figures as JSON")
    return words.parse_args()


if __name__ == "__main__":
    line = _asked()
    sys.exit(main(max(1, line.scale), max(10, line.endurance), line.figures, line.only))
