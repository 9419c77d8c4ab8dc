"""How the forge observer shares its reading out, and how the project fares: stars, merged pulls, issues that pile up.

A look reads a few; a round is over when every one has had its turn, and then a new one begins. New activity gives a
thing another turn in the same round. What looks like a question comes first, and authors take turns, so that one who
files thousands hides nobody else's.

Figures are counted in windows of a day or more, and an ordinary day makes no signal. A milestone is reported
once for ever; a jump of stars and issues that pile up once in a window; the merged pulls together, when their window
ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from typing import Any, TypeVar

from ralph_mission.adapters.observers.looking import block, is_jump, milestone, one_line
from ralph_mission.mission.model.forge import Actor, Issue, Pull, Pulse
from ralph_mission.mission.model.mission import Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun, stamp

ROUND = 500  # things remembered as read; beyond it, the lowest numbers get another turn early
_RANGES = compile_regex(r"(?:\d{1,9}(?:-\d{1,9})?(?:,|$))*")

Item = TypeVar("Item", Issue, Pull)
ItemKey = tuple[str, int]  # kind, number


@dataclass(frozen=True, slots=True)
class ForgeCursor:
    """What is remembered: when we looked, since when we count, what was read in this round and what waits."""

    at: datetime | None = None
    since: datetime | None = None  # the start of the window that `Forge.pulse` counts in
    stars: int | None = None  # at that moment
    read: frozenset[int] = frozenset()
    reported: frozenset[ItemKey] = frozenset()

    @classmethod
    def parse(cls, text: str) -> ForgeCursor:
        """From the memory file; what cannot be read is a first look."""
        try:
            document = json.loads(text)
            items = {(str(kind), number) for kind, ranges in document["told"].items() for number in _numbers(ranges)}
            return cls(
                _moment(document["at"]),
                _moment(document["since"]),
                _whole(document.get("stars")),
                frozenset(_numbers(document["read"])),
                frozenset(items),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls()

    def dump(self) -> str:
        """On one line, as short as may be."""
        kinds = sorted({kind for kind, _ in self.reported})
        document = {
            "at": self.at.isoformat(timespec="seconds") if self.at else None,
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "stars": self.stars,
            "read": _ranges(sorted(self.read)[-ROUND:]),
            "told": {kind: _ranges(sorted(n for of, n in self.reported if of == kind)) for kind in kinds},
        }
        return json.dumps(document, separators=(",", ":"))


def next_up(items: Sequence[Item], read: frozenset[int], most: int) -> tuple[list[Item], frozenset[int]]:
    """At most `most` of `items` that have not had their turn, and who had it in this round."""
    everyone = frozenset(item.number for item in items)
    had = read & everyone
    had = had if had != everyone else frozenset()
    unread = [item for item in items if item.number not in had]
    chosen: list[Item] = fair([item for item in unread if _may_ask(item)], most)
    chosen += fair([item for item in unread if not _may_ask(item)], most - len(chosen))
    return chosen, had


def fair(items: Iterable[Item], most: int) -> list[Item]:
    """At most `most` items, the latest activity first, authors taking turns."""
    by_author: dict[int, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.updated_at, reverse=True):
        by_author.setdefault(item.author.id, []).append(item)
    turns = (item for turn in zip_longest(*by_author.values()) for item in turn if item is not None)
    return list(islice(turns, most))


def _may_ask(item: Issue | Pull) -> bool:
    return item.title.rstrip().endswith("?") or "question" in {label.casefold() for label in item.labels}


def _moment(text: Any) -> datetime | None:
    if text is None:
        return None
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError
    return when


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _ranges(numbers: Sequence[int]) -> str:
    """`[1, 2, 3, 7]` as `1-3,7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _numbers(ranges: str) -> set[int]:
    if not _RANGES.fullmatch(ranges):
        raise ValueError
    found: set[int] = set()
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        found |= set(islice(range(int(first), int(last or first) + 1), ROUND))
        if len(found) > 2 * ROUND:
            raise ValueError
    return found


KIND = "community"
WINDOW, LONGEST = timedelta(days=1), timedelta(days=7)  # what `Forge.pulls` certainly knows of what is closed
MERGED = 3  # people's pulls in one window; fewer are an ordinary day
SURGE, SURGE_SHARE = 10, 0.05  # issues opened beyond those closed: both so many and such a share of the open ones


@dataclass(frozen=True, slots=True)
class TurnChanges:
    """What is reported now, in signals and in words, and from when on and how many stars are counted next."""

    signals: tuple[Signal, ...]
    detail: str
    since: datetime
    stars: int | None


def look(
    pulse: Callable[[datetime, int], Pulse],
    before: ForgeCursor,
    context: ObservationContext,
    open_issues: int,
    foreign: Callable[[Actor], bool],
) -> TurnChanges:
    """Count since the window began; a window that is over is reported and a new one begins."""
    since = max(before.since or context.last_cycle_at or context.now - WINDOW, context.now - LONGEST)
    now = pulse(since, SURGE)
    merged = [pull for pull in now.merged if foreign(pull.author)]
    over = context.now - since >= WINDOW
    signals = (
        *_stars(before.stars, now.stars, since),
        *_piling_up(now, open_issues, since),
        *(_merged_signals(merged, since) if over else ()),
    )
    base = now.stars if over or before.stars is None else before.stars
    return TurnChanges(signals, _words(now, merged, since), context.now if over else since, base)


def _stars(before: int | None, now: int | None, since: datetime) -> Iterable[Signal]:
    if before is None or now is None or now <= before:
        return
    if passed := milestone(before, now):
        title, essence = f"The project has {passed:,} stars", ("stars", str(passed))
        yield _signal(title, essence, "", Severity.LOW, watch="stars", stars=passed)
    if is_jump(before, now):
        gain = now - before
        title = f"{gain:,} new stars since {since:%Y-%m-%d}, {now:,} in all"
        facts: dict[str, str | int] = {"watch": "new-stars", "stars": now, "new": gain, "since": _window(since)}
        yield _signal(title, ("stars", "jump"), _window(since), Severity.MEDIUM, **facts)


def _piling_up(now: Pulse, open_issues: int, since: datetime) -> Iterable[Signal]:
    if now.closed is not None and now.opened - now.closed >= max(SURGE, SURGE_SHARE * open_issues):
        title = f"Issues pile up: {now.opened} opened and {now.closed} closed since {since:%Y-%m-%d}"
        yield _signal(title, ("issues", "pile up"), _window(since), Severity.MEDIUM)


def _merged_signals(pulls: Sequence[Pull], since: datetime) -> Iterable[Signal]:
    if len(pulls) >= MERGED:
        names = [f"#{pull.number} {one_line(pull.title)}" for pull in pulls]
        title = f"{len(pulls)} pull requests merged since {since:%Y-%m-%d}: {'; '.join(names)}"
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
    counts = (
        (len(merged), "pull request", "merged"),
        (now.opened, "issue", "opened"),
        (now.closed or 0, "issue", "closed"),
    )
    changed = [f"{count_noun(number, noun)} {verb}" for number, noun, verb in counts if number]
    nothing = "nothing changed" if now.closed == 0 else "nothing new"
    return f"; since {stamp(since)} {', '.join(changed) or nothing}{stars}"
