"""How the project fares: stars, merged pulls, issues that pile up. An ordinary day makes no signal.

Counted in windows of a day or more. A milestone is told once for ever; a jump of stars and issues that
pile up once in a window; the merged pulls together, when their window ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ralph_mission.mission.model import Severity, Signal
from ralph_mission.mission.ports import ObservationContext
from ralph_mission.mission.threads import Actor, Pull, Pulse
from ralph_mission.observers.forge_turns import ForgeCursor
from ralph_mission.observers.text import block, count_noun, one_line

KIND = "community"
WINDOW, LONGEST = timedelta(days=1), timedelta(days=7)  # what `Forge.pulls` certainly knows of what is closed
MILESTONES = tuple(base * ten for ten in (10, 100, 1_000, 10_000, 100_000) for base in (1, 2.5, 5))
JUMP, JUMP_SHARE = 10, 0.1  # new stars in one window: both so many and such a share of those there were
MERGED = 3  # people's pulls in one window; fewer are an ordinary day
SURGE, SURGE_SHARE = 10, 0.05  # issues opened beyond those closed: both so many and such a share of the open ones


@dataclass(frozen=True, slots=True)
class Fares:
    """What is told now, in signals and in words, and from when on and how many stars are counted next."""

    signals: tuple[Signal, ...]
    detail: str
    since: datetime
    stars: int | None


def look(
    pulse: Callable[[datetime], Pulse],
    before: ForgeCursor,
    gaze: ObservationContext,
    open_issues: int,
    foreign: Callable[[Actor], bool],
) -> Fares:
    """Count since the window began; a window that is over is told and a new one begins."""
    since = max(before.since or gaze.last_cycle_at or gaze.now - WINDOW, gaze.now - LONGEST)
    now = pulse(since)
    merged = [pull for pull in now.merged if foreign(pull.author)]
    over = gaze.now - since >= WINDOW
    signals = (
        *_stars(before.stars, now.stars, since),
        *_piling_up(now, open_issues, since),
        *(_merged_signals(merged, since) if over else ()),
    )
    base = now.stars if over or before.stars is None else before.stars
    return Fares(signals, _words(now, merged, since), gaze.now if over else since, base)


def _stars(before: int | None, now: int | None, since: datetime) -> Iterable[Signal]:
    if before is None or now is None or now <= before:
        return
    passed = [int(mark) for mark in MILESTONES if before < mark <= now]
    if passed:
        title, essence = f"The project has {passed[-1]:,} stars", ("stars", str(passed[-1]))
        yield _signal(title, essence, "", Severity.LOW, watch="stars", stars=passed[-1])
    gain = now - before
    if gain >= max(JUMP, JUMP_SHARE * before):
        title = f"{gain:,} new stars since {since:%Y-%m-%d}, {now:,} in all"
        facts: dict[str, str | int] = {"watch": "new-stars", "stars": now, "new": gain, "since": _window(since)}
        yield _signal(title, ("stars", "jump"), _window(since), Severity.MEDIUM, **facts)


def _piling_up(now: Pulse, open_issues: int, since: datetime) -> Iterable[Signal]:
    surplus = now.opened - now.closed
    if surplus >= max(SURGE, SURGE_SHARE * open_issues):
        title = f"Issues pile up: {now.opened} opened and {now.closed} closed since {since:%Y-%m-%d}"
        yield _signal(title, ("issues", "pile up"), _window(since), Severity.MEDIUM)


def _merged_signals(pulls: Sequence[Pull], since: datetime) -> Iterable[Signal]:
    if len(pulls) >= MERGED:
        names = [f"#{pull.number} {one_line(pull.title)}" for pull in pulls]
        title = f"{len(pulls)} pulls merged since {since:%Y-%m-%d}: {'; '.join(names)}"
        facts: dict[str, str | int] = {"watch": "merged", "pulls": len(pulls), "since": _window(since)}
        signal = _signal(title, ("merged",), _window(since), Severity.LOW, **facts)
        yield replace(signal, detail=block("\n".join(names)))


def _signal(title: str, essence: tuple[str, ...], occurrence: str, severity: Severity, **facts: str | int) -> Signal:
    return Signal(
        observer="forge",
        kind=KIND,
        title=one_line(title),
        essence=essence,
        occurrence=occurrence,
        severity=severity,
        confidence=0.9,
        facts=tuple(facts.items()),
    )


def _window(since: datetime) -> str:
    return f"{since:%Y-%m-%dT%H:%M}"


def _words(now: Pulse, merged: Sequence[Pull], since: datetime) -> str:
    stars = f", {count_noun(now.stars, 'star')}" if now.stars is not None else ""
    pulls = count_noun(len(merged), "pull")
    return f"; since {since:%Y-%m-%d %H:%M}: {pulls} merged, issues {now.opened} opened, {now.closed} closed{stars}"
