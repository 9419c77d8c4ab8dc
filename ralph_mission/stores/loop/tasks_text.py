"""How `tasks.jsonl` reads and is written: one JSON object per line, in the shape of ralph-orchestrator.

Its states are written (`open`, `in_progress`, `closed`, `failed`) and both vocabularies are read. A line that nobody
changed stays as it is, byte for byte; in one that was changed, fields we do not know stay.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple, cast

from ralph_mission.loop.task import Task, TaskStatus

WRITTEN: dict[TaskStatus, str] = {
    "pending": "open", "ready": "open", "active": "in_progress", "done": "closed", "failed": "failed",
}  # fmt: skip  # one table
STATES: dict[str, TaskStatus] = {
    "open": "pending", "pending": "pending", "ready": "pending", "blocked": "pending",
    "in_progress": "active", "active": "active",
    "closed": "done", "done": "done", "completed": "done",
    "failed": "failed",
}  # fmt: skip  # one table
NEEDS = ("blocked_by", "needs", "depends_on")


class Line(NamedTuple):
    """One line of the file. `task` is None when it is none, and `wrong` says why ("" for an empty line)."""

    raw: bytes
    task: Task | None = None
    wrong: str = ""


@lru_cache(maxsize=2)
def lines(content: bytes) -> tuple[Line, ...]:
    """The lines of a file. The first of two with the same id counts; the other is told of and kept."""
    found = [_line(raw) for raw in content.split(b"\n") if raw.strip()]
    ids = [line.task.id for line in found if line.task]
    seen: set[str] = set()
    return tuple(found if len(set(ids)) == len(ids) else (_once(line, seen) for line in found))


def text(found: tuple[Line, ...], tasks: tuple[Task, ...], moment: str, more: dict[str, dict[str, str]]) -> bytes:
    """The file with `tasks` in it. `more` are fields to set by id; `moment` (ISO 8601) dates what changed."""
    known = {line.task.id for line in found if line.task}
    now = {task.id: task for task in tasks}
    kept = [
        _rewritten(line, now.get(line.task.id), moment, more)
        if line.task and (more or now.get(line.task.id) is not line.task)
        else line.raw
        for line in found
    ]
    new = tuple(task for task in tasks if task.id not in known)
    return b"".join(line + b"\n" for line in kept if line) + added(new, moment, more)


def added(tasks: tuple[Task, ...], moment: str, more: dict[str, dict[str, str]]) -> bytes:
    """The lines of tasks that are in no file yet."""
    return b"".join(_dumped(_new(task, moment) | more.get(task.id, {})) + b"\n" for task in tasks)


@lru_cache(maxsize=8192)
def _line(raw: bytes) -> Line:
    try:
        return Line(raw, _task(json.loads(raw)))
    except (ValueError, RecursionError) as error:
        wrong = "not JSON" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)
        return Line(raw, wrong=wrong or "too deep")


def _once(line: Line, seen: set[str]) -> Line:
    if line.task is None:
        return line
    if line.task.id in seen:
        return Line(line.raw, wrong=f"a second task {line.task.id!r}")
    seen.add(line.task.id)
    return line


def _task(found: object) -> Task:
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    values = cast("dict[str, Any]", found)
    status = STATES.get(str(values.get("status", "open")))
    if status is None:
        raise ValueError(f"no such status: {values['status']!r}")
    needs: object = next((values[name] for name in NEEDS if values.get(name)), [])
    if not isinstance(needs, list) or not all(isinstance(need, str) for need in needs):
        raise ValueError("what it needs is no list of ids")
    return Task(
        _named(values, "id"),
        _named(values, "title"),
        "ready" if status == "pending" and not needs else status,
        tuple(needs),
        _said(values, "owner"),
        _priority(values.get("priority", 3)),
        _said(values, "description"),
    )


def _named(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"no {name}")
    return value


def _said(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _priority(value: object) -> int:
    return min(5, max(1, value)) if type(value) is int else 3


def _rewritten(line: Line, task: Task | None, moment: str, more: dict[str, dict[str, str]]) -> bytes | None:
    if task is None:
        return None
    same = line.task is task or (line.task is not None and _written(task) == _written(line.task))
    if line.task is None or (same and task.id not in more):
        return line.raw
    values = json.loads(line.raw) | {"status": WRITTEN[task.status], "owner": task.owner} | more.get(task.id, {})
    return _dumped(_dated(values, task.status, moment))


def _written(task: Task) -> tuple[str, str]:
    """The part of a line that a task's life changes; ready is not written."""
    return WRITTEN[task.status], task.owner


def _dated(values: dict[str, Any], status: TaskStatus, moment: str) -> dict[str, Any]:
    if status == "active":
        values["started"] = moment
    if status in ("done", "failed"):
        values["closed"] = moment
    else:
        values.pop("closed", None)
    return {name: value for name, value in values.items() if name != "owner" or value}


def _new(task: Task, moment: str) -> dict[str, Any]:
    said = {"description": task.description} if task.description else {}
    return {"id": task.id, "title": task.title, **said, "status": WRITTEN[task.status], "priority": task.priority,
            "blocked_by": list(task.needs), "created": moment}  # fmt: skip  # one line of the file


def _dumped(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
