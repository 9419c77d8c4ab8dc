"""Which hat and which task is next: deterministic, without a model. Pure; a store keeps the results.

Each session's event selects the hat that listens to it. A task goes pending → ready → active → done or failed; `ready`
is derived from its needs and never stored. Only a claim makes a task active, and only a claim by name resumes a failed
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CONVERGED, PLANNED, START, VERDICT, Hat, LoopEvent, LoopTask, TaskStatus
from ralph_mission.values import compile_regex

COORDINATOR = Hat("ralph", description="nobody in particular: finds what to do next, does it, says when it is done")
ALIASES = {START: ("task.start",)}  # presets of ralph-orchestrator listen to its older name
EVENT = compile_regex(r'<event\s+topic="([^"]{1,100})"\s*>(.*?)</event>', re.DOTALL)
QUOTED = compile_regex(
    r"^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n.*?(?:^[ \t]*(?P=fence)|\Z)|^[ \t]*>[^\n]*|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
"""Markdown that shows text without saying it: fences, quotations, inline code."""
INDENTED = ("    ", "\t")
"""The beginning of an indented code block."""
PROMISE = compile_regex(r"(?:<promise>)?\s*([A-Z][A-Z_]{2,60})\s*(?:</promise>)?")
"""What looks like the promise of some run."""


def coordinator(hats: Sequence[Hat]) -> Hat:
    """A session without a hat, which may write what any hat may."""
    if not hats or any(hat.write_allowed is None for hat in hats):
        allowed = None
    else:
        allowed = tuple(dict.fromkeys(glob for hat in hats for glob in hat.write_allowed or ()))
    denied = [hat.write_denied for hat in hats]
    everywhere = tuple(glob for glob in denied[0] if all(glob in globs for globs in denied)) if denied else ()
    return replace(COORDINATOR, write_allowed=allowed, write_denied=everywhere)


def find_hat(hats: Sequence[Hat], event: LoopEvent) -> Hat | None:
    """The hat that listens to the event: exact triggers before patterns, then the order of definition."""
    topics = (event.topic, *ALIASES.get(event.topic, ()))
    exact = [hat for topic in topics for hat in hats if topic in hat.triggers]
    return next(iter(exact), None) or next((hat for hat in hats if _matches(hat, topics)), None)


def single_event(
    hat: Hat | None, emitted: Sequence[LoopEvent], promise: str, promised: bool = False
) -> tuple[LoopEvent | None, str]:
    """The event of a session, and what is wrong with what it emitted, or "".

    Without a hat an event is optional; of a hat that emitted none, the promise on its last line (`promised`) is one.
    Emitting the same topic and payload in two ways (`ralph agent emit` and the last
    message) counts as one event.
    """
    events = tuple({(event.topic, event.payload.strip()): event for event in reversed(emitted)}.values())[::-1]
    if len(events) > 1:
        names = ", ".join(event.topic for event in events)
        return None, f"one event ends a session, and {len(events)} were emitted ({names})"
    if not events:
        return (LoopEvent(promise), "") if hat and promised else _default_event(hat, promise)
    if hat is not None and hat.publishes and not _may_say(hat, events[0].topic, promise):
        return None, f"{hat.name} may say {' or '.join(hat.publishes)}, not {events[0].topic}"
    return events[0], ""


def events_in_text(text: str, promise: str = "") -> tuple[LoopEvent, ...]:
    """The events in an agent's last message, without quoted ones; `promise` only counts as its last line."""
    found, at = [], 0
    while match := EVENT.search(text, at):
        quoted = _is_quoted(text, match.start())
        at = match.start() + 1 if quoted else match.end()
        if not quoted and (match[1].strip() != promise or not text[match.end() :].strip()):
            found.append(LoopEvent(match[1].strip(), match[2].strip()))
    return tuple(found)


def _is_quoted(text: str, at: int) -> bool:
    return any(span.start() <= at < span.end() for span in QUOTED.finditer(text))


def is_promised(text: str, promise: str) -> bool:
    """Whether the last non-empty line is exactly the promise, not quoted or mentioned."""
    whole = text.rstrip()
    at = whole.rfind("\n") + 1
    last = whole[at:]
    bare = last.strip().removeprefix("<promise>").removesuffix("</promise>").strip()
    return bare == promise and not last.startswith(INDENTED) and not _is_quoted(text, at)


def says_promise(hats: Sequence[Hat], hat: Hat | None, text: str, promise: str) -> bool:
    """Whether a session says the promise on its last line; a hat only where no reviewer and no other hat decides."""
    decides = hat is None or promise in hat.publishes
    free = hat in hats and not has_reviewer(hats) and not any(promise in other.publishes for other in hats)
    return (decides or free) and is_promised(text, promise)


def is_converged(event: LoopEvent, threshold: int) -> bool:
    """Whether a verdict lets the loop end: nothing critical, and no more other issues than the threshold."""
    critical = any(issue.severity == "critical" for issue in event.issues)
    return event.topic == VERDICT and not critical and len(event.issues) <= threshold


def next_event(event: LoopEvent, threshold: int) -> LoopEvent:
    """The event that follows: a clean verdict becomes the promise, anything else stays."""
    if is_converged(event, threshold):
        return LoopEvent(CONVERGED, event.payload, event.issues, event.hat, event.iteration, event.at)
    return event


def planner(hats: Sequence[Hat]) -> Hat | None:
    """The hat that makes another plan: the first that emits one."""
    return next((hat for hat in hats if PLANNED in hat.publishes), None)


def has_reviewer(hats: Sequence[Hat]) -> bool:
    """Whether a reviewer decides when the loop ends."""
    return any(VERDICT in hat.publishes for hat in hats)


def _matches(hat: Hat, topics: Sequence[str]) -> bool:
    return any(fnmatchcase(topic, trigger) for topic in topics for trigger in hat.triggers)


def _may_say(hat: Hat, topic: str, promise: str) -> bool:
    return topic == promise or any(fnmatchcase(topic, allowed) for allowed in (*hat.publishes, hat.default_publishes))


NOTHING_EMITTED = "(nothing was emitted)"
"""The payload of a hat's default event: it routes, and proves nothing."""


def _default_event(hat: Hat | None, promise: str) -> tuple[LoopEvent | None, str]:
    """The default event of a silent session; never the promise or a verdict."""
    if hat is None or not (hat.publishes or hat.default_publishes):
        return None, ""
    if hat.default_publishes == promise or hat.default_publishes in (VERDICT, CONVERGED):
        return None, f"no event was emitted, and {hat.default_publishes} is no default"
    if hat.default_publishes:
        return LoopEvent(hat.default_publishes, NOTHING_EMITTED), ""
    return None, f"no event was emitted; {hat.name} ends with {' or '.join(hat.publishes)}"


ID = compile_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PRIORITIES = range(1, 6)
TITLE, DESCRIPTION = 500, 20_000
"""Their maximal lengths in characters."""
LIST = "see: ralph agent task list"

Tasks = tuple[LoopTask, ...]


def update_readiness(tasks: Sequence[LoopTask]) -> Tasks:
    """The tasks with pending and ready updated by their needs."""
    done = {task.id for task in tasks if task.status == "done"}
    return tuple(_update_readiness(task, done) if task.needs or task.status == "pending" else task for task in tasks)


def find(tasks: Sequence[LoopTask], id: str) -> LoopTask:
    """The task with this id. Raises UserError if there is none."""
    found = next((task for task in tasks if task.id == id), None)
    if found is None:
        raise UserError(f"there is no task {id!r}", LIST)
    return found


def ready(tasks: Sequence[LoopTask]) -> Tasks:
    """The tasks that can be claimed: lowest priority number first, then in order of adding."""
    return tuple(sorted((task for task in tasks if task.status == "ready"), key=lambda task: task.priority))


def add(tasks: Sequence[LoopTask], task: LoopTask) -> Tasks:
    """Add a task. Raises UserError for an invalid task, a taken id, or needs that cannot be met."""
    _check(task)
    if any(known.id == task.id for known in tasks):
        raise UserError(f"there is a task {task.id!r} already", LIST)
    after = (*tasks, task._replace(status="pending"))
    if circle := _find_circle(after, task.id):
        raise UserError(f"these tasks would wait for each other: {' → '.join(circle)}", "leave one of --needs out")
    for need in task.needs:
        find(tasks, need)
    return update_readiness(after)


def claim(tasks: Sequence[LoopTask], id: str, owner: str, dead: Callable[[str], bool]) -> tuple[Tasks, LoopTask]:
    """Make a task active for `owner`; returns it too. Without an id: the first ready one, then one whose owner is
    `dead`. Raises UserError if there is none, and for one that waits, is done, or has another owner."""
    if id:
        return _give_task(tasks, _is_free(tasks, find(tasks, id), dead), owner)
    abandoned = (task for task in tasks if task.status == "active" and dead(task.owner))
    first = next(iter(ready(tasks)), None) or next(abandoned, None)
    if first is None:
        raise UserError("no task is ready", LIST)
    return _give_task(tasks, first, owner)


def mark_done(tasks: Sequence[LoopTask], id: str) -> tuple[Tasks, LoopTask]:
    """Mark a task as done; idempotent. Raises UserError if it waits for others or failed."""
    task = find(tasks, id)
    if task.status == "pending":
        raise UserError(f"task {id!r} is not done: it {waits(tasks, task)}", f"first those; {LIST}")
    if task.status == "failed":
        raise UserError(f"task {id!r} failed", f"take it up again first: ralph agent task claim {id}")
    return _replace_task(tasks, task._replace(status="done"))


def mark_failed(tasks: Sequence[LoopTask], id: str) -> tuple[Tasks, LoopTask]:
    """Mark a task as failed; idempotent. Raises UserError if it is done."""
    task = find(tasks, id)
    if task.status == "done":
        raise UserError(f"task {id!r} is done", "add another task for what is left")
    return _replace_task(tasks, task._replace(status="failed", owner=""))


def release_tasks(tasks: Sequence[LoopTask], owner: str) -> Tasks:
    """Release the active tasks of `owner`."""
    given_back = [_give_back(task) if task.status == "active" and task.owner == owner else task for task in tasks]
    return update_readiness(given_back)


def waits(tasks: Sequence[LoopTask], task: LoopTask) -> str:
    """Why a pending task is not ready ("waits for a (active), b (failed)"), or ""."""
    if task.status != "pending":
        return ""
    known: dict[str, str] = {other.id: other.status for other in tasks if other.id in task.needs}
    open_needs = [(need, known.get(need, "unknown")) for need in task.needs if known.get(need) != "done"]
    return "waits for " + ", ".join(f"{need} ({status})" for need, status in open_needs)


def find_blocked(tasks: Sequence[LoopTask]) -> tuple[str, ...]:
    """Tasks that can never become ready, as they need a failed or unknown one, or each other; a sentence each."""
    known = {task.id: task.status for task in tasks}
    pending = [task for task in tasks if task.status == "pending"]
    hopeless = [task for task in pending if any(known.get(need) in ("failed", None) for need in task.needs)]
    sentences = [f"task {task.id} {waits(tasks, task)}" for task in hopeless]
    circles = {tuple(sorted(set(circle))): circle for task in pending if (circle := _find_circle(tasks, task.id))}
    return (*sentences, *(f"tasks wait for each other: {' → '.join(circle)}" for circle in circles.values()))


def _update_readiness(task: LoopTask, done: set[str]) -> LoopTask:
    if task.status not in ("pending", "ready"):
        return task
    status: TaskStatus = "ready" if done.issuperset(task.needs) else "pending"
    return task if status == task.status else task._replace(status=status)


def _check(task: LoopTask) -> None:
    if not ID.fullmatch(task.id):
        raise UserError(f"{task.id!r} is not a task id", "use letters, digits, . _ -; at most 64")
    if not task.title.strip() or len(task.title) > TITLE:
        raise UserError("a task needs a title", f"say in one line what is to be done; at most {TITLE} characters")
    if task.priority not in PRIORITIES:
        raise UserError(f"{task.priority} is not a priority", "1 is the highest, 5 the lowest")
    if len(task.description) > DESCRIPTION:
        raise UserError("the description is too long", f"keep it below {DESCRIPTION:,} characters, or name a file")


def _is_free(tasks: Sequence[LoopTask], task: LoopTask, dead: Callable[[str], bool]) -> LoopTask:
    if task.status == "pending":
        raise UserError(
            f"task {task.id!r} {waits(tasks, task)}", "see what can be claimed: ralph agent task list --ready"
        )
    if task.status == "done":
        raise UserError(f"task {task.id!r} is done", "see what can be claimed: ralph agent task list --ready")
    if task.status == "active" and not dead(task.owner):
        hint = f"take another; if nobody works on it: ralph agent task done {task.id} --failed, then claim it"
        raise UserError(f"task {task.id!r} is claimed by {task.owner or 'somebody'}", hint)
    return task


def _give_task(tasks: Sequence[LoopTask], task: LoopTask, owner: str) -> tuple[Tasks, LoopTask]:
    unfailed = task._replace(status="pending")
    if (
        task.status == "failed"
        and _update_readiness(unfailed, {other.id for other in tasks if other.status == "done"}) == unfailed
    ):
        reason = f"task {task.id!r} {waits(tasks, unfailed)}"
        raise UserError(reason, "see what can be claimed: ralph agent task list --ready")
    return _replace_task(tasks, task._replace(status="active", owner=owner))


def _give_back(task: LoopTask) -> LoopTask:
    return task._replace(status="pending", owner="")


def _replace_task(tasks: Sequence[LoopTask], changed: LoopTask) -> tuple[Tasks, LoopTask]:
    return update_readiness([changed if task.id == changed.id else task for task in tasks]), changed


def _find_circle(tasks: Sequence[LoopTask], start: str) -> tuple[str, ...]:
    """The cycle of needs through `start`, or ()."""
    needs = {task.id: task.needs for task in tasks}
    previous, ways = {start: ""}, [start]
    while ways:
        here = ways.pop()
        if start in needs.get(here, ()):
            way = [start]
            while here:
                way.append(here)
                here = previous[here]
            return tuple(reversed(way))
        further = [need for need in needs.get(here, ()) if need not in previous]
        previous.update(dict.fromkeys(further, here))
        ways += further
    return ()
