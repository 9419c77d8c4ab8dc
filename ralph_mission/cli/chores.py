"""What agents and people do with tasks, events and guidance: the deeds behind `ralph task`, `emit` and `guidance`.

Agents call these hundreds of times in a session, so nothing here imports click, pydantic or rich.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.loop import tasks as lifecycle
from ralph_mission.loop.task import LoopTask
from ralph_mission.stores.loop import place
from ralph_mission.stores.loop.tasks import Tasks
from ralph_mission.trouble import UserError

if TYPE_CHECKING:
    from ralph_mission.loop.items import Guidance

MISUSED = 64
"""The exit code for wrong usage of a loop's commands (EX_USAGE of sysexits)."""
STATUSES = ("pending", "ready", "active", "done", "failed")
TOPIC = re.compile(r"[A-Za-z][\w.:/-]{0,99}")
PAYLOAD = 100_000
"""Characters."""

Said = tuple[str, dict[str, Any]]
"""What to print: for people, and as one JSON document."""


def do(deed: Callable[..., Said], repo: str | None, as_json: bool, **asked: Any) -> int:
    """Do it in the checkout and print what it says. Raises Trouble; that of wrong usage ends with 64."""
    try:
        text, document = deed(place.folder(Path(repo) if repo else None, os.environ), **asked)
    except UserError as trouble:
        trouble.exit_code = MISUSED if trouble.exit_code == 2 else trouble.exit_code
        raise
    print(json.dumps(document, indent=2).replace("##[", "##\\u005b") if as_json else _printable(text))
    return 0


def task_add(where: Path, title: str, needs: Sequence[str], priority: int, description: str, id: str) -> Said:
    """Put a task on the list."""
    place.prepare(where)
    ids = [name for given in needs for name in given.replace(",", " ").split()]
    return _task_reply(where, Tasks(where).add(title, ids, priority, description, id))


def task_list(where: Path, status: str) -> Said:
    """All tasks, or those of one status; what is wrong with the list comes first."""
    store = Tasks(where)
    every, complaints = store.all(), store.complaints()
    shown = [task for task in every if status in ("", task.status)]
    lines = [*(f"! {complaint}" for complaint in complaints), *(_line(every, task) for task in shown)]
    return "\n".join(lines) or "No tasks.", {
        "tasks": [document(every, task) for task in shown],
        "complaints": complaints,
    }


def task_ready(where: Path) -> Said:
    """What can be claimed, first things first."""
    every = Tasks(where).all()
    shown = lifecycle.ready(every)
    text = "\n".join(_line(every, task) for task in shown) or "No task is ready."
    return text, {"tasks": [document(every, task) for task in shown]}


def task_claim(where: Path, id: str, owner: str) -> Said:
    """Take a task."""
    from ralph_mission.stores.loop.owners import this_owner

    place.prepare(where)
    return _task_reply(where, Tasks(where).claim(owner.strip() or this_owner(os.environ), id))


def task_done(where: Path, id: str) -> Said:
    """Mark a task done."""
    return _task_reply(where, Tasks(where).done(id))


def task_fail(where: Path, id: str, why: str) -> Said:
    """Mark a task failed."""
    return _task_reply(where, Tasks(where).fail(id, why))


def task_show(where: Path, id: str) -> Said:
    """One task with all that is known of it."""
    every = Tasks(where).all()
    task = lifecycle.find(every, id)
    rest = [f"priority {task.priority}", f"needs {', '.join(task.needs)}" if task.needs else "", task.description]
    return "\n".join((_line(every, task), *filter(None, rest))), document(every, task)


def emit_event(where: Path, topic: str, payload: str, json_payload: bool) -> Said:
    """Say an event for the loop to hear after this session."""
    from ralph_mission.stores.loop.saying import append_event

    said = {"topic": topic_of(topic), "payload": _payload(payload, json_payload)}
    hat, number = os.environ.get("RALPH_HAT", ""), iteration()
    place.prepare(where)
    append_event(where, said["topic"], said["payload"], hat, number)
    return f"said {topic}", {**said, "hat": hat, "iteration": number}


def add_guidance(where: Path, text: str) -> Said:
    """Keep a word for the next session."""
    from ralph_mission.stores.loop.guidance import Guide

    place.prepare(where)
    said = Guide(where).say(text)
    return f"{said.id}: the next session will hear it", _guidance(said, False)


def guidance_list(where: Path) -> Said:
    """All that was said, and whether a session was given it."""
    from ralph_mission.stores.loop.guidance import Guide

    said = Guide(where).all()
    lines = [
        f"{one.id}  {one.at:%Y-%m-%d %H:%M}  {'given  ' if given else 'waiting'}  {one.text}" for one, given in said
    ]
    return "\n".join(lines) or "No guidance.", {"guidance": [_guidance(one, given) for one, given in said]}


def topic_of(topic: str) -> str:
    """A topic as events may carry it. Raises Trouble for any other."""
    if not TOPIC.fullmatch(topic):
        raise UserError(f"{topic!r} is no topic", "use words with dots, such as build.complete", usage=True)
    return topic


def iteration() -> int:
    """Which session of a loop we are in; 0 outside of one."""
    number = os.environ.get("RALPH_ITERATION", "")
    return int(number) if number.isascii() and number.isdigit() else 0


def document(every: Sequence[LoopTask], task: LoopTask) -> dict[str, Any]:
    """A task as JSON shows it."""
    told = {"id": task.id, "title": task.title, "status": task.status, "priority": task.priority}
    return told | {"needs": task.needs, "waits": lifecycle.waits(every, task), "owner": task.owner,
                   "description": task.description}  # fmt: skip  # one object


def _task_reply(where: Path, task: LoopTask) -> Said:
    every = Tasks(where).all()
    return _line(every, task), document(every, task)


def _line(every: Sequence[LoopTask], task: LoopTask) -> str:
    more = lifecycle.waits(every, task) or (
        f"claimed by {task.owner}" if task.status == "active" and task.owner else ""
    )
    return f"{task.id}  {task.status:7}  {task.title}{f' ({more})' if more else ''}"


def _payload(payload: str, as_json: bool) -> str:
    if len(payload) > PAYLOAD:
        less = f"keep it below {PAYLOAD:,} characters, or name a file"
        raise UserError("the payload is too long", less, usage=True)
    if not as_json:
        return payload
    try:
        return json.dumps(json.loads(payload), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        what = f"the payload is not JSON: {error}"
        raise UserError(what, "mend it, or leave --json-payload out", usage=True) from None


def _guidance(said: Guidance, given: bool) -> dict[str, Any]:
    return {"id": said.id, "at": said.at.isoformat(), "text": said.text, "given": given}


def _printable(text: str) -> str:
    """Titles are agents' words: none of them may steer the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)
