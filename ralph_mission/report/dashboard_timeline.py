"""Missions along the calendar, as a mermaid gantt chart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from ralph_mission.mission.memory import CompletedNote
from ralph_mission.mission.model import Mission

HEAD = ("## Timeline", "", "```mermaid", "gantt", "  dateFormat YYYY-MM-DDTHH:mm", "  axisFormat %d %b")
NAME = 32  # characters of a title; a phone has room for no more
DAY = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
SHORTEST = timedelta(hours=1)  # a bar of no length is not seen


def timeline(missions: Iterable[Mission], completed: Iterable[CompletedNote], now: datetime | None) -> list[str]:
    """The lines of the section; none when there is nothing to show."""
    active = [mission for mission in missions if mission.status.active] if now else []
    bars = [
        *_section("Active", (_bar(mission, now) for mission in active if now)),
        *_section("Over", (_milestone(note) for note in completed if DAY.fullmatch(note.date))),
    ]
    return [*HEAD, *bars, "```"] if bars else []


def _section(name: str, lines: Iterable[str]) -> Iterator[str]:
    lines = list(lines)
    if lines:
        yield f"  section {name}"
        yield from lines


def _bar(mission: Mission, now: datetime) -> str:
    end = max(now, mission.started_at + SHORTEST)
    return f"  {mission.id}. {_name(mission.title)} :active, {_minute(mission.started_at)}, {_minute(end)}"


def _milestone(note: CompletedNote) -> str:
    return f"  - {_name(note.title)} :milestone, done, {note.date}T12:00, 0d"


def _minute(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M")


def _name(title: str) -> str:
    # Mermaid has no escapes: what could end a name, or open a directive, is left out. What stands before the
    # name keeps one that is a keyword (click, section, title) from being read as such.
    plain = " ".join("".join(char if char.isalnum() or char in "-_.,()/" else " " for char in title).split())
    return (plain if len(plain) <= NAME else plain[: NAME - 1].rstrip() + "…") or "mission"
