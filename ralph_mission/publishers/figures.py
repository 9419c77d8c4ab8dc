"""Numbers, days and names as people read them: what a template may pass a fact through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, InvalidOperation

DIGITS = 320  # before the point: every float has fewer, and a longer number is none that a person reads
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T|$)")
_EXACT = Context(prec=2 * DIGITS)


def number(value: object) -> Decimal:
    """Exactly what it says. Raises ValueError for what is no finite number."""
    try:
        made = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{str(value)[:40]!r} is no number") from None
    if not made.is_finite():
        raise ValueError("not a finite number")
    if made.adjusted() >= DIGITS:
        raise ValueError(f"a number of more than {DIGITS} digits")
    return made


def _round(value: object, places: int) -> str:
    step = Decimal(1).scaleb(-max(0, min(int(places), 10)))
    made = f"{number(value).quantize(step, context=_EXACT):,f}"
    made = made.rstrip("0").rstrip(".") if "." in made else made
    return "0" if made == "-0" else made


def thousands(value: object, places: int = 2) -> str:
    """1234567.891 as 1,234,567.89."""
    return _round(value, places)


def percent(value: object, places: int = 1, signed: bool = False) -> str:
    """31.25 as 31.2%; signed: +31.2%."""
    plus = "+" if signed and number(value) > 0 else ""
    return f"{plus}{_round(value, places)}%"


def compact(value: object, places: int = 1) -> str:
    """1234567 as 1.2M."""
    made = number(value)
    for size, name in ((Decimal(10**12), "T"), (Decimal(10**9), "B"), (Decimal(10**6), "M"), (Decimal(10**3), "K")):
        if abs(made) >= size:
            return _round(_EXACT.divide(made, size), places) + name
    return _round(made, places)


def day(value: object) -> str:
    """2026-02-16T06:00:00Z as 2026-02-16."""
    return str(value)[:10]


def label(value: object) -> str:
    """new-validators as "new validators"."""
    return str(value).replace("-", " ")


def cells(row: object) -> str:
    """The values of a row, in order."""
    return ", ".join(map(cells, row.values())) if isinstance(row, Mapping) else str(row)


def names(row: object) -> str:
    """The values of a row that are words: no numbers, no times."""
    if isinstance(row, Mapping):
        return ", ".join(filter(None, map(names, row.values())))
    return row if isinstance(row, str) and not _TIME.match(row) else ""


FILTERS: Mapping[str, Callable[..., str]] = {
    "thousands": thousands,
    "percent": percent,
    "compact": compact,
    "day": day,
    "label": label,
    "cells": cells,
    "names": names,
}
