"""The benchmark of the loop, in small: every figure comes out, beside what it is compared with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import generated, loop

pytestmark = pytest.mark.long  # takes ten seconds or more

NUMBER = r"[\d,]+\.\d"
TITLES = {
    "MCP: look": 3, "MCP: change": 3, "MCP: say": 3, "command line: look": 60, "command line: change": 60,
    "command line: say": 60, "around a session, 5,200 files": 150, "Ctrl-C while it waits for": 2000,
}  # fmt: skip  # one table
BESIDE = ("python -c pass", "git status", "the agent alone", "a check that ignores it", "an agent that obeys")


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> list[list[str]]:
    """The table of a run of one round on a small repository, cell by cell."""
    monkeypatch.setattr(generated, "COMMITS", 2)
    monkeypatch.setattr(loop, "SESSIONS", 2)
    monkeypatch.setattr(loop, "TASKS", 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert loop.main(1) == 0
    assert list(tmp_path.iterdir()) == []
    lines = capsys.readouterr().out.splitlines()
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]


def test_every_figure_has_its_promise_and_stands_beside_the_others(rows: list[list[str]]) -> None:
    first = {row[0]: row for row in rows if row[0]}
    assert list(first) == list(TITLES)
    for title, limit in TITLES.items():
        assert re.fullmatch(rf"<= {limit} ms: (met|MISSED)", first[title][-1]), title
        assert re.fullmatch(r"\d+\.\d\d", first[title][-2]), title
    assert all(re.fullmatch(NUMBER, figure) for row in rows for figure in row[2:5])
    assert set(BESIDE) <= {row[1] for row in rows}
    assert sum(row[1] == "python -c pass" for row in rows) == len(TITLES) - 1
