"""When the next cycle is due, how many wakes a day has, and what models may cost today. Pure: time is an argument.

Unless configured otherwise, 6 h if there is nothing new, 1 h after an opportunity or anomaly, 15 min after a bug, an
error or a vulnerability. One finding keeps urgency high for at most four cycles. Missions, issues and reviews share one
budget.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Finding, Limits, Severity, Urgency

HIGH_STREAK = 4
AHEAD = timedelta(days=5)  # by which two clocks may differ, each wrong by two; anything more is not a valid day
SLACK = timedelta(hours=1)  # between clocks that count as equal; a cycle that has just ended took no longer, either
GRAVE = ("bug", "vulnerability")  # whatever severity a tool assigns


def is_due(next_due_at: datetime | None, now: datetime, longest: timedelta) -> bool:
    """Whether a cycle is due. Without a due time it is.

    It also is if the due time is further away than the `longest` pause: a wrong clock wrote it, or pauses were longer
    then.
    """
    return next_due_at is None or now >= next_due_at or is_misdated(next_due_at, now, longest)


def is_misdated(next_due_at: datetime, now: datetime, longest: timedelta) -> bool:
    """Whether a due time is further ahead than today's settings allow."""
    return next_due_at - now > longest + SLACK


def drift(next_due_at: datetime | None, started: datetime) -> int:
    """Seconds between due and started; 0 if it was forced early or never scheduled."""
    return max(0, int((started - next_due_at).total_seconds())) if next_due_at else 0


def assess(
    fresh: Sequence[Finding], waiting: bool, header: Header, before: Collection[str] = ()
) -> tuple[Urgency, str, int]:
    """Urgency, the fingerprint that causes high urgency, and for how many cycles it has.

    `before`: the fingerprints that waited already; only a new one restarts the count.
    """
    causes = sorted(f.fingerprint for f in fresh if f.signal.severity is Severity.HIGH or f.kind in GRAVE)
    cause = next((new for new in causes if new not in {*before, header.high_cause}), "")
    streak = 1 if cause else header.high_streak + 1
    cause = cause or (header.high_cause if header.high_cause in causes else next(iter(causes), ""))
    if cause and streak <= HIGH_STREAK:
        return Urgency.HIGH, cause, streak
    opportunity = waiting or any(f.signal.severity is not Severity.LOW for f in fresh)
    return (Urgency.MEDIUM if opportunity else Urgency.LOW), cause, streak if cause else 0


def repeats(limit: int) -> int:
    """How many of a day's wakes are reserved for repeating lost ones: a quarter, at least one of two."""
    return max(limit // 4, 1) if limit > 1 else 0


def day_of(header: Header, now: datetime) -> str:
    """The day (YYYY-MM-DD) that money and wakes count for: today, or a later one that memory has reached.

    It never goes back: two runners with different clocks would otherwise restart the day with every cycle.
    """
    today, latest = now.date().isoformat(), (now + AHEAD).date().isoformat()
    return header.today if today < header.today <= latest else today


def count_granted_wakes(header: Header, today: str, limit: int) -> tuple[int, bool]:
    """How many due times of `today` (YYYY-MM-DD) were granted a wake, and whether the next one is.

    All wakers share this count: a due time has one wake, sent by the cycle itself or a timer. A new day starts with the
    one that may have woken its first cycle. `limit`: wakes in a day, repeats included.
    """
    share = limit - repeats(limit)
    before = header.dispatches if header.today == today else min(share, bool(header.today))
    return before + (before < share), before < share


def may_wake(header: Header, today: str) -> bool:
    """Whether a wake may be sent for the current due time. A new day has one, unless the limit is 0."""
    return header.wake or (header.today != today and header.dispatches > 0)


def begin_day(header: Header, today: str) -> Header:
    """The header on `today` for whoever is not a cycle: on a new day nothing is spent, and its first wake is counted.

    `count_granted_wakes` and `may_wake` then answer as they would without it.
    """
    if header.today == today:
        return header
    owed = bool(header.today) and header.dispatches > 0  # a limit of 0 grants none
    return replace(header, today=today, spend_usd=0.0, dispatches=int(owed), wake=may_wake(header, today))


def asked_itself(header: Header) -> bool:
    """Whether the last cycle requested the next one itself."""
    return header.next_due_at is not None and header.next_due_at == header.last_cycle_at


def plan_next(header: Header, urgency: Urgency, rhythm: Rhythm, now: datetime, at_once: bool = False) -> Header:
    """The header with the next due time and a new generation, which voids older wakes.

    `at_once`: work is ready, so there is no pause.
    """
    due = now if at_once else now + rhythm.pause(urgency)
    return replace(header, urgency=urgency, next_due_at=due, generation=header.generation + 1)


def format_pause(pause: timedelta) -> str:
    """`6h`, `1h`, `15min`, as in the memory file."""
    minutes = max(1, round(pause.total_seconds() / 60))
    if minutes % (24 * 60) == 0:
        return f"{minutes // (24 * 60)}d"
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}min"


LEAST = 0.25
"""USD needed to start an attempt, unless the limit of an issue is lower: with a cent it could only fail."""


def spent_today(header: Header, now: datetime) -> float:
    """What models cost today, including what is reserved for running work."""
    return header.spend_usd if header.today == day_of(header, now) else 0.0


def enough(usd: float, per_issue: float) -> bool:
    """Whether an attempt may start with `usd`."""
    return usd > 0 and usd >= min(LEAST, per_issue)


def allowance(header: Header, now: datetime, limits: Limits, per_issue: float) -> float:
    """What may be spent on one issue now; 0 if today's budget is used up."""
    return max(0.0, min(per_issue, limits.usd_per_day - spent_today(header, now)))


def describe_spent(header: Header, now: datetime, limits: Limits) -> str:
    """Why nothing may begin for want of money, and what helps."""
    spent, most = spent_today(header, now), limits.usd_per_day
    return (
        f"${spent:.2f} of today's ${most:.2f} are spent or set aside (limits.usd_per_day); it continues at 00:00 UTC, "
        "or when an owner raises that limit in ralph.yml"
    )


def settle_reserve(reserved: float, at: datetime, usd: float, now: datetime) -> float:
    """What to book now if `usd` were spent of a reserve made `at` some time.

    A reserve of another day is refunded to that day, which is over, so nothing of it is available today.
    """
    return usd - reserved if at.date() == now.date() else max(0.0, usd - reserved)


def book_spending(header: Header, now: datetime, usd: float) -> Header:
    """The header with `usd` more spent today; a new day starts at zero, with its first wake."""
    day = begin_day(header, day_of(header, now))
    return replace(day, spend_usd=round(max(0.0, day.spend_usd + usd), 6))
