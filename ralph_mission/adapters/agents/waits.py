"""How long a provider asks to wait, in the ways that providers say it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
UNIT = r"(?:days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|ms|m|seconds?|secs?|s)"
LONGEST = 7 * 86_400.0  # seconds: no limit of theirs is longer than a week

AFTER_WORD = r"retry[-_ ]after(?:[-_ ]seconds)?[\"']?\s*[:=]?\s*[\"']?"
DAY = r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} [\d:]{8} GMT"
AFTER = re.compile(rf"{AFTER_WORD}(\d+(?:\.\d+)?)(?![\d:])", re.IGNORECASE)
DATE = re.compile(rf"{AFTER_WORD}({DAY})", re.IGNORECASE)
EPOCH = re.compile(r"limit reached\|(\d{10})\b", re.IGNORECASE)
LENGTH = rf"\d+(?:\.\d+)?\s*{UNIT}(?![a-z])"
SPAN = re.compile(rf"(?:try again|retry|resets?) in:?\s+((?:{LENGTH}[\s,]*(?:and\s+)?)+|(?:\d+{UNIT})+)", re.IGNORECASE)
PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({UNIT})", re.IGNORECASE)
MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
ISO = re.compile(rf"resets? (?:at )?({MOMENT})", re.IGNORECASE)
HOUR = r"(1[0-2]|0?[1-9])(?::([0-5]\d))?\s*([ap]m)"
CLOCK = re.compile(rf"resets? (?:at )?{HOUR}(?:\s*\(([\w+/-]{{1,40}})\))?", re.IGNORECASE)


def seconds_until(text: str, now: datetime) -> float:
    """Seconds from `now` (aware) until the provider takes requests again; 0 when it does not say.

    Understood: Retry-After as seconds or date (RFC 9110 §10.2.3), `…limit reached|1753088400` and `resets 10:30pm
    (Europe/Berlin)` (Claude Code), `try again in 6m0s` or `in 2 days 3 hours` (OpenAI, Codex), `resets at <ISO 8601>`.
    A time of day without a zone is one of this machine's.
    """
    for pattern, read in READERS:
        match = pattern.search(text)
        seconds = _try_read(read, match, now) if match else 0.0
        if seconds > 0:
            return min(seconds, LONGEST)
    return 0.0


def _try_read(read: Callable[[re.Match[str], datetime], float], match: re.Match[str], now: datetime) -> float:
    try:
        return read(match, now)
    except (ValueError, OverflowError, OSError, LookupError):  # no such hour, year or zone
        return 0.0


def _span(match: re.Match[str], _: datetime) -> float:
    return sum(float(number) * SECONDS[_unit(word)] for number, word in PART.findall(match[1]))


def _unit(word: str) -> str:
    lower = word.lower()
    return "ms" if lower.startswith(("ms", "milli")) else lower[0]


def _iso(match: re.Match[str], now: datetime) -> float:
    return (datetime.fromisoformat(match[1]) - now).total_seconds()


def _clock(match: re.Match[str], now: datetime) -> float:
    hour, minute, half, zone = match.groups()
    here = now.astimezone(ZoneInfo(zone) if zone else None)
    at = here.replace(
        hour=int(hour) % 12 + 12 * (half.lower() == "pm"), minute=int(minute or 0), second=0, microsecond=0
    )
    return ((at if at > here else at + timedelta(days=1)) - here).total_seconds()


READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], float]], ...] = (
    (AFTER, lambda match, _: float(match[1])),
    (DATE, lambda match, now: (parsedate_to_datetime(match[1]) - now).total_seconds()),
    (EPOCH, lambda match, now: (datetime.fromtimestamp(int(match[1]), UTC) - now).total_seconds()),
    (SPAN, _span),
    (ISO, _iso),
    (CLOCK, _clock),
)
