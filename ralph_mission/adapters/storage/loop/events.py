"""Events of a loop: `.ralph/agent/said.jsonl`, what agents say, and `.ralph/events.jsonl`, the log of a run.

Only the running loop writes the log, which is append-only. Each line names the SHA-256 of the line before, so that an
edit shows wherever it was made; how long the log was, and how it ended, stands in `loop/events.head`. A loop that runs
keeps its own copy and puts the file back; one that goes on with another process's log proves it first. This notices an
agent that tidies up; it is no proof against one that forges both files.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import LoopEvent, PathChange, ReviewIssue


def append_event(
    folder: Path, topic: str, payload: str = "", hat: str = "", iteration: int = 0, at: datetime | None = None
) -> None:
    """Append one line for the loop to hear. `folder` is `.ralph`. Raises OSError and UserError."""
    said: dict[str, Any] = {"topic": topic, "payload": payload}
    said |= {"ts": (at or datetime.now(UTC)).isoformat(), "hat": hat, "iteration": iteration}
    line = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
    run_files.append(path_of(folder), line, lasting=False)  # a machine that goes down takes the session with it


def path_of(folder: Path) -> Path:
    """Where agents say their events."""
    return folder / "agent" / "said.jsonl"


SAID_CAP = 4 * 1024 * 1024
"""Bytes that are said in one session."""
MALFORMED = "event.malformed"


def say_event(folder: Path, event: LoopEvent) -> None:
    """Append what an agent says for the loop to hear. `folder` is `.ralph`."""
    append_event(folder, event.topic, event.payload, event.hat, event.iteration, event.at)


def read_events(folder: Path) -> tuple[LoopEvent, ...]:
    """What agents said since the last call, oldest first; a line that is no event says so itself.

    The file is taken away before it is read: what comes later is heard later, and nobody's editing can repeat or hide
    what was heard. A kill in between leaves it for the next call.
    """
    path = path_of(folder)
    with run_files.hold_file_lock(path):
        with suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.{time.time_ns()}.taken"))
        taken = sorted(path.parent.glob(f"{path.name}.*.taken"))
        events = [event for place in taken for event in _read_lines(place)]
        for place in taken:
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
    """The event in a line of ours or of ralph-orchestrator's: the payload is a text or an object. None for neither."""
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
        _parse_issues(values.get("issues")),
        hat if isinstance(hat, str) else "",
        iteration if type(iteration) is int else 0,
        _parse_moment(values.get("ts")),
    )


def _text(payload: object) -> str:
    if payload is None:
        return ""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)


def _parse_issues(found: object) -> tuple[ReviewIssue, ...]:
    """Only the shape that we write: what reviewers say in their own is read elsewhere."""
    known = (
        [ReviewIssue(**_check_issue(issue)) for issue in found if _check_issue(issue)]
        if isinstance(found, list)
        else []
    )
    return tuple(known)


def _check_issue(issue: object) -> dict[str, Any]:
    kinds = {"message": str, "file": str, "line": int, "kind": str, "severity": str}
    values = cast("dict[str, Any]", issue) if isinstance(issue, dict) else {}
    fits = set(values) == set(kinds) and all(type(values[name]) is kind for name, kind in kinds.items())
    return values if fits and values["severity"] in ("critical", "major", "minor") else {}


def _parse_moment(found: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else None
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at


CAP = 256 * 1024 * 1024
"""Bytes of the log."""
PREVIOUS = "previous"
NEWLINE = b"\n"
NOTHING = hashlib.sha256(b"").hexdigest()
NAME = ".ralph/events.jsonl"


@dataclass(slots=True)
class EventLog:
    """The log of one checkout (`folder` is its `.ralph`), as one process knows it. May raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _kept: bytes | None = None
    _mended: list[PathChange] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The log."""
        return self.folder / "events.jsonl"

    @property
    def head(self) -> Path:
        """How many lines the log has, and the hash of its last one."""
        return self.folder / "loop" / "events.head"

    def record(self, event: LoopEvent) -> None:
        """Append an event. What was done to the log since the last call is undone, and told by `restore`."""
        with run_files.hold_file_lock(self.path):
            kept = self._put_back()
            line = _line(event, event.at or self.now(), _hash(_last(kept)))
            run_files.write(self.path, kept + line)
            self._kept = kept + line
            self._write_head()

    def restore(self) -> tuple[PathChange, ...]:
        """Put the log back as this process wrote it. What was wrong with it."""
        with run_files.hold_file_lock(self.path):
            self._put_back()
        mended, self._mended = tuple(self._mended), []
        return mended

    def read(self) -> tuple[LoopEvent, ...]:
        """All events, oldest first; lines that are none are left out."""
        return tuple(event for raw in self._content().splitlines() if (event := parse(raw)))

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the file: its first broken line, or that lines went missing. () when it is as written.

        A log may be one line ahead of its head: both cannot be written at the same moment.
        """
        try:
            _, wrong = self._find_proven()
        except UserError as problem:
            wrong = problem.what
        return (wrong,) if wrong else ()

    def begin(self) -> tuple[str, ...]:
        """Go on with the log that an earlier process left, as far as it can be proven. What is wrong with it.

        What is not proven is set aside in a file beside it, which is named.
        """
        with run_files.hold_file_lock(self.path):
            return self._begin() if self._kept is None else ()

    def archive(self, place: Path) -> None:
        """Move the log away: a new run begins a new one."""
        with run_files.hold_file_lock(self.path):
            if self.path.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                self.path.replace(place)
            self._kept, self._mended = b"", []
            if self.head.exists():
                self._write_head()

    def _content(self) -> bytes:
        return run_files.read(self.path, CAP) or b""

    def _begin(self) -> tuple[str, ...]:
        try:
            self._kept, wrong = self._find_proven()
        except UserError as problem:
            self._kept = b""
            return (f"{problem.what}; it is set aside in {run_files.aside(self.path).name}",)
        found = _whole(self._content())
        if self._kept != found:
            aside = run_files.name_aside(self.path)
            run_files.write(aside, found[len(self._kept) :])
            run_files.write(self.path, self._kept)
            wrong += f"; from there on it is set aside in {aside.name}"
        if wrong:
            self._write_head()
        return (wrong,) if wrong else ()

    def _find_proven(self) -> tuple[bytes, str]:
        """The proven part of the log, and what is wrong with it. Raises UserError for what is no file."""
        head = self._ends()  # first: a loop may be writing
        lines = _whole(self._content()).splitlines(keepends=True)
        good, wrong = _judge([line.rstrip(b"\r\n") for line in lines], head)
        return b"".join(lines[:good]), wrong and f"{NAME} {wrong}"

    def _ends(self) -> tuple[int, str] | None:
        """How many lines there should be and the hash of the last; None when nothing says so any more."""
        try:
            said = json.loads(run_files.read(self.head, 1024) or b"")
            return int(said["lines"]), str(said["last"])
        except (UserError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def _write_head(self) -> None:
        run_files.write(self.head, _head(self._kept or b""))

    def _put_back(self) -> bytes:
        """The log as it should be; the file is that too now."""
        if self._kept is None:
            self._mended += [PathChange(NAME, "edited", wrong) for wrong in self._begin()]
        kept = self._kept or b""
        try:
            found = run_files.read(self.path, CAP)
        except UserError:
            run_files.aside(self.path)
            found = None
        if (found or b"") != kept:
            self._mended.append(PathChange(NAME, _how(found, kept), "the log is the loop's own"))
            run_files.write(self.path, kept)
        return kept


def _line(event: LoopEvent, at: datetime, previous: str) -> bytes:
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


def _judge(lines: Sequence[bytes], head: tuple[int, str] | None) -> tuple[int, str]:
    """How many of the lines are proven, and what is wrong, "" when nothing is."""
    if broken := _first_broken(lines):
        return broken - 1, f"line {broken} does not follow from the line before: it was edited"
    if head is None:
        return len(lines), "may have lost its last lines: loop/events.head is gone" if len(lines) > 1 else ""
    wrote, last = head
    if not 0 <= wrote <= len(lines):
        return len(lines), f"has {len(lines)} lines and should have {wrote}"
    if _hash((b"", *lines)[wrote]) != last:
        return max(0, wrote - 1), f"line {wrote} is not as it was written: it was edited"
    if len(lines) > wrote + 1:
        return wrote, f"has {len(lines)} lines and should have {wrote}"
    return len(lines), ""


def _first_broken(lines: Sequence[bytes]) -> int:
    """The number of the first line that is no event of ours or does not name the one before; 0 when all do."""
    before = NOTHING
    for number, raw in enumerate(lines, 1):
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
