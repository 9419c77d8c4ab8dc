"""The figures of an enumeration: how many points, and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

Told = dict[str, dict[str, dict[str, int]]]
"""Figures by table and row, as they go from one process to another."""
LARGEST = ("depth",)
"""Figures that nobody can add up."""


def total(rows: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The figures of all rows together: their sum, or the largest of them."""
    every = [Counter(row) for row in rows]
    summed = sum(every, Counter())
    return Counter({**summed, **{name: max(row[name] for row in every) for name in LARGEST if name in summed}})


@dataclass
class Table:
    """`count` adds to a figure; `lines` shows them, a row for each scenario and one for all."""

    name: str
    rows: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, row: str, **figures: int) -> None:
        """Add to the figures of a row."""
        self.rows.setdefault(row, Counter()).update(figures)

    @property
    def lines(self) -> list[str]:
        """One line for each row, and the sum."""
        figures = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        shown = {**self.rows, f"all {len(self.rows)}": total(self.rows.values())}
        return [
            f"[{self.name}] {row}: " + ", ".join(f"{one[name]} {name}" for name in figures)
            for row, one in shown.items()
        ]


KEPT = pytest.StashKey[dict[str, Table]]()


def shown(config: pytest.Config, table: Table) -> None:
    """Have it printed at the end of the whole run, whichever process it was filled in."""
    add(config, {table.name: {row: dict(figures) for row, figures in table.rows.items()}})


def add(config: pytest.Config, told: Told) -> None:
    """Add figures to those of this process."""
    tables = tables_of(config)
    for name, rows in told.items():
        for row, figures in rows.items():
            tables.setdefault(name, Table(name)).count(row, **figures)


def tables_of(config: pytest.Config) -> dict[str, Table]:
    """What this process has counted, by name."""
    return config.stash.setdefault(KEPT, {})


def told(config: pytest.Config) -> Told:
    """All of it, as it goes from one process to another or to a file."""
    return {
        name: {row: dict(figures) for row, figures in table.rows.items()} for name, table in tables_of(config).items()
    }
