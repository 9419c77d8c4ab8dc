"""A task. A tuple with names, because agents ask for tasks hundreds of times and `dataclasses` takes longer to import
than all that is then done."""

from __future__ import annotations

from typing import Literal, NamedTuple

TaskStatus = Literal["pending", "ready", "active", "done", "failed"]


class LoopTask(NamedTuple):
    """A unit of work with prerequisites. `ready` means that all of `needs` are done."""

    id: str
    title: str
    status: TaskStatus = "pending"
    needs: tuple[str, ...] = ()
    owner: str = ""
    priority: int = 3
    description: str = ""
