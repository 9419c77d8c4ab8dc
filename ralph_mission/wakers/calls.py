"""What a timer remembers of its wakes, so that asking every minute does not dispatch every minute.

A wake is remembered before it is sent: when that cannot be written down, nothing is sent, and the cap holds.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from ralph_mission.mission.memory import Header

AGAIN_AFTER = timedelta(minutes=10)  # a dispatch may get lost; one for the same generation is then repeated
DAYS = 8  # that are counted, those of the last wakes: a clock that jumps back and forth finds its day again


@dataclass(frozen=True, slots=True)
class Calls:
    """The last wake (`generation`, `at` in ISO 8601) and how many there were by day (YYYY-MM-DD), the latest first."""

    generation: int = -1
    at: str = ""
    days: tuple[tuple[str, int], ...] = ()

    def on(self, day: str) -> int:
        """How many wakes were sent on a day."""
        return dict(self.days).get(day, 0)


def objection(calls: Calls, header: Header, now: datetime, limit: int) -> str:
    """Why no wake is sent now, "" when nothing speaks against it. `limit`: wakes in a day, the cycles' own included."""
    if calls.generation == header.generation and abs(now - _moment(calls.at, now)) < AGAIN_AFTER:
        return f"woken for generation {header.generation} less than 10 minutes ago"
    today = f"{now:%Y-%m-%d}"
    sent = calls.on(today) + (header.dispatches if header.today == today else 0)
    return f"{sent} wakes were sent today, the cap is {limit}" if sent >= limit else ""


def called(calls: Calls, header: Header, now: datetime) -> Calls:
    """With one more wake."""
    today = f"{now:%Y-%m-%d}"
    others = [(day, count) for day, count in calls.days if day != today]
    return Calls(header.generation, now.isoformat(), ((today, calls.on(today) + 1), *others[: DAYS - 1]))


def dump(calls: Calls) -> bytes:
    """As it stands in the file."""
    return json.dumps(asdict(calls) | {"days": dict(calls.days)}).encode() + b"\n"


def load(content: bytes) -> Calls:
    """What a file says; one that says nothing sensible counts as never called."""
    try:
        told = json.loads(content)
        calls = Calls(**told | {"days": tuple(told["days"].items())})
        datetime.fromisoformat(calls.at)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Calls()
    sound = type(calls.generation) is int and all(type(count) is int for _, count in calls.days)
    return calls if sound else Calls()


def _moment(text: str, now: datetime) -> datetime:
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=now.tzinfo)
