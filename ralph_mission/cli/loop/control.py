"""Beside a running loop: `ralph agent cancel` ends it or clears up after a dead one, `ralph agent telegram` chats."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.options import at_repository, json_option, named_repo, print_json, repo_option
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.storage.loop.lock import Holder
    from ralph_mission.config.settings import Config
    from ralph_mission.loop.model.state import StopSignal

STARTING = 2.0
"""Seconds in which a newly started run takes the lock, then drops requests to an earlier one."""
CANCEL_PAUSE = 0.05  # seconds between two looks

SAID = {
    "cancel": "its session is ended now, and the run with it",
    "stop": "it stops when its session is over; `ralph run --continue` resumes it",
    "restart": "it restarts when its session is over",
}


@click.command()
@click.option("--stop", "word", flag_value="stop", help="Let the session end first; the run can be continued.")
@click.option("--restart", "word", flag_value="restart", help="Let the session end first, then restart the run.")
@repo_option
@json_option
def cancel(word: StopSignal | None, repo: Path, as_json: bool) -> None:
    """End the loop in this checkout, or clean up after one that died."""
    text, running = _cancel(repo, word or "cancel")
    if as_json:
        print_json({"running": running, "signal": word or "cancel", "said": text})
    else:
        click.echo(type_commands(text, repo))


def _cancel(repo: Path, word: StopSignal) -> tuple[str, bool]:
    from ralph_mission.adapters import files
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.loop import archive, inbox, run_files

    if home := run_files.of_session(repo, os.environ):
        inbox.write(home, word)
        return f"The loop was asked to {word}: {SAID[word]}.", True
    git = Git.open(repo)
    if git.work_tree is None:
        raise UserError(f"{repo} has no work tree", "name a checkout with --repo DIR", usage=True)
    if found := _holder(git.git_dir):
        files.unlink(git.work_tree, (".ralph/loop",))
        _ask(run_files.folder(repo, {}), git.git_dir, word)
        return f"{found} was asked to {word}: {SAID[word]}.", True
    cleared = archive.clear_up(git.work_tree, git.git_dir, forget=word == "cancel")
    removed = f"; cleaned up after an earlier run: {', '.join(cleared)}" if cleared else ""
    return f"Nothing runs here{removed}.", False


def _holder(git_dir: Path) -> Holder | None:
    """The run here, or one about to start: a person who starts a run and cancels it is not told that there is none."""
    from ralph_mission.adapters.storage.loop import lock

    deadline = time.monotonic() + STARTING
    while (found := lock.holder(git_dir)) is None and time.monotonic() < deadline:
        time.sleep(CANCEL_PAUSE)
    return found


def _ask(home: Path, git_dir: Path, word: StopSignal) -> None:
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
    from datetime import UTC, datetime, timedelta

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
        _attend(repo, config, once)
    else:
        click.echo(_ask_question(repo, config, question))


def _attend(repo: Path, config: Path | None, once: bool) -> None:
    from ralph_mission.app import chat

    with chat.attendant(repo, config, WAIT * (not once), lambda line: _say(line, repo)) as attendant:
        if once:
            if not attendant.look():
                raise UserError(attendant.complaint, "fix that, then run again")
            return
        _say("listening", repo)
        attendant.attend(time.sleep)


def _ask_question(repo: Path, config: Path | None, question: str) -> str:
    """The answer, or the fallback without one: waiting for a person never blocks a loop forever."""
    from ralph_mission.adapters.storage.loop import run_files
    from ralph_mission.adapters.storage.loop.inbox import Questions
    from ralph_mission.app.chat import patience

    folder = run_files.folder(named_repo(), os.environ)
    run_files.prepare(folder)
    questions, seconds = Questions(folder), patience(_settings(folder.parent, config))[0]
    if not questions.heard:
        return UNHEARD
    pending, until = questions.ask(question), datetime.now(UTC) + timedelta(seconds=seconds)
    while datetime.now(UTC) < until:
        known = {one.id: one.answer for one in questions.all()}
        if (answer := known.get(pending.id)) is not None:
            return answer
        time.sleep(CHAT_PAUSE)
    return UNANSWERED.format(seconds)


def _settings(root: Path, config: Path | None) -> Config:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.config.reading import read

    return read(Git.open(root), config)


def _say(line: str, repo: Path) -> None:
    from ralph_mission.safety.text import sanitise  # what is wrong may quote anything

    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"{stamp} {sanitise(type_commands(' '.join(line.split()), repo), 'log')}", err=True)
