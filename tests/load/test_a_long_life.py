"""However long it runs and however much it finds: what a cycle reads, writes and starts does not grow with it.

Bytes and git processes are counted, never time. A long past is made at once (`aged`); `python -m bench.load` lives it,
and holds time and memory to bounds as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bench import endurance
from bench.generated import generate
from bench.load import RESULTS
from bench.spent import git_counted
from ralph_mission.adapters.fixers import typos
from ralph_mission.adapters.fixers.fixer import CommitTree
from ralph_mission.mission.findings.identity import BACKLOG
from ralph_mission.mission.memory.text import parse_memory, parse_notes
from tests.figures import Table, shown
from tests.helpers import NOON, git
from tests.integration.world import World, world
from tests.load.aged import begun, grow
from tests.load.sizes import real


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    made = Table("a long life")
    yield made
    shown(request.config, made)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Grows by a byte with each git process."""
    with git_counted(tmp_path / "counted") as made:
        yield made


def processes(here: World, log: Path, after: timedelta = timedelta(hours=7)) -> int:
    """The git processes of one more cycle."""
    before = log.stat().st_size
    here.cycle(after)
    return log.stat().st_size - before


def aged(folder: Path, cycles: int) -> World:
    """A repository with so many cycles behind it."""
    here = begun(folder)
    grow(here, cycles)
    return here


def written(here: World, before: str) -> int:
    """The bytes of the objects that came since."""
    return int(here.git("rev-list", "--objects", "--disk-usage", f"{before}..ralph-memory"))


@pytest.mark.long  # a long life
@pytest.mark.attack(26)
@pytest.mark.parametrize("cycles", [120, real(5_000)])
def test_memory_is_archived_never_trimmed_and_a_cycle_costs_what_it_did(
    tmp_path: Path, log: Path, cycles: int, table: Table
) -> None:
    young, old = aged(tmp_path / "young", 10), aged(tmp_path / "old", cycles)
    starts = [here.git("rev-parse", "ralph-memory") for here in (young, old)]
    started = [processes(here, log) for here in (young, old)]
    assert started[1] <= started[0]
    first, last = endurance.held(young), endurance.held(old)
    assert last["memory file, B"] <= 1.2 * first["memory file, B"]
    assert last["open.json, B"] <= first["open.json, B"] + 50 * 30  # the ids of 50 cycles
    grown = [written(here, start) for here, start in zip((young, old), starts, strict=True)]
    assert grown[1] <= 4 * grown[0]
    table.count(
        f"{cycles:,} cycles of memory", git=started[1], memory_bytes=int(last["memory file, B"]), bytes_written=grown[1]
    )
    assert told_of(old) == set(range(3, cycles + 1))
    assert [document["report"]["cycle"] for document in old.house().store.journal()] == list(range(1, cycles + 2))


@pytest.mark.long  # takes ten seconds or more
def test_cycles_that_are_lived_start_no_more_processes_at_the_end_of_a_life(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, table: Table
) -> None:
    monkeypatch.setattr(endurance, "FIXED", 6)  # more pulls merged than a cycle looks at, which are those of 7 days
    told = endurance.measured(60, tmp_path / "life", log)
    cost, kept = told[endurance.COST], told[endurance.HELD]["after 60"]
    assert kept["pulls"] >= 10
    assert cost["the last 30"]["git, quiet"] <= cost["the first 30"]["git, quiet"] + 1
    assert cost["the last 30"]["git, busy"] <= cost["the first 30"]["git, busy"] + 1
    assert (kept["journal"], kept["recordings"]) == (62, 50)  # two of them in a process of their own
    table.count("60 cycles that were lived", git=int(cost["the last 30"]["git, quiet"]), pulls=int(kept["pulls"]))


def told_of(here: World) -> set[int]:
    """The cycles whose missions stand in the memory file or its archive, but for those of the first two cycles."""
    paths = here.git("ls-tree", "-r", "--name-only", "ralph-memory", "memory/archive/").splitlines()
    notes = [note for path in paths for note in parse_notes(here.git("cat-file", "blob", f"ralph-memory:{path}"))[0]]
    kept = parse_memory(here.memory().encode()).completed
    names = {note.title for note in (*notes, *kept)}
    return {int(name.removeprefix("mission ")) for name in names if name.startswith("mission ")}


@pytest.mark.long  # takes ten seconds or more
@pytest.mark.parametrize("found", [1_000])
def test_findings_wait_in_bounded_numbers_and_cost_no_process_each(
    tmp_path: Path, log: Path, found: int, table: Table
) -> None:
    few, many = of_results(tmp_path / "few", 20), of_results(tmp_path / "many", found)
    started = [processes(here, log) for here in (few, many)]
    assert started[0] == started[1]
    state = many.house().store.recall().state
    assert len(state.backlog) == BACKLOG
    assert len(git(many.repo, "cat-file", "blob", "ralph-memory:memory/open.json")) < BACKLOG * 2_000
    table.count(f"{found:,} findings", git=started[1], kept=len(state.backlog))


def of_results(folder: Path, size: int) -> World:
    """A repository whose checkers have so many results, half of each."""
    half = {name: "".join(f"src/{n}.py:{n}: {name} {n}\n" for n in range(size // 2)) for name in ("errors", "style")}
    return world(folder, {f"{name}.txt": text for name, text in half.items()}, RESULTS)


@pytest.mark.long  # takes ten seconds or more
@pytest.mark.parametrize("files", [2_000, 50_000])
def test_files_cost_no_git_process_each(
    tmp_path: Path, log: Path, files: int, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitTree, "out_of_time", False)  # or a busy machine leaves some files to the next cycle
    few, many = (World(generate(tmp_path / str(size), NOON, size), NOON) for size in (400, files))
    for what, parts in (("first", files // typos.PART), ("next", 0)):
        started = [processes(here, log) for here in (few, many)]
        assert started[1] <= started[0] + parts * CLONE + ENOUGH
        table.count(f"{files:,} files, {what} cycle", git=started[1])


CLONE = 7  # processes for each part of the files that is checked for misspellings
ENOUGH = 20  # processes more: lists of paths are cut where a command line ends
