"""What drivers give for a cell as a `Value`: the same from every one of them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from ralph_mission.adapters.database.queries import Value
from ralph_mission.adapters.database.shapes import Column

LONGEST = 4_000
"""Characters of a text; nothing that is shown or compared is longer."""
DIGITS = 400
"""Of a whole number; written out, a longer one (a text such as 1e999999999 in SQLite) may take all memory."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cell(raw: Any, column: Column) -> Value:
    """Raises ValueError for what cannot be of the column's type, such as a date in a text that is none."""
    if raw is None:
        return None
    match column.type:
        case "bool":
            return bool(raw) and raw != "false"
        case "int" | "decimal" | "float":
            return _number(raw, column.type)
        case "time":
            return _time(raw)
        case "json":
            return canonical(raw)[:LONGEST]
        case "enum":
            return {stored: name for name, stored in column.values}.get(str(raw), str(raw))
        case _:
            return str(raw)[:LONGEST]


def canonical(raw: Any) -> str:
    """JSON with its keys sorted and without spaces, given as text or as what it says."""
    try:
        said = json.loads(raw) if isinstance(raw, str) else raw
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
        return text.encode("utf-8", "replace").decode()  # half a letter ("\ud800") is one that no file can hold
    except (ValueError, RecursionError):  # cut off, or never JSON
        return str(raw)


def _number(raw: Any, kind: str) -> Value:
    try:
        number = Decimal(repr(raw) if isinstance(raw, float) else str(raw))
    except InvalidOperation:
        raise ValueError("no number") from None
    ordinary = kind == "int" and number.is_finite() and number.adjusted() < DIGITS
    whole = ordinary and number == number.to_integral_value()
    return int(number) if whole else number


def _time(raw: Any) -> datetime:
    """Text is ISO 8601; a whole number is what Prisma keeps in SQLite: milliseconds. Without a zone it is UTC."""
    if isinstance(raw, int):
        return EPOCH + timedelta(milliseconds=raw)
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return datetime(raw.year, raw.month, raw.day, tzinfo=UTC)
    at = raw if isinstance(raw, datetime) else datetime.fromisoformat(str(raw))
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
