"""Numbers, spans and times as people read them, in one place."""

from __future__ import annotations

from datetime import datetime, timedelta


def count_noun(number: int, noun: str) -> str:
    """`1 finding`, `1,200 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def capitalise(text: str) -> str:
    """The words at the beginning of a sentence; acronyms stay as they are."""
    return text[:1].upper() + text[1:]


def spell(span: timedelta) -> str:
    """A time span: `3 d 4 h`, `6 h`, `15 min`, `40 s`."""
    seconds = int(span.total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def stamp(when: datetime) -> str:
    """`2026-01-31 12:00 UTC`, of a time in UTC."""
    return when.strftime("%Y-%m-%d %H:%M UTC")
