"""What agents and people do with the files of a loop: `ralph agent task`, `emit`, `guidance`, `verdict`, `mcp`, `cost`.

Agents call these hundreds of times in a session, so little is imported. `cost` tells what the sessions of loops cost
here, and calculates with the prices of the user.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission import __version__
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.cli.options import (
    SharedGroup,
    at_repository,
    json_option,
    named_repo,
    print_json,
    print_outcome,
    read_settings,
    repo_option,
)
from ralph_mission.errors import INTERRUPTED, UserError
from ralph_mission.extras import require_extra
from ralph_mission.loop.model.state import LoopTask
from ralph_mission.loop.rules import routing as lifecycle
from ralph_mission.values import compile_regex
from ralph_mission.words import stamp

if TYPE_CHECKING:
    from ralph_mission.loop import cost as costs
    from ralph_mission.loop.model.state import Guidance, RunState, SessionUsage

STATUSES = ("pending", "ready", "active", "done", "failed")
TOPIC = compile_regex(r"[A-Za-z][\w.:/-]{0,99}")
PAYLOAD = 100_000
"""Characters."""
WIDTHS = "{:<24} {:>9} {:>13} {:>13} {:>14}"


def _folder() -> Path:
    return run_files.folder(named_repo(), os.environ)


def _say(text: str, document: dict[str, Any], as_json: bool) -> None:
    """Print it for people, or as one JSON document. Titles come from agents: they must not control the terminal."""
    if as_json:
        return print_json(document)
    return print("".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text))


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


def _show(where: Path, task: LoopTask, as_json: bool, whole: bool = False) -> None:
    """Print one task; `whole`: with all that is known of it."""
    every = Tasks(where).all()
    rest = [f"priority {task.priority}", f"needs {', '.join(task.needs)}" if task.needs else "", task.description]
    lines = (_line(every, task), *filter(None, rest if whole else ()))
    _say("\n".join(lines), document(every, task), as_json)


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


def common(command: Callable[..., Any]) -> Callable[..., Any]:
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
def add(repo: Path, as_json: bool, title: str, needs: Sequence[str], priority: int, description: str, id: str) -> None:
    """Add a task."""
    run_files.prepare(where := _folder())
    ids = [name for argument in needs for name in argument.replace(",", " ").split()]
    _show(where, Tasks(where).add(title, ids, priority, description, id), as_json)


@task.command("list")
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only these.")
@click.option("--ready", is_flag=True, help="Only tasks that can be claimed, in that order.")
@common
def list_(repo: Path, as_json: bool, status: str | None, ready: bool) -> None:
    """Show the tasks, and problems of the list."""
    if ready and status:
        raise click.UsageError("give either --ready or --status")
    where = _folder()
    store, story = Tasks(where), _session_story(where)
    every = store.all()
    complaints = {} if ready else {"complaints": store.complaints()}
    listed = lifecycle.ready(every) if ready else [task for task in every if status in (None, task.status)]
    lines = [f"The work of this session is story {story}, in the list that its prompt names."] if story else []
    rows = [f"! {one}" for one in complaints.get("complaints", ())] + [_line(every, task) for task in listed]
    lines += rows or ["No task is ready." if ready else "No tasks."]
    tasks = [document(every, task) for task in listed]
    _say("\n".join(lines), {"tasks": tasks, **complaints, "story": story}, as_json)


@task.command(hidden=True)
@click.argument("id", required=False, default="")
@click.option("--owner", default="", metavar="TEXT", help="Who works on it: host:boot-id:pid, or $RALPH_OWNER.")
@common
def claim(repo: Path, as_json: bool, id: str, owner: str) -> None:
    """Take a task, by default the first that is ready. Nobody else gets it."""
    from ralph_mission.adapters.storage.loop.lock import this_owner

    run_files.prepare(where := _folder())
    _show(where, Tasks(where).claim(owner.strip() or this_owner(os.environ), id), as_json)


@task.command()
@click.argument("id")
@click.option("--failed", is_flag=True, help="It failed; tasks that need it stay pending.")
@click.option("--why", default="", metavar="TEXT", help="With --failed: what went wrong.")
@common
def done(repo: Path, as_json: bool, id: str, failed: bool, why: str) -> None:
    """Mark a task as done, or as failed."""
    if why and not failed:
        raise click.UsageError("--why goes with --failed")
    tasks = Tasks(where := _folder())
    _show(where, tasks.fail(id, why) if failed else tasks.done(id), as_json)


@task.command(hidden=True)
@click.argument("id")
@common
def show(repo: Path, as_json: bool, id: str) -> None:
    """Show one task."""
    where = _folder()
    _show(where, lifecycle.find(Tasks(where).all(), id), as_json, whole=True)


@click.command(hidden=True)
@click.argument("topic")
@click.argument("payload", required=False, default="")
@click.option("--json-payload", is_flag=True, help="The payload is JSON: refuse it when it is not.")
@common
def emit(repo: Path, as_json: bool, topic: str, payload: str, json_payload: bool) -> None:
    """Emit an event; the loop reads it when this session is over."""
    from ralph_mission.adapters.storage.loop.events import append_event

    where, hat, number = _folder(), os.environ.get("RALPH_HAT", ""), iteration()
    fields = {"topic": topic_of(topic), "payload": _payload(payload, json_payload)}
    run_files.prepare(where)
    append_event(where, fields["topic"], fields["payload"], hat, number)
    _say(f"emitted {topic}", {**fields, "hat": hat, "iteration": number}, as_json)


@click.command()
@click.argument("text", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Show the messages, and whether they were delivered.")
@common
def guidance(repo: Path, as_json: bool, text: tuple[str, ...], listed: bool) -> None:
    """Send a message to the next session, once."""
    from ralph_mission.adapters.storage.loop.inbox import Guide

    if listed == bool(text):
        raise click.UsageError("give either words for the next session or --list")
    where = _folder()
    if not listed:
        run_files.prepare(where)
        message = Guide(where).say(" ".join(text))
        return _say(f"{message.id}: the next session will get it", _guidance(message, False), as_json)
    messages = Guide(where).all()
    lines = [f"{one.id}  {stamp(one.at)}  {'given  ' if given else 'waiting'}  {one.text}" for one, given in messages]
    documents = [_guidance(one, given) for one, given in messages]
    return _say("\n".join(lines) or "No guidance.", {"guidance": documents}, as_json)


@click.command(hidden=True)
@click.argument("word", type=click.Choice(["accept", "reject"]))
@click.argument("run", required=False, default="")
@repo_option
@json_option
def verdict(word: str, run: str, repo: Path, as_json: bool) -> None:
    """Say whether the work of RUN (the last one) is good enough with the issues left in it."""
    from ralph_mission.adapters.storage.loop import state

    name, judged = state.say(run_files.folder(repo, os.environ).parent, word == "accept", run)
    facts = {"run": name, "kind": judged.kind, "left": judged.left, "accepted": judged.accepted}
    print_outcome(f"{name}: {judged.kind} with {judged.left} issues left is {word}ed", facts, as_json)


@click.command(hidden=True)
@repo_option
def mcp(repo: Path) -> int:
    """Serve tasks, events, memories and guidance over standard input and output.

    Add it to an agent as a server with the command `ralph agent mcp`.
    """
    require_extra("mcp", "ralph agent mcp needs")
    from ralph_mission.adapters.mcp import RunFiles, serve
    from ralph_mission.adapters.storage.loop import events, lock
    from ralph_mission.adapters.storage.loop.inbox import Guide
    from ralph_mission.adapters.storage.loop.notes import Memories
    from ralph_mission.adapters.storage.loop.stories import SessionStories

    run_files.prepare(where := _folder())

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


@click.command()
@at_repository
@click.option("--estimate", metavar="HAT=N,…", help="Estimate this many sessions of each hat.")
@click.option("--tokens-in", type=click.IntRange(0), default=40_000, show_default=True, help="Tokens read per session.")
@click.option(
    "--tokens-out", type=click.IntRange(0), default=4_000, show_default=True, help="Tokens written per session."
)
@click.option("--models", default="", metavar="HAT=MODEL,…", help="The model of each hat in the estimate.")
@click.option("--model", default="", help="The model of every other hat; prices sessions that report only tokens.")
@click.option(
    "--price", multiple=True, metavar="MODEL=IN/OUT", help="USD per million tokens, in addition to ralph.yml."
)
@json_option
def cost(
    repo: Path, config: Path | None, estimate: str | None, tokens_in: int, tokens_out: int, models: str, model: str,
    price: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip  # one option after another
    """Show sessions, tokens and dollars by hat and by story or task.

    With --estimate, calculate instead: prices come from ralph.yml (cost: prices:) and --price; none is built in.
    """
    from ralph_mission.loop import cost as costs

    settings = read_settings(repo, config)
    configured = {name: price.model_dump() for name, price in settings.cost.prices.items()}
    prices = {**configured, **dict(_price(text) for text in price)}
    model = model or (settings.hands.agent.model if settings.hands.agent else "")
    if estimate is None:
        table = costs.table(_runs(repo), model, prices)
        return print_outcome("\n".join(_table_lines(table)), _table(table), as_json)
    sessions = {hat: _count(hat, number) for hat, number in _pairs(estimate, "--estimate").items()}
    reckoned = costs.estimate(sessions, _pairs(models, "--models"), model, (tokens_in, tokens_out), prices)
    return print_outcome("\n".join(_estimate_lines(reckoned)), _estimate(reckoned), as_json)


# --- reading ------------------------------------------------------------------------


def _runs(repo: Path) -> Iterator[RunState | costs.RunCost]:
    """The runs of this checkout: earlier ones first. An unreadable one is reported and skipped."""
    from ralph_mission.adapters.storage.loop import state
    from ralph_mission.loop import cost as costs

    root = run_files.folder(repo, os.environ).parent
    current = _or_told(state.STATE, lambda: state.load(root))
    for folder in sorted((root / state.RUNS).glob("*/")):
        if not current or folder.name != current.run_id:
            last = state.of_run(root, folder.name)
            sessions = sorted(folder.glob("session-*.json"))
            yield last or costs.of_sessions(filter(None, map(_session, sessions)))
    if current:
        yield current


def _session(path: Path) -> Any:
    from ralph_mission.adapters.storage.memory import codec
    from ralph_mission.loop.model.state import HatOutput

    return _or_told(str(path), lambda: codec.load(HatOutput, path.read_bytes()))


def _or_told(name: str, read: Any) -> Any:
    from ralph_mission.adapters.storage.memory.codec import UnreadableDocument

    try:
        return read()
    except (UnreadableDocument, OSError) as error:
        click.echo(f"{name} is not counted: it cannot be read ({error})", err=True)
        return None


def _pairs(text: str, option: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not (name.strip() and value.strip()) for name, _, value in pairs):
        raise UserError(f"{option} cannot be read: {text}", f"write it as {option} planner=…,builder=…", usage=True)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _count(hat: str, number: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise UserError(
            f"{number} is not a number of sessions of {hat}", "write it as --estimate planner=5", usage=True
        )
    return int(number)


def _price(text: str) -> tuple[str, dict[str, object]]:
    name, _, amounts = text.rpartition("=")
    try:
        read, written = (float(amount) for amount in amounts.split("/"))
    except ValueError:
        raise UserError(f"--price cannot be read: {text}", "write it as --price MODEL=3/15", usage=True) from None
    return name, {"input": read, "output": written}


# --- output -------------------------------------------------------------------------


def _table(table: costs.CostTable) -> dict[str, object]:
    return {
        "runs": table.runs,
        "hats": [{"hat": name, **_usage(usage)} for name, usage in table.hats],
        "items": [{"item": name, **_usage(usage)} for name, usage in table.items],
        "total": _usage(table.total),
    }


def _usage(usage: SessionUsage) -> dict[str, object]:
    keys = ("sessions", "input_tokens", "output_tokens", "cost_usd", "seconds")
    return {key: getattr(usage, key) for key in keys} | {"unpriced": usage.untold}


def _table_lines(table: costs.CostTable) -> Iterator[str]:
    if not table.runs:
        yield "No loop has run here yet."
        return
    for heading, rows in (("hat", table.hats), ("story or task", table.items)):
        if rows:
            yield WIDTHS.format(heading, "sessions", "tokens in", "tokens out", "USD")
            yield from (_cost_row(name, usage) for name, usage in rows)
            yield ""
    yield _cost_row(f"total of {table.runs} run{'' if table.runs == 1 else 's'}", table.total)


def _cost_row(name: str, usage: SessionUsage) -> str:
    from ralph_mission.safety.text import sanitise

    least = "at least " if usage.untold else ""
    dollars = f"{least}{usage.cost_usd or 0:.2f}" if usage.cost_usd or not usage.untold else "unknown"
    plain = " ".join(sanitise(name, "log").split())
    label = plain if len(plain) <= 24 else f"{plain[:23]}…"
    return WIDTHS.format(label, usage.sessions, f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", dollars)


def _estimate(estimate: costs.CostEstimate) -> dict[str, object]:
    shares = [{"hat": s.hat, "sessions": s.sessions, "model": s.model, "cost_usd": s.usd} for s in estimate.shares]
    alone = [{"model": name, "cost_usd": usd, "saving": estimate.saving(name)} for name, usd in estimate.alone]
    return {"hats": shares, "cost_usd": estimate.usd, "one_model": alone}


def _estimate_lines(estimate: costs.CostEstimate) -> Iterator[str]:
    for share in estimate.shares:
        yield f"{share.hat:<24} {share.sessions:>9} x {share.model:<28} {share.usd:>10.2f}"
    yield f"{'total':<65} {estimate.usd:>10.2f}"
    if len(estimate.alone) > 1:
        for name, usd in estimate.alone:
            saved = estimate.saving(name)
            word = "saved" if saved >= 0 else "more spent"
            yield f"{name} everywhere: {usd:.2f} ({abs(saved):.0%} {word} by the mix)"
