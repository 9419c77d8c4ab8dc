"""The figures of an enumeration: how many points, and what came of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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
        total = sum(self.rows.values(), Counter())
        figures = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        shown = {**self.rows, f"all {len(self.rows)}": total}
        return [
            f"[{self.name}] {row}: " + ", ".join(f"{one[name]} {name}" for name in figures)
            for row, one in shown.items()
        ]


def shown(config, table: Table) -> None:
    """Print it, captured or not."""
    if table.rows:
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print("", *table.lines, sep="\n", flush=True)
