"""What was spent today, what may be, and how it is written down: of missions, issues and reviews alike. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import schedule
from ralph_mission.mission.memory import Header
from ralph_mission.mission.model import Limits

LEAST = 0.25
"""USD with which a try begins, unless less is set for one issue: with a cent it could only come to nothing."""


def spent_today(header: Header, now: datetime) -> float:
    """What models cost today, and what is set aside for work that goes on."""
    return header.spend_usd if header.today == schedule.day_of(header, now) else 0.0


def enough(usd: float, per_issue: float) -> bool:
    """Whether a try may begin with `usd`."""
    return usd > 0 and usd >= min(LEAST, per_issue)


def allowance(header: Header, now: datetime, limits: Limits, per_issue: float) -> float:
    """What may be spent on one issue now; 0 when today's money is used up."""
    return max(0.0, min(per_issue, limits.usd_per_day - spent_today(header, now)))


def settle_reserve(reserved: float, at: datetime, usd: float, now: datetime) -> float:
    """What is booked now of `usd` that were spent of what was set aside `at` some time.

    Another day's money is given back to that day, which is over: nothing of it is to be had today.
    """
    return usd - reserved if at.date() == now.date() else max(0.0, usd - reserved)


def book_spending(header: Header, now: datetime, usd: float) -> Header:
    """The header with `usd` more spent today; a new day begins at nothing, and with the wake that it owes."""
    day = schedule.begin_day(header, schedule.day_of(header, now))
    return replace(day, spend_usd=round(max(0.0, day.spend_usd + usd), 6))
