"""Moments as people type them and as we print them."""

from __future__ import annotations

from datetime import UTC, datetime

from ralph_mission.errors import UserError


def moment(text: str | None) -> datetime | None:
    """An ISO 8601 moment in UTC (a naive one is taken as UTC); None for None. Raises UserError (usage)."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
        read = (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _not_a_moment(text) from None
    if not 2000 <= read.year < 2200:  # far enough from the calendar's ends to add any duration
        raise _not_a_moment(text)
    return read


def iso(when: datetime | None) -> str | None:
    """The moment as JSON carries it: UTC, to the second, with Z."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if when else None


def _not_a_moment(text: str) -> UserError:
    return UserError(f"--now {text!r} is not a moment", "write it like 2026-01-31T12:00:00Z", usage=True)
