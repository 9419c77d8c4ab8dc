"""What runs here, seen and held from any terminal: `ralph logs`, `ralph pause`, `ralph resume`, `ralph stop`.

They read and write files alone (`adapters/storage/loop/live.py`), so that they need neither agent nor forge. Beside a
running loop, `ralph agent cancel` ends it or clears up after a dead one, and `ralph agent telegram` holds it from a
chat.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.loop.runs import event_line
from ralph_mission.cli.options import (
    at_repository,
    json_option,
    named_repo,
    open_app,
    print_json,
    print_moment,
    print_outcome,
    read_settings,
    repo_option,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.storage.loop.live import LiveRecord
    from ralph_mission.adapters.storage.loop.lock import Holder
    from ralph_mission.loop.model.spec import HoldOrder
    from ralph_mission.loop.model.state import StopSignal

run_argument = click.argument("run", required=False, default="")
STARTING = 2.0
"""Seconds in which a newly started run takes the lock, then drops requests to an earlier one."""
CANCEL_PAUSE = 0.05  # seconds between two looks

ORDER_EFFECTS = {
    "cancel": "its session is ended now, and the run with it",
    "stop": "it stops when its session is over; `ralph run --continue` resumes it",
    "restart": "it restarts when its session is over",
}


def _home(repo: Path) -> Path:
    from ralph_mission.adapters.git.git import Git

    return Git.open(repo).state_dir


@click.command()
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Keep following until the run ends.")
@repo_option
@json_option
def logs(run: str, follow: bool, repo: Path, as_json: bool) -> None:
    """Show the steps of RUN (an id, or work, cycle, …; default: the latest).

    With --json: one JSON document a line.
    """
    from ralph_mission.adapters.storage.loop import live

    home = _home(repo)
    found = live.find_runs(home, run)
    if not found:
        raise UserError("nothing has run here yet", "start something: ralph run TASK", usage=True)
    record = next((one for one in reversed(found) if one.alive), found[-1])
    with suppress(KeyboardInterrupt):  # the usual end of `--follow`
        for event in live.follow_events(home, record, follow):
            if as_json:
                click.echo(
                    json.dumps({name: value for name, value in asdict(event).items() if value is not None}, default=str)
                )
            elif line := event_line(event):
                click.echo(line)


@click.command()
@run_argument
@at_repository
@json_option
def pause(run: str, repo: Path, config: Path | None, as_json: bool) -> None:
    """Pause RUN at its next safe point; without RUN, everything here, including cycles. Undo: `ralph resume`.

    A loop ends its session first. Paused time does not count towards a run's limits.
    """
    records = _order(repo, run, "pause")
    paused = not run and _set_paused(repo, config, True, needed=not records) is not None
    nothing = ["nothing is done until `ralph resume`"] if paused else []
    if records and not run and not paused:
        click.echo(
            "note: cycles are not paused, as no memory can be written here yet; RALPH_PAUSED=1 stops them", err=True
        )
    _tell_order(repo, records, nothing, "pauses at its next safe point", "paused", as_json, paused=paused)


@click.command()
@run_argument
@at_repository
@json_option
def resume(run: str, repo: Path, config: Path | None, as_json: bool) -> None:
    """Resume RUN; without RUN everything here, including cycles."""
    records = _order(repo, run, "")
    lifted = not run and _set_paused(repo, config, False, needed=False)
    line = ["the next cycle runs when it is due; now: ralph cycle --force"] if lifted else []
    _tell_order(repo, records, line, "continues", "resumed", as_json, paused=False)
    if not as_json and not records and not lifted:
        click.echo("nothing is paused here")


@click.command()
@run_argument
@repo_option
@json_option
def stop(run: str, repo: Path, as_json: bool) -> None:
    """End RUN at its next safe point; without RUN everything here. A loop ends its session first.

    `ralph run --continue` resumes it; `ralph agent cancel` does not wait for the session. A stopped `ralph run` exits
    with 1; a stopped cycle, work, watch or review with 130, as with Ctrl-C.
    """
    records = _order(repo, run, "stop")
    if not records:
        raise UserError("nothing runs here", "see: ralph status", usage=True)
    _tell_order(repo, records, [], "stops at its next safe point", "stopping", as_json)


def _order(repo: Path, name: str, order: HoldOrder) -> tuple[LiveRecord, ...]:
    """Send the request to all runs that `name` matches; returns them."""
    from ralph_mission.adapters.storage.loop import live

    home = _home(repo)
    found = live.find_runs(home, name, alive=True)
    for one in found:
        live.give_order(home, one, order)
    return found


def _set_paused(repo: Path, config: Path | None, paused: bool, needed: bool) -> bool | None:
    """Set the kill switch of memory; whether that changed it, None if there is no memory and it is not `needed`."""
    from ralph_mission.mission.operations import control

    try:
        store = open_app(repo, config).store
        if not needed and store.recall() is None:
            return None
        return (control.pause if paused else control.resume)(store)
    except UserError:
        if needed:
            raise
        return None  # the runs here get the request, even if the forge is unreachable


def _tell_order(
    repo: Path, records: Sequence[LiveRecord], more: Sequence[str], does: str, word: str, as_json: bool, **facts: Any
) -> None:
    if as_json:
        print_json({**facts, "runs": [one.id for one in records]})
        return
    for line in (*(f"{one.id} {does}" for one in records), *(type_commands(f"{word}: {line}", repo) for line in more)):
        click.echo(line)


@click.command()
@click.option("--web", is_flag=True, help="In a browser on this machine.")
@repo_option
def ui(web: bool, repo: Path) -> None:
    """Show everything that runs here; pause, resume, stop or guide it, see its diff."""
    if web:
        from ralph_mission.cli.loop.web import serve_runs

        serve_runs(repo)
        return
    from ralph_mission.extras import require_extra

    require_extra("ui", "the interface needs")
    from ralph_mission.cli.loop.ui import show_runs

    show_runs(repo)


@click.command()
@click.option("--stop", "word", flag_value="stop", help="Let the session end first; the run can be continued.")
@click.option("--restart", "word", flag_value="restart", help="Let the session end first, then restart the run.")
@repo_option
@json_option
def cancel(word: StopSignal | None, repo: Path, as_json: bool) -> None:
    """End the loop in this checkout, or clean up after one that died."""
    text, running = _cancel(repo, word or "cancel")
    print_outcome(type_commands(text, repo), {"running": running, "signal": word or "cancel", "said": text}, as_json)


def _cancel(repo: Path, word: StopSignal) -> tuple[str, bool]:
    from ralph_mission.adapters import files
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.loop import archive, inbox, run_files

    if home := run_files.of_session(repo, os.environ):
        inbox.write(home, word)
        return f"The loop was asked to {word}: {ORDER_EFFECTS[word]}.", True
    git = Git.open(repo)
    if git.work_tree is None:
        raise UserError(f"{repo} has no work tree", "name a checkout with --repo DIR", usage=True)
    if found := _holder(git.git_dir):
        files.unlink(git.work_tree, (".ralph/loop",))
        _leave_request(run_files.folder(repo, {}), git.git_dir, word)
        return f"{found} was asked to {word}: {ORDER_EFFECTS[word]}.", True
    cleared = archive.clear_up(git.work_tree, git.git_dir, forget=word == "cancel")
    removed = f"; cleaned up after an earlier run: {', '.join(cleared)}" if cleared else ""
    return f"Nothing runs here{removed}.", False


def _holder(git_dir: Path) -> Holder | None:
    """The run here, or one about to start: cancelling a run right after starting it finds it."""
    from ralph_mission.adapters.storage.loop import lock

    deadline = time.monotonic() + STARTING
    while (found := lock.holder(git_dir)) is None and time.monotonic() < deadline:
        time.sleep(CANCEL_PAUSE)
    return found


def _leave_request(home: Path, git_dir: Path, word: StopSignal) -> None:
    """Leave the request, again while a starting run mistakes it for an earlier run's."""
    from ralph_mission.adapters.storage.loop import inbox, lock

    inbox.write(home, word)
    deadline = time.monotonic() + STARTING
    while _young(git_dir) and time.monotonic() < deadline:
        if not inbox.read(home) and lock.holder(git_dir):
            inbox.write(home, word)
        time.sleep(CANCEL_PAUSE)


def _young(git_dir: Path) -> bool:
    """Whether the run that holds the lock has only just taken it."""
    from ralph_mission.adapters.storage.loop import lock

    found = lock.holder(git_dir)
    recent = (datetime.now(UTC) - timedelta(seconds=1 + STARTING)).isoformat(timespec="seconds")
    return found is not None and (not found.since or found.since >= recent)


WAIT = 5  # seconds that an empty answer of Telegram may take
CHAT_PAUSE = 0.5  # seconds between two polls for an answer
UNANSWERED = "No answer within {} s. Continue, and choose what is easiest to undo."
UNHEARD = "No one is listening (no `ralph agent telegram` runs here). Continue, and choose what is easiest to undo."


@click.command()
@at_repository
@click.option("--once", is_flag=True, help="Read waiting messages, then end.")
@click.option("--ask", "question", metavar="TEXT", help="For agents: ask a person and wait for the answer.")
def telegram(repo: Path, config: Path | None, once: bool, question: str | None) -> None:
    """Take commands from listed people and report a loop's progress, until Ctrl-C (exit code 130)."""
    if question is None:
        _poll_inbox(repo, config, once)
    else:
        click.echo(_ask_question(repo, config, question))


def _poll_inbox(repo: Path, config: Path | None, once: bool) -> None:
    from ralph_mission.app import cycle

    with cycle.open_poller(repo, config, WAIT * (not once), lambda line: print_moment(line, repo, err=True)) as poller:
        if once:
            if not poller.look():
                raise UserError(poller.complaint, "fix that, then run again")
            return
        print_moment("listening", repo, err=True)
        poller.poll_forever(time.sleep)


def _ask_question(repo: Path, config: Path | None, question: str) -> str:
    """The answer, or the fallback without one: waiting for a person never blocks a loop forever."""
    from ralph_mission.adapters.storage.loop import run_files
    from ralph_mission.adapters.storage.loop.inbox import Questions
    from ralph_mission.app.ports import patience

    folder = run_files.folder(named_repo(), os.environ)
    run_files.prepare(folder)
    questions, seconds = Questions(folder), patience(read_settings(folder.parent, config))[0]
    if not questions.heard:
        return UNHEARD
    pending, until = questions.ask(question), datetime.now(UTC) + timedelta(seconds=seconds)
    while datetime.now(UTC) < until:
        known = {one.id: one.answer for one in questions.all()}
        if (answer := known.get(pending.id)) is not None:
            return answer
        time.sleep(CHAT_PAUSE)
    return UNANSWERED.format(seconds)
