"""What agents and people do with the files of a loop: `ralph agent task`, `emit`, `guidance`, `verdict` and `mcp`.

Agents call these hundreds of times in a session, so little is imported.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission import __version__
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.cli.main import INTERRUPTED
from ralph_mission.cli.options import SharedGroup, json_option, named_repo, print_json, repo_option
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
from ralph_mission.loop.model.state import LoopTask
from ralph_mission.loop.rules import routing as lifecycle
from ralph_mission.values import compile_regex
from ralph_mission.words import stamp

if TYPE_CHECKING:
    from ralph_mission.loop.model.state import Guidance

MISUSED = 64
"""The exit code for wrong usage of a loop's commands (EX_USAGE of sysexits)."""
STATUSES = ("pending", "ready", "active", "done", "failed")
TOPIC = compile_regex(r"[A-Za-z][\w.:/-]{0,99}")
PAYLOAD = 100_000
"""Characters."""

Said = tuple[str, dict[str, Any]]
"""What to print: for people, and as one JSON document."""


def do(action: Callable[..., Said], as_json: bool, **arguments: Any) -> int:
    """Do it in the checkout and print what it says. Raises UserError; that of wrong usage ends with 64."""
    try:
        text, document = action(run_files.folder(named_repo(), os.environ), **arguments)
    except UserError as problem:
        problem.exit_code = MISUSED if problem.exit_code == 2 else problem.exit_code
        raise
    print(json.dumps(document, indent=2).replace("##[", "##\\u005b") if as_json else _printable(text))
    return 0


def task_add(where: Path, title: str, needs: Sequence[str], priority: int, description: str, id: str) -> Said:
    """Add a task."""
    run_files.prepare(where)
    ids = [name for argument in needs for name in argument.replace(",", " ").split()]
    return _task_reply(where, Tasks(where).add(title, ids, priority, description, id))


def task_list(where: Path, status: str) -> Said:
    """All tasks, or those of one status; what is wrong with the list comes first."""
    store = Tasks(where)
    every, complaints = store.all(), store.complaints()
    listed = [task for task in every if status in ("", task.status)]
    lines = [*(f"! {complaint}" for complaint in complaints), *(_line(every, task) for task in listed)]
    story = _session_story(where)
    return "\n".join(filter(None, (_name_work(story), *(lines or ["No tasks."])))), {
        "tasks": [document(every, task) for task in listed],
        "complaints": complaints,
        "story": story,
    }


def task_ready(where: Path) -> Said:
    """What can be claimed, first things first."""
    every = Tasks(where).all()
    listed, story = lifecycle.ready(every), _session_story(where)
    lines = [_line(every, task) for task in listed] or ["No task is ready."]
    text = "\n".join(filter(None, (_name_work(story), *lines)))
    return text, {"tasks": [document(every, task) for task in listed], "story": story}


def _name_work(story: str) -> str:
    return f"The work of this session is story {story}, in the list that its prompt names." if story else ""


def _session_story(where: Path) -> str:
    """The id of the story that the running session was given, "" where it has none."""
    from ralph_mission.adapters.storage.loop.stories import SessionStories

    story = SessionStories(where / "loop", lambda: _session_item(where)).current() if iteration() else None
    return story.id if story else ""


def _session_item(where: Path) -> str:
    """The story or task that the running session was given, or ""."""
    from ralph_mission.adapters.storage.loop import state
    from ralph_mission.adapters.storage.memory.codec import UnreadableDocument

    try:
        found = state.load(where.parent)
    except (UnreadableDocument, UserError):
        return ""
    return found.item if found else ""


def task_claim(where: Path, id: str, owner: str) -> Said:
    """Take a task."""
    from ralph_mission.adapters.storage.loop.lock import this_owner

    run_files.prepare(where)
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
    """Emit an event, which the loop reads after this session."""
    from ralph_mission.adapters.storage.loop.events import append_event

    fields = {"topic": topic_of(topic), "payload": _payload(payload, json_payload)}
    hat, number = os.environ.get("RALPH_HAT", ""), iteration()
    run_files.prepare(where)
    append_event(where, fields["topic"], fields["payload"], hat, number)
    return f"emitted {topic}", {**fields, "hat": hat, "iteration": number}


def add_guidance(where: Path, text: str) -> Said:
    """Keep a word for the next session."""
    from ralph_mission.adapters.storage.loop.inbox import Guide

    run_files.prepare(where)
    message = Guide(where).say(text)
    return f"{message.id}: the next session will get it", _guidance(message, False)


def guidance_list(where: Path) -> Said:
    """All messages, and whether a session was given them."""
    from ralph_mission.adapters.storage.loop.inbox import Guide

    messages = Guide(where).all()
    lines = [
        f"{one.id}  {stamp(one.at)}  {'given  ' if delivered else 'waiting'}  {one.text}" for one, delivered in messages
    ]
    return "\n".join(lines) or "No guidance.", {"guidance": [_guidance(one, delivered) for one, delivered in messages]}


def topic_of(topic: str) -> str:
    """A topic as events may carry it. Raises UserError for any other."""
    if not TOPIC.fullmatch(topic):
        raise UserError(f"{topic!r} is not a topic", "use words with dots, such as build.complete", usage=True)
    return topic


def iteration() -> int:
    """Which session of a loop we are in; 0 outside of one."""
    number = os.environ.get("RALPH_ITERATION", "")
    return int(number) if number.isascii() and number.isdigit() else 0


def document(every: Sequence[LoopTask], task: LoopTask) -> dict[str, Any]:
    """A task as JSON shows it."""
    fields = {"id": task.id, "title": task.title, "status": task.status, "priority": task.priority}
    return fields | {"needs": task.needs, "waits": lifecycle.waits(every, task), "owner": task.owner,
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
        raise UserError(what, "fix it, or leave --json-payload out", usage=True) from None


def _guidance(message: Guidance, delivered: bool) -> dict[str, Any]:
    return {"id": message.id, "at": message.at.isoformat(), "text": message.text, "given": delivered}


def _printable(text: str) -> str:
    """Titles come from agents: they must not control the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


Function = Callable[..., Any]


def common(command: Function) -> Function:
    """`--repo` and `--json`. Without `--repo` it is the running loop's checkout, else the one around here."""
    return repo_option(json_option(command))


@click.group(cls=SharedGroup)
def task() -> None:
    """The tasks of a loop: pending → ready → active → done or failed."""


@task.command()
@click.argument("title")
@click.option("--needs", multiple=True, metavar="ID", help="A task that must be done first; may be repeated.")
@click.option("--priority", type=click.IntRange(1, 5), default=3, show_default=True, help="1 goes first.")
@click.option("--description", default="", metavar="TEXT")
@click.option("--id", default="", metavar="ID", help="Its id; default: generated.")
@common
def add(repo: Path, as_json: bool, **arguments: Any) -> int:
    """Add a task."""
    return do(task_add, as_json, **arguments)


@task.command("list")
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only these.")
@click.option("--ready", is_flag=True, help="Only tasks that can be claimed, in that order.")
@common
def list_(repo: Path, as_json: bool, status: str | None, ready: bool) -> int:
    """Show the tasks, and problems of the list."""
    if ready and status:
        raise click.UsageError("give either --ready or --status")
    if ready:
        return do(task_ready, as_json)
    return do(task_list, as_json, status=status or "")


@task.command(hidden=True)
@click.argument("id", required=False, default="")
@click.option("--owner", default="", metavar="TEXT", help="Who works on it: host:boot-id:pid, or $RALPH_OWNER.")
@common
def claim(repo: Path, as_json: bool, id: str, owner: str) -> int:
    """Take a task, by default the first that is ready. Nobody else gets it."""
    return do(task_claim, as_json, id=id, owner=owner)


@task.command()
@click.argument("id")
@click.option("--failed", is_flag=True, help="It failed; tasks that need it stay pending.")
@click.option("--why", default="", metavar="TEXT", help="With --failed: what went wrong.")
@common
def done(repo: Path, as_json: bool, id: str, failed: bool, why: str) -> int:
    """Mark a task as done, or as failed."""
    if why and not failed:
        raise click.UsageError("--why goes with --failed")
    if failed:
        return do(task_fail, as_json, id=id, why=why)
    return do(task_done, as_json, id=id)


@task.command(hidden=True)
@click.argument("id")
@common
def show(repo: Path, as_json: bool, id: str) -> int:
    """Show one task."""
    return do(task_show, as_json, id=id)


@click.command(hidden=True)
@click.argument("topic")
@click.argument("payload", required=False, default="")
@click.option("--json-payload", is_flag=True, help="The payload is JSON: refuse it when it is not.")
@common
def emit(repo: Path, as_json: bool, topic: str, payload: str, json_payload: bool) -> int:
    """Emit an event; the loop reads it when this session is over."""
    return do(emit_event, as_json, topic=topic, payload=payload, json_payload=json_payload)


@click.command()
@click.argument("text", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Show the messages, and whether they were delivered.")
@common
def guidance(repo: Path, as_json: bool, text: tuple[str, ...], listed: bool) -> int:
    """Send a message to the next session, once."""
    if listed == bool(text):
        raise click.UsageError("give either words for the next session or --list")
    if listed:
        return do(guidance_list, as_json)
    return do(add_guidance, as_json, text=" ".join(text))


@click.command(hidden=True)
@click.argument("word", type=click.Choice(["accept", "reject"]))
@click.argument("run", required=False, default="")
@repo_option
@json_option
def verdict(word: str, run: str, repo: Path, as_json: bool) -> None:
    """Say whether the work of RUN (the last one) is good enough with the issues left in it."""
    from ralph_mission.adapters.storage.loop import run_files, state

    name, judged = state.say(run_files.folder(repo, os.environ).parent, word == "accept", run)
    if as_json:
        return print_json({"run": name, "kind": judged.kind, "left": judged.left, "accepted": judged.accepted})
    return click.echo(f"{name}: {judged.kind} with {judged.left} issues left is {word}ed")


@click.command(hidden=True)
@repo_option
def mcp(repo: Path) -> int:
    """Serve tasks, events, memories and guidance over standard input and output.

    Add it to an agent as a server with the command `ralph agent mcp`.
    """
    require_extra("mcp", "ralph agent mcp needs")
    from ralph_mission.adapters.mcp import RunFiles, serve
    from ralph_mission.adapters.storage.loop import events, lock, run_files
    from ralph_mission.adapters.storage.loop.inbox import Guide
    from ralph_mission.adapters.storage.loop.notes import Memories
    from ralph_mission.adapters.storage.loop.stories import SessionStories
    from ralph_mission.adapters.storage.loop.tasks import Tasks

    where = run_files.folder(named_repo(), os.environ)
    run_files.prepare(where)

    def emit(topic: str, payload: str) -> None:
        events.append_event(where, topic, payload, os.environ.get("RALPH_HAT", ""), iteration())

    # The thread that waits for the client cannot be woken, and writes are atomic.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))
    # Our agent ends us: while we live, so does the claimant that uses us.
    owner = os.environ.get("RALPH_OWNER") or lock.place(os.getpid())

    here = repo or Path()
    top = next((place for place in (here.absolute(), *here.absolute().parents) if (place / ".git").exists()), here)
    stories = SessionStories(top, lambda: _session_item(where))
    serve(RunFiles(Tasks(where), Memories(where), Guide(where), emit, owner, stories, iteration()), __version__)
    return 0
