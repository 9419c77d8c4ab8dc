"""The benchmark of the senses, in small: every figure comes out, beside what it is compared with."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import senses, senses_database, senses_world
from tests.postgres_server import Unavailable

ROOT = Path(__file__).parents[2]
NUMBER = r"[\d,]+(\.\d)?"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[list[list[str]]]:
    """The three tables of a run of one round on little, cell by cell."""
    monkeypatch.setattr(senses, "SLOW", 0.1)
    monkeypatch.setattr(senses, "backends", lambda: ["sqlalchemy"])
    for name, value in {"MODULES": 3, "PACKAGES": 3, "ISSUES": 2}.items():
        monkeypatch.setattr(senses_world, name, value)
    assert senses.main(1, 2_000) == 0
    said = capsys.readouterr().out.split("┏")[1:]
    lines = [[line.split("│")[1:-1] for line in table.splitlines() if line.startswith("│")] for table in said]
    return [[[cell.strip() for cell in line] for line in table] for table in lines]


@pytest.mark.long  # takes ten seconds or more
def test_every_figure_stands_beside_what_it_is_compared_with(tables: list[list[list[str]]]) -> None:
    watches, cycles, at_once = tables
    assert [row[0] for row in watches] == list(senses_database.KINDS)
    assert all(re.fullmatch(NUMBER, figure) for row in watches for figure in row[2:6])
    assert all(re.search(r"<= \d+: (met|MISSED)$", row[-1]) for row in watches)
    by_name = {row[0]: row for row in cycles if row[0]}
    assert list(by_name) == [
        "code and forge, first",
        "code and forge, second",
        "code and forge, later",
        "every sense, first",
        "every sense, second",
        "every sense, later",
        "every sense, 10 min on",
    ]
    first, second = by_name["every sense, first"], by_name["every sense, second"]
    assert [first[3], first[4], second[3], second[4]] == ["8", "0", "8", "6"]  # a new day: robots.txt again
    assert by_name["every sense, 10 min on"][3] == "0"
    assert [row[1] for row in at_once] == ["all at once", "the slow one alone", "one after another"]


def test_without_a_postgresql_it_says_what_brings_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def planted(rows: int):
        raise Unavailable("no PostgreSQL here: make install-dev brings one")
        yield

    monkeypatch.setattr(senses, "planted", planted)
    assert senses.main(1, 10) == 0
    assert "senses: not measured: no PostgreSQL here" in " ".join(capsys.readouterr().err.split())


def test_it_is_part_of_make_bench() -> None:
    assert "bench.senses\n" in (ROOT / "Makefile").read_text()
