"""What watches found as signals: our own words and numbers, and the cells of rows as quotations marked as such."""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.mission.model import Signal
from ralph_mission.observers.database.exact import format_value
from ralph_mission.observers.database.found import RowFact
from ralph_mission.observers.database.settings import DatabaseWatch
from ralph_mission.observers.text import block, one_line
from ralph_mission.safety.secrets import redact

UNTRUSTED = "cells of the row, untrusted, quoted"
CELL = 200  # characters


def signal(watch: DatabaseWatch, found: RowFact, hidden: Sequence[str] = ()) -> Signal:
    """One finding. `hidden` are values that must not be shown, such as a password."""
    cells = [f"> {name}: {_cell(value, hidden)}" for name, value in found.pairs() if name.startswith("row.")]
    quoted = f"\n({UNTRUSTED}):\n" + "\n".join(cells) if cells else ""
    facts = ((name, value if isinstance(value, int | float) else _cell(value, hidden)) for name, value in found.pairs())
    return Signal(
        observer="database",
        kind=watch.kind,
        title=one_line(redact(f"{watch.name}: {subject(watch, found)} {found.words}", hidden)),
        essence=found.essence,
        occurrence=found.occurrence,
        severity=watch.severity,
        confidence=0.9,
        effort=2.0,
        detail=block(f"{watch.source}, watched as {watch.name} ({watch.sort}): {found.words}.{quoted}"),
        facts=tuple(facts),
        series=found.series,
    )


def subject(watch: DatabaseWatch, found: RowFact) -> str:
    """What it is about, as people call it: what is included first, else the group, else the table."""
    first = watch.include[0] if watch.include else None
    names = [
        format_value(value) for name, value in found.fields if first and (name == first or name.endswith(f".{first}"))
    ]
    return ", ".join(filter(None, names)) or found.group or watch.source


def _cell(value: str | int | float, hidden: Sequence[str]) -> str:
    return redact(one_line(str(value), CELL), hidden)
