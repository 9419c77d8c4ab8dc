"""What `python -m bench.load` measures it holds against bounds: beyond one it ends with 1 and names the row.

Nothing is timed here: the figures are made up, the bounds and what judges by them are those of the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench import bounds, endurance, load
from bench.bounds import Most
from bench.endurance import Lived
from bench.spent import Figures

QUAY = "boats at a quay"
LATE = 5_000 / endurance.MARKS[0]  # times as long as at the first mark


def hub(requests: float) -> load.Case:
    """A case of which a large one, ten times as large, asks for so much; a small one asks for ten."""

    def run(size: int, folder: Path, log: Path) -> Iterator[tuple[str, Figures]]:
        yield "first cycle", {"requests": 10 if size == 5 else requests, "boats": size}
        yield "next cycle", {"requests": 10, "boats": size}

    return load.Case(QUAY, 5, 50, run, ("the quay",), {"requests": Most(1, 0.2)})


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the run writes them."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "figures.json"


@pytest.mark.parametrize(("requests", "code"), [(10, 0), (30, 0), (31, 1), (1_000, 1)])
def test_a_figure_beyond_its_bound_fails_the_run_and_one_within_does_not(
    requests: float, code: int, figures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load, "CASES", (hub(requests),))
    assert load.main(figures=figures, only=QUAY) == code
    said = [line for line in capsys.readouterr().err.splitlines() if "beyond" in line]
    named = f"beyond its bound: {QUAY}: times as much, first cycle: requests is {requests / 10:g}, at most 3"
    assert said == [named] * code


def lived(quiet: Lived, last: Lived) -> list[Lived]:
    """A life of two hundred cycles, each like `quiet`, of which the last hundred are like `last`; a few are busy."""
    each = [BUSY, *[quiet] * (endurance.FIXED - 1)] * 4
    return each + [last if one is quiet else one for one in each]


ALONE = {"seconds, process": 1.0, "processor, process": 0.8, "MiB, process": 53.0}
HELD = {
    "memory file, B": 3_000.0,
    "dashboard, B": 1_132.0,
    "journal": 51.0,
    "loose": 700.0,
    "recordings": 50.0,
    "written, kB a cycle": 60.0,
}
FULL = HELD | {"memory file, B": 4_095.0, "journal": 502.0, "dashboard, B": 2_435.0}
QUIET, BUSY = Lived(0.15, 0.08, 25, busy=False), Lived(0.4, 0.2, 50, busy=True)


def told_of(last: Lived = QUIET, **end: float) -> list[str]:
    """The lines that refuse a life whose end is such as this, a hundred times as far as its first mark."""
    cost = {"after 50": ALONE, "after 500": ALONE, "after 5,000": ALONE | end}
    kept = {"after 50": HELD, "after 500": FULL, "after 5,000": FULL | {"journal": 5_003.0} | end}
    told = {endurance.COST: cost, endurance.HELD: kept}
    return bounds.beyond(endurance.compared(told, lived(QUIET, last), LATE))


def test_a_life_that_ends_as_it_began_is_within_its_bounds() -> None:
    assert told_of() == []


@pytest.mark.parametrize(
    ("name", "last", "end"),
    [
        ("processor, quiet", replace(QUIET, worked=0.8), {}),
        ("git, quiet", replace(QUIET, git=250), {}),
        ("MiB, process", QUIET, {"MiB, process": 200.0}),
        ("journal", QUIET, {"journal": 9_000.0}),
        ("recordings", QUIET, {"recordings": 5_000.0}),
        ("loose", QUIET, {"loose": 70_000.0}),
    ],
)
def test_a_life_whose_end_costs_more_is_refused_by_name(name: str, last: Lived, end: Figures) -> None:
    found = told_of(last, **end)
    assert len(found) == 1
    assert f"{endurance.TIMES}: {name} is " in found[0]


SIZES = {case.title: (case.large / case.small, case.most) for case in load.CASES} | {
    title: (LATE, most) for title, most in endurance.MOST.items()
}
SIZES |= {endurance.LATER: (5_000 / endurance.MARKS[1], endurance.FULL)}


@pytest.mark.parametrize("title", SIZES)
def test_what_is_the_same_for_any_size_is_within_every_bound_at_any_scale(title: str) -> None:
    assert [name for name, one in SIZES[title][1].items() if one.of(1) < 1] == []
