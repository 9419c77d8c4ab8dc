"""`.ralph/agent/said.jsonl`: what agents say to the loop, and how lines that hold events read."""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ralph_mission.loop.items import LoopEvent, ReviewIssue
from ralph_mission.stores.loop import files, saying
from ralph_mission.trouble import UserError

SAID_CAP = 4 * 1024 * 1024
"""Bytes that are said in one session."""
MALFORMED = "event.malformed"


def say_event(folder: Path, event: LoopEvent) -> None:
    """Append what an agent says for the loop to hear. `folder` is `.ralph`."""
    saying.append_event(folder, event.topic, event.payload, event.hat, event.iteration, event.at)


def read_events(folder: Path) -> tuple[LoopEvent, ...]:
    """What agents said since the last call, oldest first; a line that is no event says so itself.

    The file is taken away before it is read: what comes later is heard later, and nobody's editing can repeat or hide
    what was heard. A kill in between leaves it for the next call.
    """
    path = saying.path_of(folder)
    with files.hold_file_lock(path):
        with suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.{time.time_ns()}.taken"))
        taken = sorted(path.parent.glob(f"{path.name}.*.taken"))
        events = [event for place in taken for event in _read_lines(place)]
        for place in taken:
            _discard(place)
    return tuple(events)


def _read_lines(place: Path) -> list[LoopEvent]:
    try:
        content = files.read(place, SAID_CAP) or b""
    except UserError as trouble:
        return [LoopEvent(MALFORMED, trouble.what)]
    return [
        parse(raw) or LoopEvent(MALFORMED, raw[:200].decode(errors="replace"))
        for raw in content.split(b"\n")
        if raw.strip()
    ]


def _discard(place: Path) -> None:
    if stat.S_ISDIR(os.lstat(place).st_mode):
        files.aside(place)
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
        _issues(values.get("issues")),
        hat if isinstance(hat, str) else "",
        iteration if type(iteration) is int else 0,
        _moment(values.get("ts")),
    )


def _text(payload: object) -> str:
    if payload is None:
        return ""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)


def _issues(found: object) -> tuple[ReviewIssue, ...]:
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


def _moment(found: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else None
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at
