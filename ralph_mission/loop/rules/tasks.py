"""The life of a task: pending → ready → active → done or failed. Pure: a store keeps what these functions give.

`ready` is never stored, it follows from what is needed. Only a claim makes a task active, and only a claim by name
takes up a failed one again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ralph_mission.errors import UserError
from ralph_mission.loop.model.items import LoopTask, TaskStatus

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PRIORITIES = range(1, 6)
TITLE, DESCRIPTION = 500, 20_000
"""How long they may be, in characters."""
LIST = "see: ralph task list"

Tasks = tuple[LoopTask, ...]


def update_readiness(tasks: Sequence[LoopTask]) -> Tasks:
    """The same tasks, with pending and ready told apart by what they need."""
    done = {task.id for task in tasks if task.status == "done"}
    return tuple(_update_readiness(task, done) if task.needs or task.status == "pending" else task for task in tasks)


def find(tasks: Sequence[LoopTask], id: str) -> LoopTask:
    """The task with this id. Raises UserError when there is none."""
    found = next((task for task in tasks if task.id == id), None)
    if found is None:
        raise UserError(f"there is no task {id!r}", LIST)
    return found


def ready(tasks: Sequence[LoopTask]) -> Tasks:
    """What can be claimed: lowest priority number first, ties as they were added."""
    return tuple(sorted((task for task in tasks if task.status == "ready"), key=lambda task: task.priority))


def add(tasks: Sequence[LoopTask], task: LoopTask) -> Tasks:
    """The tasks with one more. Raises UserError for what is no task, an id that is taken, needs that cannot be met."""
    _check(task)
    if any(known.id == task.id for known in tasks):
        raise UserError(f"there is a task {task.id!r} already", LIST)
    after = (*tasks, task._replace(status="pending"))
    if circle := _circle(after, task.id):
        raise UserError(f"these tasks would wait for each other: {' → '.join(circle)}", "leave one of --needs out")
    for need in task.needs:
        find(tasks, need)
    return update_readiness(after)


def claim(tasks: Sequence[LoopTask], id: str, owner: str, dead: Callable[[str], bool]) -> tuple[Tasks, LoopTask]:
    """The tasks with one active for `owner`, and which. Without an id the first that is ready, then one whose owner
    is `dead`. Raises UserError when there is none, and for one that waits, is done, or is somebody's."""
    if id:
        return _give_task(tasks, _free(tasks, find(tasks, id), dead), owner)
    left = (task for task in tasks if task.status == "active" and dead(task.owner))
    first = next(iter(ready(tasks)), None) or next(left, None)
    if first is None:
        raise UserError("no task is ready", LIST)
    return _give_task(tasks, first, owner)


def mark_done(tasks: Sequence[LoopTask], id: str) -> tuple[Tasks, LoopTask]:
    """The tasks with this one done; once more changes nothing. Raises UserError when it waits for others or failed."""
    task = find(tasks, id)
    if task.status == "pending":
        raise UserError(f"task {id!r} is not done: it {waits(tasks, task)}", f"first those; {LIST}")
    if task.status == "failed":
        raise UserError(f"task {id!r} failed", f"take it up again first: ralph task claim {id}")
    return _with(tasks, task._replace(status="done"))


def mark_failed(tasks: Sequence[LoopTask], id: str) -> tuple[Tasks, LoopTask]:
    """The tasks with this one failed; once more changes nothing. Raises UserError when it is done."""
    task = find(tasks, id)
    if task.status == "done":
        raise UserError(f"task {id!r} is done", "add another task for what is left")
    return _with(tasks, task._replace(status="failed", owner=""))


def release_tasks(tasks: Sequence[LoopTask], owner: str) -> Tasks:
    """The tasks without what `owner` left active: ready for others."""
    given_back = [_back(task) if task.status == "active" and task.owner == owner else task for task in tasks]
    return update_readiness(given_back)


def waits(tasks: Sequence[LoopTask], task: LoopTask) -> str:
    """Why a pending task is not ready ("waits for a (active), b (failed)"); "" for any other."""
    if task.status != "pending":
        return ""
    known: dict[str, str] = {other.id: other.status for other in tasks if other.id in task.needs}
    open_needs = [(need, known.get(need, "unknown")) for need in task.needs if known.get(need) != "done"]
    return "waits for " + ", ".join(f"{need} ({status})" for need, status in open_needs)


def find_blocked(tasks: Sequence[LoopTask]) -> tuple[str, ...]:
    """What no waiting can mend: tasks that need a failed or an unknown one, or each other. One sentence each."""
    known = {task.id: task.status for task in tasks}
    pending = [task for task in tasks if task.status == "pending"]
    hopeless = [task for task in pending if any(known.get(need) in ("failed", None) for need in task.needs)]
    told = [f"task {task.id} {waits(tasks, task)}" for task in hopeless]
    circles = {tuple(sorted(set(circle))): circle for task in pending if (circle := _circle(tasks, task.id))}
    return (*told, *(f"tasks wait for each other: {' → '.join(circle)}" for circle in circles.values()))


def _update_readiness(task: LoopTask, done: set[str]) -> LoopTask:
    if task.status not in ("pending", "ready"):
        return task
    status: TaskStatus = "ready" if done.issuperset(task.needs) else "pending"
    return task if status == task.status else task._replace(status=status)


def _check(task: LoopTask) -> None:
    if not ID.fullmatch(task.id):
        raise UserError(f"{task.id!r} is no id of a task", "use letters, digits, . _ -; at most 64")
    if not task.title.strip() or len(task.title) > TITLE:
        raise UserError("a task needs a title", f"say in one line what is to be done; at most {TITLE} characters")
    if task.priority not in PRIORITIES:
        raise UserError(f"{task.priority} is no priority", "1 is the highest, 5 the lowest")
    if len(task.description) > DESCRIPTION:
        raise UserError("the description is too long", f"keep it below {DESCRIPTION:,} characters, or name a file")


def _free(tasks: Sequence[LoopTask], task: LoopTask, dead: Callable[[str], bool]) -> LoopTask:
    if task.status == "pending":
        raise UserError(f"task {task.id!r} {waits(tasks, task)}", "see what can be claimed: ralph task ready")
    if task.status == "done":
        raise UserError(f"task {task.id!r} is done", "see what can be claimed: ralph task ready")
    if task.status == "active" and not dead(task.owner):
        mend = f"take another; if nobody works on it: ralph task fail {task.id}, then claim it"
        raise UserError(f"task {task.id!r} is claimed by {task.owner or 'somebody'}", mend)
    return task


def _give_task(tasks: Sequence[LoopTask], task: LoopTask, owner: str) -> tuple[Tasks, LoopTask]:
    unfailed = task._replace(status="pending")
    if (
        task.status == "failed"
        and _update_readiness(unfailed, {other.id for other in tasks if other.status == "done"}) == unfailed
    ):
        raise UserError(f"task {task.id!r} {waits(tasks, unfailed)}", "see what can be claimed: ralph task ready")
    return _with(tasks, task._replace(status="active", owner=owner))


def _back(task: LoopTask) -> LoopTask:
    return task._replace(status="pending", owner="")


def _with(tasks: Sequence[LoopTask], changed: LoopTask) -> tuple[Tasks, LoopTask]:
    return update_readiness([changed if task.id == changed.id else task for task in tasks]), changed


def _circle(tasks: Sequence[LoopTask], start: str) -> tuple[str, ...]:
    """The way from `start` back to itself along the needs, () when there is none."""
    needs = {task.id: task.needs for task in tasks}
    came: dict[str, str] = {}
    todo = [start]
    while todo:
        here = todo.pop()
        for need in needs.get(here, ()):
            if need == start:
                return _way(came, start, here)
            if need not in came:
                came[need] = here
                todo.append(need)
    return ()


def _way(came: dict[str, str], start: str, last: str) -> tuple[str, ...]:
    way, here = [start], last
    while here != start:
        way.append(here)
        here = came[here]
    return (start, *reversed(way))
