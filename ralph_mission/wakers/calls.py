"""What a timer remembers of its wakes, so that asking every minute does not dispatch every minute.

Memory grants each due time one wake and counts it, for all who wake (`schedule.granted`). Asking again after one got
lost is the timer's alone: those it counts itself, up to what the day's cap keeps for them. A wake is remembered before
it is sent: when that cannot be written down, nothing is sent, and the cap holds.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from ralph_mission.mission import schedule
from ralph_mission.mission.memory import Header

AGAIN_AFTER = timedelta(minutes=10)  # a dispatch may get lost; one for the same generation is then repeated
DAYS = 8  # that are counted, those of the last wakes: a clock that jumps back and forth finds its day again


@dataclass(frozen=True, slots=True)
class Calls:
    """The last wake (`generation`, `at` in ISO 8601) and the repeated ones by day (YYYY-MM-DD), the latest first."""

    generation: int = -1
    at: str = ""
    days: tuple[tuple[str, int], ...] = ()

    def on(self, day: str) -> int:
        """How many wakes were repeated on a day."""
        return dict(self.days).get(day, 0)


def objection(calls: Calls, header: Header, now: datetime, limit: int) -> str:
    """Why no wake is sent now, "" when nothing speaks against it. `limit`: wakes in a day, everybody's."""
    asked, who = _last_wake(calls, header, now)
    if asked and abs(now - asked) < AGAIN_AFTER:
        return f"{who} less than 10 minutes ago"
    today = schedule.day_of(header, now)
    left = _is_first(calls, header, today) or calls.on(today) < schedule.repeats(limit)
    if limit and left and schedule.may_wake(header, today):
        return ""
    return f"today's wakes are used up, the cap is {limit}"


def record_wake(calls: Calls, header: Header, now: datetime) -> Calls:
    """With one more wake."""
    today = schedule.day_of(header, now)
    others = [(day, count) for day, count in calls.days if day != today]
    again = calls.on(today) + (not _is_first(calls, header, today))
    return Calls(header.generation, now.isoformat(), ((today, again), *others[: DAYS - 1]))


def _last_wake(calls: Calls, header: Header, now: datetime) -> tuple[datetime | None, str]:
    """When the present due time was last woken for, and by whom; None when it was not."""
    if calls.generation == header.generation:
        return _moment(calls.at, now), f"woken for generation {header.generation}"
    if schedule.asked_itself(header):
        return header.last_cycle_at, "the last cycle asked for the next one"
    return None, ""


def _is_first(calls: Calls, header: Header, today: str) -> bool:
    """Whether it would be the one wake that memory grants the present due time. A new day grants another."""
    if not header.today:  # before any memory nothing is granted
        return False
    sent = calls.generation == header.generation or schedule.asked_itself(header)
    return not sent or (header.today != today and calls.at[:10] != today)


def dump(calls: Calls) -> bytes:
    """As it stands in the file."""
    return json.dumps(asdict(calls) | {"days": dict(calls.days)}).encode() + b"\n"


def load(content: bytes) -> Calls:
    """What a file says; one that says nothing sensible counts as never called."""
    try:
        told = json.loads(content)
        calls = Calls(**told | {"days": tuple(told["days"].items())})
        datetime.fromisoformat(calls.at)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Calls()
    sound = type(calls.generation) is int and all(type(count) is int for _, count in calls.days)
    return calls if sound else Calls()


def _moment(text: str, now: datetime) -> datetime:
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=now.tzinfo)
