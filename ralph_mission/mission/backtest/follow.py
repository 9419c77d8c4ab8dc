"""The commits to observe, and the result of every item reported there: it stays, or people fixed it.

An observer's report is taken apart into items, the smallest things that a person puts right alone: one word of a file's
misspellings, one link of a page, one marker. An item lives as long as it is reported. One that is reported no more was
fixed when its file is still there and its old line is not; a file that is gone takes its items with it, and where the
line still stands the observer took its report back. An item that reappears elsewhere, or reworded, was not fixed. What
became of issues, pull requests and builds comes from the forge (`past.settle`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Literal

from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.safety.patch import FileChange, edits
from ralph_mission.values import dataclass

REWORDED, MOVED = 0.6, 0.8
"""The similarity for a vanished and a new item to be the same: in one file, and across files."""
LONGEST = 2_000  # characters of a line that are compared

PATIENCE: Mapping[str, timedelta] = {
    "broken-build": timedelta(days=7),
    "stale-issue": timedelta(days=30),
    "question": timedelta(days=30),
    "pull-waiting": timedelta(days=30),
    "triage": timedelta(days=90),
    "unreleased": timedelta(days=90),
    "security-alert": timedelta(days=30),
    "code-alert": timedelta(days=30),
}
"""The time that people have for items outside files, which are identified by their identity only."""
EXCLUDED_KINDS = ("flaky-check",)
"""Kinds that end by themselves, so that people's part is unknown."""

Ending = Literal["", "fixed", "own", "removed", "withdrawn", "unknown"]


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A past time, the default branch's commit then, and the number of commits since the last step."""

    at: datetime
    commit: str
    commits: int


def plan_steps(
    line: Sequence[tuple[datetime, str]], since: datetime, every: timedelta, quiet: bool = False
) -> tuple[HistoryStep, ...]:
    """A step for each period in which something was committed (`quiet`: or nothing); `line` is the default branch,
    oldest first.

    Commit times come from authors' machines: a commit counts as no earlier than its parents.
    """
    times = list(accumulate((at for at, _ in line), max))
    steps: list[HistoryStep] = []
    moment, last = since, -1
    while times and moment < times[-1] + every:
        at = min(moment, times[-1])
        place = bisect_right(times, at) - 1
        if place > last or (quiet and steps):
            steps.append(HistoryStep(at, line[place][1], place - last if steps else 0))
            last = place
        moment += every
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class ReportedItem:
    """An item of a signal: `identity`: its key, `what`: for people, `text`: its lines in the file."""

    identity: tuple[str, ...]
    what: str
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class TrackedItem:
    """An item over time: its first report, its first mention in a thread or a list, its end and result."""

    observer: str
    kind: str
    item: ReportedItem
    signal: Signal
    since: datetime
    opened_at: datetime | None = None
    ending: Ending = ""
    ended_at: datetime | None = None
    commit: str = ""  # that ended it, as far as git can tell


@dataclass(frozen=True, slots=True)
class HistoryLook:
    """A commit's data beyond the observers.

    `rewritten(path)` is a file that is another one than at the last look, else "".
    `stands(path, text)`: whether the lines are in that file; `changed(path, texts)`: which commit since the last look
    added or removed one of the texts there, or changed the file last. `own(commit)`: whether Ralph made it.
    """

    at: datetime
    files: Collection[str]
    stands: Callable[[str, str], bool]
    changed: Callable[[str, Sequence[str]], str]
    rewritten: Callable[[str], str] = lambda _: ""
    own: Callable[[str], bool] = lambda _: False


def items_of(signal: Signal) -> tuple[ReportedItem, ...]:
    """A signal's single items; a count without places has none that could be followed."""
    if signal.patch:
        return tuple(item for change in signal.patch.changes for item in _corrections(change))
    if not (signal.path or signal.kind in PATIENCE) or signal.kind in EXCLUDED_KINDS:
        return ()
    return (ReportedItem(signal.essence, signal.title, signal.path, signal.line, " ".join(signal.essence)),)


def _corrections(change: FileChange) -> Iterator[ReportedItem]:
    old, new = change.old or b"", change.new or b""
    try:
        changed, lines = edits(old, new), old.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return
    for edit in changed:
        before = lines[edit.start : edit.start + edit.delete]
        one_by_one = len(before) == len(edit.insert) and all(map(_is_corrected, before, edit.insert))
        whole = [("".join(before), "".join(edit.insert))]
        for offset, (was, becomes) in enumerate(zip(before, edit.insert, strict=True) if one_by_one else whole):
            was, becomes = was[:LONGEST], becomes[:LONGEST]
            for gone, put in _changed_words(was, becomes) if one_by_one else _joined(was, becomes):
                what = f"{gone} → {put}" if put else f"{gone} goes"
                yield ReportedItem((gone, put), what[:160], change.path, edit.start + offset + 1, was)


def _is_corrected(was: str, becomes: str) -> bool:
    """Whether a line only changes in a word: joined or split lines are one item together."""
    return SequenceMatcher(None, was[:LONGEST], becomes[:LONGEST], autojunk=False).ratio() >= REWORDED


def _changed_words(was: str, becomes: str) -> Iterator[tuple[str, str]]:
    old, new = (re.findall(r"\w+|\S", text) for text in (was, becomes))
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield " ".join(old[a:b]), " ".join(new[c:d])


def _joined(was: str, becomes: str) -> Iterator[tuple[str, str]]:
    """Lines that become others, as one change of all their words."""
    gone, put = normalise_line(was), normalise_line(becomes)
    if gone != put:
        yield gone, put


# --- from look to look ----------------------------------------------------------------


def follow(tracked: Sequence[TrackedItem], observation: Observation, look: HistoryLook) -> tuple[TrackedItem, ...]:
    """The items after an observer's next report. Without a report its items stay unchanged."""
    if observation.status != "ok":
        return tuple(tracked)
    items = list(tracked)
    alive = [place for place, one in enumerate(items) if one.observer == observation.name and not one.ending]
    reported = [(signal, item) for signal in observation.signals for item in items_of(signal)]
    same, new = _match(items, alive, reported)
    for place, (signal, item) in same.items():
        items[place] = replace(items[place], signal=signal, item=item)
    missing = [place for place in alive if place not in same]
    lost = missing if observation.complete else _named_gone(items, missing, observation.gone, look)
    for place in lost:
        successor = _find_successor(items[place], new, look.files)
        if successor:
            new.remove(successor)
            items[place] = replace(items[place], signal=successor[0], item=successor[1])
        else:
            items[place] = _ended(items[place], look)
    for place in [place for place, one in enumerate(items) if _was_fixed(one, observation.name, look)]:
        text, path = items[place].item.text, items[place].item.path
        items[place] = _fixed_in(replace(items[place], ended_at=look.at), look.changed(path, [text]), look)
    items += (TrackedItem(observation.name, signal.kind, item, signal, look.at) for signal, item in new)
    return tuple(items)


Reported = tuple[Signal, ReportedItem]


def _match(
    items: Sequence[TrackedItem], alive: Iterable[int], reported: Iterable[Reported]
) -> tuple[dict[int, Reported], list[Reported]]:
    """Items reported at the same place as before, and new ones."""
    waiting: dict[tuple[str, str, tuple[str, ...]], list[int]] = defaultdict(list)
    for place in alive:
        one = items[place]
        waiting[one.kind, one.item.path, one.item.identity].append(place)
    same: dict[int, Reported] = {}
    new: list[Reported] = []
    for signal, item in reported:
        places = waiting[signal.kind, item.path, item.identity]
        if places:
            same[places.pop(0)] = (signal, item)
        else:
            new.append((signal, item))
    return same, new


def _named_gone(
    items: Sequence[TrackedItem], missing: Sequence[int], gone: Iterable[tuple[str, ...]], look: HistoryLook
) -> list[int]:
    """Those that an observer names as gone: by the essence in which they were reported, else by one with other
    neighbours, which change without a word; then the line must be gone from the item's own file."""
    waiting = list(gone)
    lost = []
    for place in missing:
        if items[place].signal.essence in waiting:
            waiting.remove(items[place].signal.essence)
            lost.append(place)
    for essence in waiting:
        alike = [
            (_likeness_of(" ".join(items[place].signal.essence), " ".join(essence)), place)
            for place in missing
            if place not in lost
            and items[place].signal.essence[:2] == essence[:2]
            and not look.stands(items[place].item.path, " ".join(essence[1:2]))
        ]
        lost += [max(alike)[1]] if alike else []
    return lost


def _find_successor(entry: TrackedItem, new: Sequence[Reported], files: Collection[str]) -> Reported | None:
    """The new report of the same item, moved with its file or reworded in place."""
    if entry.kind in PATIENCE:
        return None
    moved = entry.item.path not in files
    alike = [
        (_likeness(entry.item, item), place)
        for place, (signal, item) in enumerate(new)
        if signal.kind == entry.kind and (moved or item.path == entry.item.path)
    ]
    likeness, place = max(alike, default=(0.0, 0))
    return new[place] if likeness >= (MOVED if moved else REWORDED) else None


def _likeness(item: ReportedItem, other: ReportedItem) -> float:
    return 1.0 if item.identity == other.identity else _likeness_of(item.text, other.text)


def _likeness_of(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one[:LONGEST], other[:LONGEST], autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= REWORDED else 0.0


def _was_fixed(entry: TrackedItem, observer: str, look: HistoryLook) -> bool:
    """Whether people changed a line at last that its observer had stopped reporting while it still stood there."""
    if entry.ending != "withdrawn" or entry.observer != observer or entry.ended_at == look.at:
        return False
    now = look.rewritten(entry.item.path)  # another word of its line may have been put right
    return bool(now) and entry.item.identity[0] not in now and not look.stands(entry.item.path, entry.item.text)


def _ended(entry: TrackedItem, look: HistoryLook) -> TrackedItem:
    path = entry.item.path
    if entry.kind in PATIENCE:
        return replace(entry, ending="fixed", ended_at=look.at)
    if path not in look.files:
        ending: Ending = "removed"
    else:
        ending = "withdrawn" if entry.signal.patch and look.stands(path, entry.item.text) else "fixed"
    commit = look.changed(path, [entry.item.text] if entry.signal.patch else sorted(entry.item.identity, key=len)[::-1])
    over = replace(entry, signal=replace(entry.signal, patch=None), ending=ending, ended_at=look.at, commit=commit)
    return _fixed_in(over, commit, look) if ending == "fixed" else over


def _fixed_in(entry: TrackedItem, commit: str, look: HistoryLook) -> TrackedItem:
    """Fixed in that commit: by people, unless it is one of Ralph's."""
    return replace(entry, ending="own" if commit and look.own(commit) else "fixed", commit=commit)


def stands_in(content: str, text: str, before: str = "") -> bool:
    """Whether every line of `text` is in `content`, however indented, and as often as in `before`."""
    now, then = (Counter(normalise_line(line) for line in one.split("\n")) for one in (content, before))
    lines = {normalise_line(line) for line in text.split("\n") if line.strip()}
    return bool(lines) and all(now[line] >= max(then[line], 1) for line in lines)


def opened(tracked: Sequence[TrackedItem], signals: Iterable[Signal], at: datetime) -> tuple[TrackedItem, ...]:
    """The items after their signals were shown to people at `at`."""
    keys = {(signal.kind, item.path, item.identity) for signal in signals for item in items_of(signal)}

    def is_told(entry: TrackedItem) -> bool:
        return not entry.ending and not entry.opened_at and (entry.kind, entry.item.path, entry.item.identity) in keys

    return tuple(replace(entry, opened_at=at) if is_told(entry) else entry for entry in tracked)
