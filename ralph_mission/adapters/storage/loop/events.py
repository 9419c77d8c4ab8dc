"""Events of a loop: `.ralph/agent/said.jsonl`, emitted by agents, and `.ralph/events.jsonl`, the log of a run.

Only the running loop writes the log, for people to read. It keeps its own copy, and restores the file after each
session.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import LoopEvent, PathChange


def append_event(
    folder: Path, topic: str, payload: str = "", hat: str = "", iteration: int = 0, at: datetime | None = None
) -> None:
    """Append an event for the loop. `folder` is `.ralph`. Raises OSError and UserError."""
    fields: dict[str, Any] = {"topic": topic, "payload": payload}
    fields |= {"ts": (at or datetime.now(UTC)).isoformat(), "hat": hat, "iteration": iteration}
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
    run_files.append(path_of(folder), line, lasting=False)  # not durable: a machine crash ends the session too


def path_of(folder: Path) -> Path:
    """The file for agents' events."""
    return folder / "agent" / "said.jsonl"


SAID_CAP = 4 * 1024 * 1024
"""Bytes of events per session."""
MALFORMED = "event.malformed"


def read_events(folder: Path) -> tuple[LoopEvent, ...]:
    """Agents' events since the last call, oldest first; an invalid line becomes an event that says so.

    The file is moved away before it is read, so later lines are read later, and editing cannot repeat or hide any. A
    kill in between leaves it for the next call.
    """
    path = path_of(folder)
    with run_files.hold_file_lock(path):
        with suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.{time.time_ns()}.taken"))
        files = sorted(path.parent.glob(f"{path.name}.*.taken"))
        events = [event for place in files for event in _read_lines(place)]
        for place in files:
            _discard(place)
    return tuple(events)


def _read_lines(place: Path) -> list[LoopEvent]:
    try:
        content = run_files.read(place, SAID_CAP) or b""
    except UserError as problem:
        return [LoopEvent(MALFORMED, problem.what)]
    return [
        parse(raw) or LoopEvent(MALFORMED, raw[:200].decode(errors="replace"))
        for raw in content.split(b"\n")
        if raw.strip()
    ]


def _discard(place: Path) -> None:
    if stat.S_ISDIR(os.lstat(place).st_mode):
        run_files.aside(place)
    else:
        place.unlink()


def parse(raw: bytes) -> LoopEvent | None:
    """The event in a line of ours or of ralph-orchestrator's (payload: a text or an object), or None."""
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not isinstance(values.get("topic"), str) or not values["topic"].strip():
        return None
    hat, iteration = values.get("hat"), values.get("iteration")
    return LoopEvent(
        values["topic"].strip(),
        _text(values.get("payload")),
        hat=hat if isinstance(hat, str) else "",
        iteration=iteration if type(iteration) is int else 0,
        at=run_files.parse_moment(values.get("ts")),
    )


def _text(payload: object) -> str:
    if payload is None:
        return ""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)


CAP = 256 * 1024 * 1024
"""Bytes of the log."""
NAME = ".ralph/events.jsonl"


@dataclass(slots=True)
class EventLog:
    """The log of a checkout (`folder` is its `.ralph`), as this process knows it. May raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _log: bytes | None = None
    _restored: list[PathChange] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The log."""
        return self.folder / "events.jsonl"

    def record(self, event: LoopEvent) -> None:
        """Append an event. Foreign changes to the log are undone, and reported by `restore`."""
        with run_files.hold_file_lock(self.path):
            log = self._put_back()
            torn = b"\n" if log and not log.endswith(b"\n") else b""
            self._log = log + torn + _line(event, event.at or self.now())
            run_files.write(self.path, self._log)

    def restore(self) -> tuple[PathChange, ...]:
        """Restore the log as this process wrote it; returns what was wrong."""
        with run_files.hold_file_lock(self.path):
            self._put_back()
        restored, self._restored = tuple(self._restored), []
        return restored

    def archive(self, place: Path) -> None:
        """Archive the log for a new run."""
        with run_files.hold_file_lock(self.path):
            if self.path.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                self.path.replace(place)
            self._log, self._restored = b"", []

    def _put_back(self) -> bytes:
        """Make the file match the log."""
        try:
            found = run_files.read(self.path, CAP) or b""
        except UserError:
            run_files.aside(self.path)
            found = b""
        if self._log is None:
            self._log = found
        if found != self._log:
            self._restored.append(PathChange(NAME, _how(found, self._log), "the log is the loop's own"))
            run_files.write(self.path, self._log)
        return self._log


def _line(event: LoopEvent, at: datetime) -> bytes:
    fields: dict[str, Any] = {"ts": at.isoformat(), "iteration": event.iteration, "hat": event.hat}
    fields |= {"topic": event.topic, "payload": event.payload}
    if event.issues:
        fields["issues"] = [asdict(issue) for issue in event.issues]
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _how(found: bytes, copy: bytes) -> str:
    if not found:
        return "deleted"
    if copy.startswith(found):
        return "cut short"
    return "added to" if found.startswith(copy) else "edited"
