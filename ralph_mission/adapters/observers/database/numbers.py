"""Numbers, times and texts of rows: compared exactly, written the same way always."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

from ralph_mission.adapters.database.model import Value

LONGEST = 100  # characters of a key as text
DIGITS = 400  # before and after the point
NONE, EMPTY = "(none)", "(empty)"


def number(value: Value) -> Decimal | None:
    """A cell as a number; None when it is null, no number, not a finite one, or one of thousands of digits."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    made = Decimal(value)
    return made if _ordinary(made) else None


def moved_over(value: Decimal, base: Decimal, percent: Decimal) -> bool:
    """Whether `value` is more than `percent` % away from `base`, exactly. From zero, anything else is."""
    return abs(Fraction(value) - Fraction(base)) * 100 > Fraction(percent) * abs(Fraction(base))


def percentage(value: Decimal, base: Decimal) -> Decimal | None:
    """By how many percent of `base` it moved, with its sign, to two places; None from zero."""
    if not base:
        return None
    return round_exact((Fraction(value) - Fraction(base)) * 100 / abs(Fraction(base)))


def round_exact(exact: Fraction, places: int = 2) -> Decimal:
    """To so many places, halves to the even one."""
    with localcontext(prec=400, rounding=ROUND_HALF_EVEN):
        return Decimal(round(exact * 10**places)).scaleb(-places)


def median(values: Sequence[Fraction]) -> Fraction:
    """The middle, or the mean of the two that are. `values` must not be empty."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def decimal(exact: Fraction, digits: int = 1_000) -> Decimal:
    """A fraction to so many digits: one whose decimal writing ends, as a median's of decimals does, unrounded."""
    with localcontext(prec=digits):
        return plain(Decimal(exact.numerator) / Decimal(exact.denominator))


def plain(value: Decimal) -> Decimal:
    """Without an exponent and without zeros at its end: 1.50 as 1.5, 1E+3 as 1000."""
    with localcontext(prec=1_000):
        shorter = value.normalize()
        return shorter if int(shorter.as_tuple().exponent) <= 0 else shorter.quantize(Decimal(1))


def format_value(value: Value) -> str:
    """One text per value, whatever the backend: for groups, occurrences and rows' ids."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return str(plain(value)) if _ordinary(value) else str(value)
    return str(value)


def join_key(values: Sequence[Value]) -> str:
    """A key of several fields as one text; of a single one, its own. A long one is replaced by its digest.

    No two keys are written alike: nothing and an empty text are words, a text that reads like them is quoted.
    """
    text = _alone(values[0]) if len(values) == 1 else _json([v if v is None else format_value(v) for v in values])
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _alone(value: Value) -> str:
    if value in (None, ""):
        return NONE if value is None else EMPTY
    text = format_value(value)
    return _json(text) if text in (NONE, EMPTY) or text.startswith('"') else text


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _ordinary(value: Decimal) -> bool:
    """Finite, and of a size that can be written out: a database's numbers may have a hundred thousand digits."""
    return value.is_finite() and abs(value.adjusted()) < DIGITS and int(value.as_tuple().exponent) > -DIGITS
