"""`.ralph/agent/tasks.jsonl`: the task list that many processes share, and people read.

Whoever changes it holds its lock from the first look to the last byte, and the file is replaced whole, or gets its new
lines by one write: a kill leaves the list as it was or as it should be. Readers take no lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ralph_mission.loop import tasks as lifecycle
from ralph_mission.loop.task import Task
from ralph_mission.stores.loop import files, owners, tasks_text

CAP = 32 * 1024 * 1024
"""Bytes; some hundred thousand tasks."""

PAGE = 4096
"""Bytes between two places where a kill may cut a write."""

All = tuple[Task, ...]


class Tasks(NamedTuple):
    """The tasks of one checkout; `folder` is its `.ralph`. Every call may raise Trouble and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def path(self) -> Path:
        """The list."""
        return self.folder / "agent" / "tasks.jsonl"

    @property
    def journal(self) -> Path:
        """Every transition there ever was, one line each; for people: nothing is read from it."""
        return self.folder / "events" / "tasks.jsonl"

    def all(self) -> All:
        """The tasks, in the order they were added."""
        return _settled(self._lines())

    def complaints(self) -> tuple[str, ...]:
        """What a person should mend: lines that cannot be read, tasks that can never become ready."""
        found = self._lines()
        unread = (f"{self.path.name} line {at}: {line.wrong}" for at, line in enumerate(found, 1) if line.wrong)
        return (*unread, *lifecycle.blocked(_settled(found)))

    def add(
        self, title: str, needs: Sequence[str] = (), priority: int = 3, description: str = "", id: str = ""
    ) -> Task:
        """Put a task on the list. Raises Trouble as `lifecycle.add` does."""

        def change(tasks: All) -> tuple[All, Task]:
            name = id or self._fresh(tasks)
            task = Task(name, " ".join(title.split()), needs=tuple(needs), priority=priority, description=description)
            after = lifecycle.add(tasks, task)
            return after, after[-1]

        return self._change(change)

    def claim(self, owner: str, id: str = "") -> Task:
        """Make a task active for `owner`; nobody else can have it until it is over or its owner is proven dead."""
        return self._change(lambda tasks: lifecycle.claim(tasks, id, owner, owners.dead))

    def done(self, id: str) -> Task:
        """Mark a task done."""
        return self._change(lambda tasks: lifecycle.done(tasks, id))

    def fail(self, id: str, why: str = "") -> Task:
        """Mark a task failed; what needs it stays pending."""
        return self._change(lambda tasks: lifecycle.fail(tasks, id), {id: {"why": why}} if why else {})

    def release(self, owner: str) -> All:
        """Give back what `owner` left active, once it is known to have ended. The tasks it gave back."""
        with files.locked(self.path):
            raw = self._raw()
            before = _settled(tasks_text.lines(raw))
            after = lifecycle.released(before, owner)
            if after != before:
                self._put(raw, before, after, {})
        return tuple(task for task, old in zip(after, before, strict=True) if old.status == "active" != task.status)

    def archive(self, place: Path) -> bool:
        """Move the list away, for a fresh one. Whether there was one."""
        with files.locked(self.path):
            if not self.path.exists():
                return False
            place.parent.mkdir(parents=True, exist_ok=True)
            self.path.replace(place)
        return True

    def _change(self, change: Callable[[All], tuple[All, Task]], more: dict[str, dict[str, str]] | None = None) -> Task:
        with files.locked(self.path):
            raw = self._raw()
            before = _settled(tasks_text.lines(raw))
            after, task = change(before)
            if after != before:
                self._put(raw, before, after, more or {})
        return next(other for other in after if other.id == task.id)

    def _put(self, raw: bytes, before: All, after: All, more: dict[str, dict[str, str]]) -> None:
        moment = self.now().isoformat()
        new = tasks_text.added(after[len(before) :], moment, more) if after[: len(before)] == before else b""
        if new and self._one_write(raw, new):
            files.add(self.path, new)
        else:
            files.write(self.path, tasks_text.text(tasks_text.lines(raw), after, moment, more))
        old = {task.id: task.status for task in before}
        for task in after:
            if old.get(task.id) != task.status:
                files.add(self.journal, _entry(task, old.get(task.id, ""), moment, os.environ), lasting=False)

    def _one_write(self, raw: bytes, new: bytes) -> bool:
        """Whether lines may be added where the list stands, so that a kill leaves all of them or none."""
        whole = raw.endswith(b"\n") and len(raw) % PAGE + len(new) <= PAGE
        return whole and not self.path.is_symlink() and os.access(self.path, os.W_OK)

    def _lines(self) -> tuple[tasks_text.Line, ...]:
        return tasks_text.lines(self._raw())

    def _raw(self) -> bytes:
        return files.read(self.path, CAP) or b""

    def _fresh(self, tasks: All) -> str:
        """An id like the ones of ralph-orchestrator, not taken yet."""
        taken, seconds = {task.id for task in tasks}, int(self.now().timestamp())
        while (name := f"task-{seconds}-{os.urandom(2).hex()}") in taken:
            pass
        return name


def _settled(found: tuple[tasks_text.Line, ...]) -> All:
    return lifecycle.settled([line.task for line in found if line.task])


def _entry(task: Task, before: str, moment: str, environ: Mapping[str, str]) -> bytes:
    who = {"owner": task.owner, "hat": environ.get("RALPH_HAT", ""), "iteration": environ.get("RALPH_ITERATION", "")}
    said = {"ts": moment, "topic": f"task.{task.status}", "task": task.id, "from": before}
    return json.dumps(said | {name: value for name, value in who.items() if value}).encode()
