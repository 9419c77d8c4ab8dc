"""`.ralph/events.jsonl`: the log of a run, append-only.

Only the running loop writes the log. Each line names the SHA-256 of the line before, so that an edit shows wherever
it was made; how long the log was, and how it ended, stands in `loop/events.head`. A loop that runs keeps its own copy
and puts the file back. This notices an agent that tidies up; it is no proof against one that forges both files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph_mission.loop.items import Event
from ralph_mission.loop.model import Change
from ralph_mission.stores.loop import files
from ralph_mission.stores.loop.said import parse
from ralph_mission.trouble import Trouble

CAP = 256 * 1024 * 1024
"""Bytes of the log."""
PREVIOUS = "previous"
NEWLINE = b"\n"
NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(slots=True)
class EventLog:
    """The log of one checkout (`folder` is its `.ralph`), as one process knows it. May raise Trouble and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _kept: bytes | None = None
    _mended: list[Change] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The log."""
        return self.folder / "events.jsonl"

    @property
    def head(self) -> Path:
        """How many lines the log has, and the hash of its last one."""
        return self.folder / "loop" / "events.head"

    def record(self, event: Event) -> None:
        """Append an event. What was done to the log since the last call is undone, and told by `restore`."""
        with files.locked(self.path):
            kept = self._put_back()
            line = _line(event, event.at or self.now(), _hash(_last(kept)))
            files.write(self.path, kept + line)
            self._kept = kept + line
            files.write(self.head, _head(self._kept))

    def restore(self) -> tuple[Change, ...]:
        """Put the log back as this process wrote it. What was wrong with it."""
        with files.locked(self.path):
            self._put_back()
        mended, self._mended = tuple(self._mended), []
        return mended

    def read(self) -> tuple[Event, ...]:
        """All events, oldest first; lines that are none are left out."""
        return tuple(event for raw in self._content().splitlines() if (event := parse(raw)))

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the file: its first broken line, or that lines went missing. () when it is as written."""
        content = self._content()
        if broken := _first_broken(content):
            return (f"{self.path.name} line {broken} does not follow from the line before: it was edited",)
        ends = json.loads(files.read(self.head, 1024) or _head(content))
        if ends != json.loads(_head(content)):
            return (f"{self.path.name} has {content.count(NEWLINE)} lines and should have {ends['lines']}",)
        return ()

    def archive(self, place: Path) -> None:
        """Move the log away: a new run begins a new one."""
        with files.locked(self.path):
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                self.path.replace(place)
            self.head.unlink(missing_ok=True)
            self._kept, self._mended = b"", []

    def _content(self) -> bytes:
        return files.read(self.path, CAP) or b""

    def _put_back(self) -> bytes:
        """The log as it should be; the file is that too now. The first call believes the file."""
        try:
            found = files.read(self.path, CAP)
        except Trouble:
            files.aside(self.path)
            found = None
        if self._kept is None:
            self._kept = _whole(found or b"")
        elif (found or b"") != self._kept:
            self._mended.append(Change(".ralph/events.jsonl", _how(found, self._kept), "the log is the loop's own"))
            files.write(self.path, self._kept)
        return self._kept


def _line(event: Event, at: datetime, previous: str) -> bytes:
    said: dict[str, Any] = {"ts": at.isoformat(), "iteration": event.iteration, "hat": event.hat}
    said |= {"topic": event.topic, "payload": event.payload}
    if event.issues:
        said["issues"] = [asdict(issue) for issue in event.issues]
    return json.dumps(said | {PREVIOUS: previous}, ensure_ascii=False).encode("utf-8", "replace") + NEWLINE


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _last(content: bytes) -> bytes:
    return content.splitlines()[-1] if content.strip() else b""


def _head(content: bytes) -> bytes:
    return json.dumps({"lines": content.count(NEWLINE), "last": _hash(_last(content))}).encode()


def _whole(content: bytes) -> bytes:
    return content if not content or content.endswith(NEWLINE) else content + NEWLINE


def _first_broken(content: bytes) -> int:
    """The number of the first line that is no event of ours or does not name the one before; 0 when all do."""
    before = NOTHING
    for number, raw in enumerate(content.splitlines(), 1):
        if parse(raw) is None or json.loads(raw).get(PREVIOUS) != before:
            return number
        before = _hash(raw)
    return 0


def _how(found: bytes | None, kept: bytes) -> str:
    if found is None:
        return "deleted"
    if kept.startswith(found):
        return "cut short"
    return "added to" if found.startswith(kept) else "edited"
