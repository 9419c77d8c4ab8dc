"""A memory of thousands of cycles: what the last hundred cost beside the first. A part of `python -m bench.load`.

Every cycle is a real one: git, memory branch, local forge, observers, a fixer. They follow each other in one process,
each with ports of its own, so that what is left out is the start of a process; at each mark one more runs in a process
of its own, which shows that too. Where the end of the life costs more than `MOST` allows, the run is refused.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

from bench.bounds import AT_MOST, Bounds, Most, limits
from bench.spent import Figures, Told, cycle, ratio
from ralph_mission.adapters.storage.memory import branch, recordings
from ralph_mission.mission import memory as layout
from ralph_mission.mission.model import ledger, memory
from tests.helpers import commit
from tests.integration.world import CALM, World, world

COST, HELD = "cycles of a long life", "what a long life leaves"
OLDEST = 5_000
MARKS = (50, 500)
WINDOW = 100  # cycles at either end that are compared
FIXED = 25  # cycles from one misspelling that somebody commits to the next
PACE = timedelta(hours=6)
TIMES, LIMITS = "the last, times the first", f"the last, {AT_MOST}"
LATER, LATER_LIMITS = "the last mark, times the one before", f"the last mark, {AT_MOST}"
PATIENCE = 10.0  # seconds without a word of how far it is
BOUNDS = {
    COST: (
        "ledger: only the keys that a cycle touches are read, in 256 folders; the journal is never read by a cycle",
        "git processes: none for a pull that was closed more than 7 days ago, adapters/forges/local/__init__.py",
        "pulls and open issues of the local forge: each is a file, read once a cycle",
        "left out: the start of a process for each cycle (process: one more cycle, with it)",
        f"the life: somebody commits a misspelling every {FIXED} cycles, which is mended and merged (busy)",
    ),
    HELD: (
        f"memory file: {memory.KEEP_COMPLETED} missions and {memory.KEEP_OBSERVATIONS} cycles, "
        "mission/model/memory.py; the rest goes to the archive, a file a month",
        f"open.json: {ledger.KEPT_IDS} ids, {ledger.KEPT_WAKES} wakes, {ledger.KEPT_POSTS} posts, mission/model",
        f"loose objects: packed every {branch.PACKED} commits of memory, adapters/git/git.py",
        f"recordings: {recordings.KEEP} cycles, adapters/storage/memory/recordings.py",
        "history is kept: journal, ledger, archive and objects grow by what a cycle writes, and by no more than that",
    ),
}
SAME = Most(1.5)  # what a life does not change
WORK = Most(3, 0.03)
"""Of processors. The same cycle took 1.4 times as much on a busy machine; with 5,000 cycles of memory it took 0.9 times
as much as with ten, and 3 times with the 200 pulls that they leave, which are read in each (a millisecond for each)."""
GROWN = Most(1.5, 1.5)  # what is kept of each cycle: it grows as their number, 100 times from 50 cycles to 5,000
MOST: dict[str, Bounds] = {
    COST: {
        **{f"seconds, {kind}": WORK.waited for kind in ("quiet", "busy", "process")},
        **{f"processor, {kind}": WORK for kind in ("quiet", "busy", "process")},
        **{f"git, {kind}": SAME for kind in ("quiet", "busy")},  # 25 and 50; the cycle that packs has some more
        "MiB, process": SAME,  # 53, and 57 beside 200 pulls
    },
    HELD: {
        **{f"{name}, B": Most(2) for name in ("memory file", "open.json")},  # from 3,001 to 4,116 at most
        "dashboard, B": Most(2.5),  # 2.2: two missions after 50 cycles, and from 250 on the ten that it lists
        **dict.fromkeys(("archive, kB", "ledger", "journal", "pulls", "objects, kB"), GROWN),
        "loose": Most(22),  # 620 after 50; at most twice what 500 cycles add: git packs, and deletes a run later
        "recordings": Most(1),
        "written, kB a cycle": Most(4),  # an archive of a month, which is written anew, has become as long as it gets
    },
}
FULL: Bounds = {f"{name}, B": Most(1.2) for name in ("memory file", "open.json", "dashboard")}
"""Of what is as long as it gets by the second mark; measured: 1.006 times as much at 5,000 cycles, ten times as far."""
Hear = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Lived:
    """What a cycle took, of the clock and of processors (a busy machine changes the one), and whether it had to do."""

    seconds: float
    worked: float
    git: int
    busy: bool


@dataclass(slots=True)
class Life:
    """One repository through all its cycles. `log` grows by a byte with each git process."""

    here: World
    log: Path
    lived: list[Lived]

    def until(self, cycles: int) -> Iterator[Lived]:
        """One cycle after the other, up to so many."""
        while len(self.lived) < cycles:
            busy = self._happened(len(self.lived) % FIXED)
            before, begun, idle = self.log.stat().st_size, time.perf_counter(), processors()
            self.here.cycle(PACE)
            took, worked = time.perf_counter() - begun, processors() - idle
            self.lived.append(Lived(took, worked, self.log.stat().st_size - before, busy))
            yield self.lived[-1]

    def alone(self) -> Figures:
        """One more cycle, in a process of its own."""
        self.here.now += PACE
        took = cycle(self.here.repo, self.here.now.isoformat(), self.log)
        spent = {"seconds, process": round(took.seconds, 2), "processor, process": round(took.worked, 2)}
        return spent | {"MiB, process": round(took.mebibytes)}

    def _happened(self, place: int) -> bool:
        """What people did: they commit a misspelling, and say yes to its correction."""
        if place == 0:
            name = f"docs/{len(self.lived)}.md"
            commit(self.here.repo, {name: f"We recieve boat {len(self.lived)}.\n"}, date=self.here.now)
        elif place == 1:
            self.here.person().review(max(pull.number for pull in self.here.house().forge.pulls()), "approved")
        return place < 2


def measured(oldest: int, folder: Path, log: Path, hear: Hear = print) -> Told:
    """A row for each mark up to the oldest; then the last cycles beside the first of the same life."""
    life = Life(world(folder, config=CALM), log, [])
    life.here.git("config", "gc.auto", "0")  # of people's git: what is packed here, Ralph packed
    told: Told = {COST: {}, HELD: {}}
    marks = (*(one for one in MARKS if one < oldest), oldest)
    for mark in marks:
        since, before = len(life.lived), written(life.here)
        _live(life, mark, hear)
        lived, row = life.lived[since:], f"after {mark:,}"
        grown = round((written(life.here) - before) / len(lived), 2)
        told[COST][row] = _window(lived) | life.alone()
        told[HELD][row] = held(life.here) | {"written, kB a cycle": grown}
    return compared(told, life.lived, oldest / marks[0])


def compared(told: Told, lived: Sequence[Lived], longer: float) -> Told:
    """The same with how many times as much the last of a life is, and how much it may be where it is so much longer."""
    window, cost, kept = min(WINDOW, len(lived) // 2), told[COST], list(told[HELD].values())
    first, last = (_window(part) for part in (lived[:window], lived[-window:]))
    alone = [{name: one for name, one in row.items() if name.endswith(", process")} for row in cost.values()]
    windows = {f"the first {window}": first, f"the last {window}": last}
    ratios = {COST: ratio(last | alone[-1], first | alone[0]), HELD: ratio(kept[-1], kept[0])}
    bounds = {title: limits(MOST[title], longer) for title in ratios}
    judged = {title: {TIMES: ratios[title], LIMITS: bounds[title]} for title in ratios}
    return {COST: cost | windows | judged[COST], HELD: {**told[HELD], **judged[HELD], **_full(kept)}}


def _full(kept: Sequence[Figures]) -> Mapping[str, Figures]:
    """How many times as much the last mark has, as the one before it, of what was full there; if it was reached."""
    if len(kept) <= len(MARKS):
        return {}
    before, last = ({name: one for name, one in row.items() if name in FULL} for row in kept[-2:])
    return {LATER: ratio(last, before), LATER_LIMITS: limits(FULL, 1)}


def _live(life: Life, mark: int, hear: Hear) -> None:
    """All cycles up to a mark, with a word now and then."""
    said = time.monotonic()
    for _ in life.until(mark):
        if time.monotonic() - said > PATIENCE:
            said = time.monotonic()
            hear(f"  {len(life.lived):,} cycles, on the way to {mark:,} …")


def _window(lived: Sequence[Lived]) -> Figures:
    """The middle one of these cycles, and the most git processes that one of them started."""
    kinds = {busy: [one for one in lived if one.busy is busy] for busy in (False, True)}
    names = {False: "quiet", True: "busy"}
    figures: Figures = {}
    for busy, some in kinds.items():
        if some:
            figures[f"seconds, {names[busy]}"] = round(median(one.seconds for one in some), 3)
            figures[f"processor, {names[busy]}"] = round(median(one.worked for one in some), 3)
            figures[f"git, {names[busy]}"] = max(one.git for one in some)
    return figures


def held(here: World) -> Figures:
    """What the memory branch and its repository hold now."""
    listed = here.git("ls-tree", "-r", "--long", "ralph-memory").splitlines()
    sizes = {line.partition("\t")[2]: int(line.split()[3]) for line in listed}
    below = {name: [path for path in sizes if path.startswith(f"{name}/")] for name in (layout.LEDGER, layout.JOURNAL)}
    counted = objects(here)
    return {
        "memory file, B": sizes[layout.MEMORY],
        "open.json, B": sizes[layout.OPEN],
        "dashboard, B": sizes[layout.DASHBOARD],
        "archive, kB": round(sum(size for path, size in sizes.items() if path.startswith(layout.ARCHIVE)) / 1000, 1),
        "ledger": len(below[layout.LEDGER]),
        "journal": len(below[layout.JOURNAL]),
        "pulls": len(here.pulls),
        "loose": counted["count"],
        "packs": counted["packs"],
        "recordings": len(list((here.repo / ".ralph/cycles").iterdir())),
        "objects, kB": kilobytes(here),
    }


def processors() -> float:
    """The seconds that processors spent on this process and on those that it started."""
    return sum(os.times()[:4])


def objects(here: World) -> dict[str, int]:
    """What `git count-objects -v` says."""
    lines = (line.partition(": ") for line in here.git("count-objects", "-v").splitlines())
    return {name: int(value) for name, _, value in lines if value.isdigit()}


def kilobytes(here: World) -> int:
    """What the objects take on the disk."""
    sizes = subprocess.run(["du", "-sk", str(here.repo / ".git/objects")], capture_output=True, check=True)
    return int(sizes.stdout.split()[0])


def written(here: World) -> int:
    """The kilobytes of all objects, whether they are packed or not: what was written, and not how well it is stored."""
    sizes = here.git("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectsize)")
    return sum(int(size) for size in sizes.split()) // 1000
