"""`.ralph/agent/tasks.jsonl`: the task list, shared by processes and read by people.

Writers hold its lock from reading to writing, and replace the file or append in one write, so a kill leaves the old or
the new list. Readers take no lock.

One JSON object per line, in the shape of ralph-orchestrator: its states are written (`open`, `in_progress`, `closed`,
`failed`) and both vocabularies are read. Unchanged lines stay byte for byte; changed lines keep
unknown fields.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from ralph_mission.adapters.storage.loop import lock, run_files
from ralph_mission.loop.model.state import OPEN, LoopTask, TaskStatus
from ralph_mission.loop.rules import routing as lifecycle

CAP = 32 * 1024 * 1024
"""Bytes; some hundred thousand tasks."""

PAGE = 4096
"""A page: bytes between places where a kill may cut a write."""

All = tuple[LoopTask, ...]

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
    """A line of the file. `task` is None if invalid, and `wrong` says why ("" for an empty line)."""

    raw: bytes
    task: LoopTask | None = None
    wrong: str = ""


class Tasks(NamedTuple):
    """The tasks of a checkout; `folder` is its `.ralph`. Every call may raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def path(self) -> Path:
        """The list."""
        return self.folder / "agent" / "tasks.jsonl"

    @property
    def journal(self) -> Path:
        """All transitions, one line each, for people; never read."""
        return self.folder / "events" / "tasks.jsonl"

    def all(self) -> All:
        """The tasks, in order of adding."""
        return _update_readiness(self._lines())

    def complaints(self) -> tuple[str, ...]:
        """Problems for a person to fix: unreadable lines, tasks that can never become ready."""
        found = self._lines()
        unread = (f"{self.path.name} line {at}: {line.wrong}" for at, line in enumerate(found, 1) if line.wrong)
        return (*unread, *lifecycle.find_blocked(_update_readiness(found)))

    def add(
        self, title: str, needs: Sequence[str] = (), priority: int = 3, description: str = "", id: str = ""
    ) -> LoopTask:
        """Add a task. Raises UserError as `routing.add` does."""

        def change(tasks: All) -> tuple[All, LoopTask]:
            name = id or self._fresh(tasks)
            task = LoopTask(
                name, " ".join(title.split()), needs=tuple(needs), priority=priority, description=description
            )
            after = lifecycle.add(tasks, task)
            return after, after[-1]

        return self._change(change)

    def claim(self, owner: str, id: str = "") -> LoopTask:
        """Claim a task for `owner`, until it is finished or its owner is proven dead."""
        return self._change(lambda tasks: lifecycle.claim(tasks, id, owner, lock.dead))

    def done(self, id: str) -> LoopTask:
        """Mark a task done."""
        return self._change(lambda tasks: lifecycle.mark_done(tasks, id))

    def fail(self, id: str, why: str = "") -> LoopTask:
        """Mark a task failed; tasks that need it stay pending."""
        return self._change(lambda tasks: lifecycle.mark_failed(tasks, id), {id: {"why": why}} if why else {})

    def release(self, owner: str) -> All:
        """Release the active tasks of an `owner` that has ended; returns them."""
        with run_files.hold_file_lock(self.path):
            raw = self._raw()
            before = _update_readiness(_parse(raw))
            after = lifecycle.release_tasks(before, owner)
            if after != before:
                self._put(raw, before, after, {})
        return tuple(task for task, old in zip(after, before, strict=True) if old.status == "active" != task.status)

    def archive(self, place: Path, *, keep_open: bool = False) -> bool:
        """Archive the list; whether there was one. `keep_open`: not while a task is open, as it may need others."""
        with run_files.hold_file_lock(self.path):
            if not self.path.exists():
                return False
            place.parent.mkdir(parents=True, exist_ok=True)
            if keep_open and any(task.status in OPEN for task in self.all()):
                return False
            self.path.replace(place)
        return True

    def _change(
        self, change: Callable[[All], tuple[All, LoopTask]], more: dict[str, dict[str, str]] | None = None
    ) -> LoopTask:
        with run_files.hold_file_lock(self.path):
            raw = self._raw()
            before = _update_readiness(_parse(raw))
            after, task = change(before)
            if after != before:
                self._put(raw, before, after, more or {})
        return next(other for other in after if other.id == task.id)

    def _put(self, raw: bytes, before: All, after: All, more: dict[str, dict[str, str]]) -> None:
        moment = self.now().isoformat()
        new = _render_new(after[len(before) :], moment, more) if after[: len(before)] == before else b""
        if new and self._one_write(raw, new):
            run_files.add(self.path, new)
        else:
            run_files.write(self.path, _render(_parse(raw), after, moment, more))
        old = {task.id: task.status for task in before}
        for task in after:
            if old.get(task.id) != task.status:
                run_files.add(self.journal, _entry(task, old.get(task.id, ""), moment, os.environ), lasting=False)

    def _one_write(self, raw: bytes, new: bytes) -> bool:
        """Whether lines can be appended atomically at the end of the list."""
        whole = raw.endswith(b"\n") and len(raw) % PAGE + len(new) <= PAGE
        return whole and not self.path.is_symlink() and os.access(self.path, os.W_OK)

    def _lines(self) -> tuple[Line, ...]:
        return _parse(self._raw())

    def _raw(self) -> bytes:
        return run_files.read(self.path, CAP) or b""

    def _fresh(self, tasks: All) -> str:
        """A new id in ralph-orchestrator's style."""
        ids, seconds = {task.id for task in tasks}, int(self.now().timestamp())
        while (name := f"task-{seconds}-{os.urandom(2).hex()}") in ids:
            pass
        return name


def _update_readiness(found: tuple[Line, ...]) -> All:
    return lifecycle.update_readiness([line.task for line in found if line.task])


def _entry(task: LoopTask, before: str, moment: str, environ: Mapping[str, str]) -> bytes:
    who = {"owner": task.owner, "hat": environ.get("RALPH_HAT", ""), "iteration": environ.get("RALPH_ITERATION", "")}
    entry = {"ts": moment, "topic": f"task.{task.status}", "task": task.id, "from": before}
    return json.dumps(entry | {name: value for name, value in who.items() if value}).encode()


# --- how a line reads and is written ---


@lru_cache(maxsize=2)
def _parse(content: bytes) -> tuple[Line, ...]:
    """Parse the file. Of two lines with the same id the first counts; the other is reported and kept."""
    found = [_line(raw) for raw in content.split(b"\n") if raw.strip()]
    ids = [line.task.id for line in found if line.task]
    known_ids: set[str] = set()
    return tuple(found if len(set(ids)) == len(ids) else (_once(line, known_ids) for line in found))


def _render(
    found: tuple[Line, ...], tasks: tuple[LoopTask, ...], moment: str, more: dict[str, dict[str, str]]
) -> bytes:
    """The file with updated `tasks`. `more`: fields to set by id. `moment` (ISO 8601): the time of changes."""
    known = {line.task.id for line in found if line.task}
    now = {task.id: task for task in tasks}
    rows = [
        _rewrite_line(line, now.get(line.task.id), moment, more)
        if line.task and (more or now.get(line.task.id) is not line.task)
        else line.raw
        for line in found
    ]
    new = tuple(task for task in tasks if task.id not in known)
    return b"".join(line + b"\n" for line in rows if line) + _render_new(new, moment, more)


def _render_new(tasks: tuple[LoopTask, ...], moment: str, more: dict[str, dict[str, str]]) -> bytes:
    """The lines of new tasks."""
    return b"".join(run_files.dump_object(_new(task, moment) | more.get(task.id, {})) + b"\n" for task in tasks)


@lru_cache(maxsize=8192)
def _line(raw: bytes) -> Line:
    try:
        return Line(raw, _task(json.loads(raw)))
    except (ValueError, RecursionError) as error:
        wrong = "not JSON" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)
        return Line(raw, wrong=wrong or "too deep")


def _once(line: Line, ids: set[str]) -> Line:
    if line.task is None:
        return line
    if line.task.id in ids:
        return Line(line.raw, wrong=f"a second task {line.task.id!r}")
    ids.add(line.task.id)
    return line


def _task(found: object) -> LoopTask:
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    values = cast("dict[str, Any]", found)
    status = STATES.get(str(values.get("status", "open")))
    if status is None:
        raise ValueError(f"no such status: {values['status']!r}")
    needs: object = next((values[name] for name in NEEDS if values.get(name)), [])
    if not isinstance(needs, list) or not all(isinstance(need, str) for need in needs):
        raise ValueError("what it needs is not a list of ids")
    return LoopTask(
        _required_text(values, "id"),
        _required_text(values, "title"),
        "ready" if status == "pending" and not needs else status,
        tuple(needs),
        _optional_text(values, "owner"),
        _priority(values.get("priority", 3)),
        _optional_text(values, "description"),
    )


def _required_text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"no {name}")
    return value


def _optional_text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _priority(value: object) -> int:
    return min(5, max(1, value)) if type(value) is int else 3


def _rewrite_line(line: Line, task: LoopTask | None, moment: str, more: dict[str, dict[str, str]]) -> bytes | None:
    if task is None:
        return None
    same = line.task is task or (line.task is not None and _stored_part(task) == _stored_part(line.task))
    if line.task is None or (same and task.id not in more):
        return line.raw
    values = json.loads(line.raw) | {"status": WRITTEN[task.status], "owner": task.owner} | more.get(task.id, {})
    return run_files.dump_object(_set_dates(values, task.status, moment))


def _stored_part(task: LoopTask) -> tuple[str, str]:
    """The fields that change during a task's life; ready is not stored."""
    return WRITTEN[task.status], task.owner


def _set_dates(values: dict[str, Any], status: TaskStatus, moment: str) -> dict[str, Any]:
    if status == "active":
        values["started"] = moment
    if status in ("done", "failed"):
        values["closed"] = moment
    else:
        values.pop("closed", None)
    return {name: value for name, value in values.items() if name != "owner" or value}


def _new(task: LoopTask, moment: str) -> dict[str, Any]:
    more = {"description": task.description} if task.description else {}
    return {"id": task.id, "title": task.title, **more, "status": WRITTEN[task.status], "priority": task.priority,
            "blocked_by": list(task.needs), "created": moment}  # fmt: skip  # one line of the file
