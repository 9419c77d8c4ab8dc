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
ONCE = ("points",)
"""Figures of a row that each part of an enumeration tells again."""
TRIED = ("cases", "pairs", "interleavings", "faults")
"""What is counted once for each life, whose effects may end in doubt."""


def total(rows: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The figures of all rows together: their sum, or the largest of them."""
    every = [Counter(row) for row in rows]
    summed = sum(every, Counter())
    largest = {name: max(row[name] for row in every) for name in LARGEST if name in summed}
    return Counter({name: summed[name] for row in every for name in row} | largest)


def in_doubt(every: Mapping[str, int]) -> str:
    """The rate of `unknown`: effects of which nobody but a person can say whether they happened."""
    tried = next((name for name in TRIED if every.get(name)), None)
    if tried is None or "unknown" not in every:
        return ""
    return (
        f"in doubt: {every['unknown']} effects in {every[tried]} {tried}, {every['unknown'] / every[tried]:.2f} in each"
    )


@dataclass
class Table:
    """`count` adds to a figure; `lines` shows them, a row for each scenario and one for all."""

    name: str
    rows: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, row: str, **figures: int) -> None:
        """Add to the figures of a row."""
        counted = self.rows.setdefault(row, Counter())
        for name, figure in figures.items():
            counted[name] = max(counted[name], figure) if name in ONCE else counted[name] + figure

    @property
    def lines(self) -> list[str]:
        """One line for each row, the sum, and the rate of what is in doubt."""
        figures, every = (
            list(dict.fromkeys(name for row in self.rows.values() for name in row)),
            total(self.rows.values()),
        )
        shown = {**self.rows, f"all {len(self.rows)}": every}
        said = [f"{row}: " + ", ".join(f"{one[name]} {name}" for name in figures) for row, one in shown.items()]
        return [f"[{self.name}] {line}" for line in (*said, in_doubt(dict(every))) if line]


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
