"""`ralph telegram`: a chat beside a running loop, and the way in which its agents ask a person."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.options import at_repository, named_repo
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.config.settings import Config

WAIT = 5  # seconds that an empty answer of Telegram's may take
LOOK = 0.5  # seconds between two looks for an answer
UNANSWERED = "Nobody answered within {} s. Go on, and choose what is easiest to take back."
UNHEARD = "Nobody listens (no `ralph telegram` runs here). Go on, and choose what is easiest to take back."


@click.command()
@at_repository
@click.option("--once", is_flag=True, help="Read what is waiting now, then end.")
@click.option("--ask", "question", metavar="TEXT", help="For agents: ask the person, and wait for the answer.")
def telegram(repo: Path, config: Path | None, once: bool, question: str | None) -> None:
    """Hear orders of listed people while a loop runs, and tell them how it fares. Ctrl-C ends it (exit code 130)."""
    if question is None:
        _attend(repo, config, once)
    else:
        click.echo(_ask_question(repo, config, question))


def _attend(repo: Path, config: Path | None, once: bool) -> None:
    from ralph_mission.app import chat

    with chat.attendant(repo, config, WAIT * (not once), lambda line: _say(line, repo)) as made:
        if once:
            if not made.look():
                raise UserError(made.complaint, "fix that, then run again")
            return
        _say("listening", repo)
        made.attend(time.sleep)


def _ask_question(repo: Path, config: Path | None, question: str) -> str:
    """The answer, or what to do without one: waiting for a person never holds a loop up for good."""
    from ralph_mission.adapters.storage.loop import run_files
    from ralph_mission.adapters.storage.loop.inbox import Questions
    from ralph_mission.app.chat import patience

    folder = run_files.folder(named_repo(), os.environ)
    run_files.prepare(folder)
    questions, seconds = Questions(folder), patience(_settings(folder.parent, config))[0]
    if not questions.heard:
        return UNHEARD
    asked, until = questions.ask(question), datetime.now(UTC) + timedelta(seconds=seconds)
    while datetime.now(UTC) < until:
        known = {one.id: one.answer for one in questions.all()}
        if (answer := known.get(asked.id)) is not None:
            return answer
        time.sleep(LOOK)
    return UNANSWERED.format(seconds)


def _settings(root: Path, config: Path | None) -> Config:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.config.reading import read

    return read(Git.open(root), config)


def _say(line: str, repo: Path) -> None:
    from ralph_mission.safety.text import sanitise  # what is wrong may quote anything

    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"{stamp} {sanitise(type_commands(' '.join(line.split()), repo), 'log')}", err=True)
