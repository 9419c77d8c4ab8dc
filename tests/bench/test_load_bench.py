"""The benchmark of load and endurance, in small: every figure comes out, in tables and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bench import endurance, load

pytestmark = pytest.mark.long  # takes ten seconds or more


SMALL = {"files of a repository": (400, 800)}


def in_small(monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """What a run on little writes."""
    sizes = [SMALL.get(case.title, (5, 10)) for case in load.CASES]
    cases = zip(load.CASES, sizes, strict=True)
    monkeypatch.setattr(load, "CASES", tuple(replace(case, small=few, large=many) for case, (few, many) in cases))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    load.main(1, 20, folder / "figures.json")  # whether so little is within its bounds is a matter of time
    return json.loads((folder / "figures.json").read_text())


def test_every_case_stands_in_large_beside_small_with_what_bounds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = in_small(monkeypatch, tmp_path)
    shown = capsys.readouterr().out
    assert set(figures) == {*(case.title for case in load.CASES), *endurance.BOUNDS}
    for case in load.CASES:
        rows = figures[case.title]
        large = {name.partition(", ")[2] for name in rows if name.startswith(f"{case.large:,}, ")}
        assert large and {f"{case.small:,}, {what}" for what in large} <= rows.keys()
        assert {f"times as much, {what}" for what in large} <= rows.keys()
        assert all(figure["seconds"] > 0 and figure["MiB"] > 0 for figure in rows.values())
        assert all(bound[:30] in shown for bound in case.bounds)
        assert rows["times as much, at most"].keys() <= set().union(*(rows[f"times as much, {what}"] for what in large))
    assert figures["comments of a stranger on a mission's issue"]["10, an owner's word is heard"]["heard"] == 1
    assert figures["issues of strangers"]["10, with an owner's mission"]["it is one"] == 1
    cost, kept = figures[endurance.COST], figures[endurance.HELD]
    assert set(cost) == {"after 20", "the first 10", "the last 10", endurance.TIMES, endurance.LIMITS}
    assert cost[endurance.LIMITS].keys() <= cost["the first 10"].keys() | cost[endurance.TIMES].keys()
    assert kept[endurance.LIMITS].keys() <= kept["after 20"].keys()
    assert cost["the last 10"]["seconds, quiet"] > 0 and cost["after 20"]["MiB, process"] > 0
    assert (kept["after 20"]["journal"], kept["after 20"]["pulls"]) == (21, 1)  # one in a process of its own


@pytest.mark.parametrize("scale", [1, 10, 1_000])
def test_a_size_that_is_divided_is_still_beside_a_smaller_one(tmp_path: Path, scale: int) -> None:
    rows = (("a cycle", {"seconds": float(size)}) for size in (50, max(100, 500 // scale)))
    case = replace(load.CASES[0], small=50, large=500, run=lambda size, place, log: iter([next(rows)]))
    told = load.compared(case, scale, tmp_path, tmp_path / "log", load.Progress(Console(file=StringIO())))
    assert told["times as much, a cycle"] == {"seconds": 10.0 if scale == 1 else 2.0}
