"""What can be seen from here of what wakes us: the workflow, and timers of this host. Only files are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EVENT, WORK, REVIEW = "ralph-loop-trigger", "ralph-work-trigger", "ralph-review-trigger"
PUBLISH = "ralph-publish-trigger"
"""What wakes the loop, the issue agent, the reviewer and the publisher: types of `repository_dispatch`."""
WORKFLOWS = Path(".github") / "workflows"
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.M)


@dataclass(frozen=True, slots=True)
class WakeFacts:
    """`workflow`: the text (without comments) of the workflow that listens to our dispatch, "" when there is none.

    `timers`: names of the enabled wake timers of this host; `instance`: what this repository's is called after
    the @.
    """

    workflow: str = ""
    timers: frozenset[str] = frozenset()
    instance: str = ""


@dataclass(frozen=True, slots=True)
class WaySetUp:
    """Whether a way is set up here, and why."""

    ok: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way of being woken. `needs` is what a person must see to; `writes` is what `ralph init` writes for it."""

    name: str
    needs: str
    writes: tuple[str, ...]
    set_up: Callable[[WakeFacts], WaySetUp]


def unit_places(home: Path) -> tuple[Path, ...]:
    """Where units stand that are linked or installed: those of this user, those of the system."""
    return home / ".config" / "systemd" / "user", Path("/etc/systemd/system")


def look(work_tree: Path | None, instance: str, places: Sequence[Path]) -> WakeFacts:
    """The facts of a repository on this host. What cannot be read counts as absent."""
    return WakeFacts(listening(work_tree, EVENT), frozenset(_timers(places)), instance)


def listening(work_tree: Path | None, event: str) -> str:
    """The text (without comments) of the workflow that listens to a dispatch of ours, "" when there is none."""
    return listener(work_tree, event)[1]


def listener(work_tree: Path | None, event: str) -> tuple[str, str]:
    """The same with the name of its file before it."""
    for place in sorted((work_tree / WORKFLOWS).glob("*.y*ml")) if work_tree else ():
        with suppress(OSError, UnicodeDecodeError):
            text = _COMMENT.sub("", place.read_text(encoding="utf-8"))
            if event in text:
                return place.name, text
    return "", ""


def _timers(places: Sequence[Path]) -> list[str]:
    found: list[str] = []
    for place in places:
        with suppress(OSError):
            found += [path.name for path in (place / "timers.target.wants").glob("ralph-wake@*.timer")]
    return found
