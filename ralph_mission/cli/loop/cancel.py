"""`ralph cancel`: end the loop that runs in this checkout, or clear up after one that died."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.options import json_option, print_json, repo_option
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.storage.loop.lock import Holder
    from ralph_mission.loop.model.state import StopSignal

STARTING = 2.0
"""Seconds in which a run that was just started takes the lock, then forgets what was asked of an earlier one."""
LOOK = 0.05  # seconds between two looks

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
    """End the loop that runs in this checkout. Nothing runs: clear up what a dead one left."""
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
    removed = f"; what a former run left is put away: {', '.join(cleared)}" if cleared else ""
    return f"Nothing runs here{removed}.", False


def _holder(git_dir: Path) -> Holder | None:
    """Who runs here, or begins to within moments: a person who starts a run and cancels it is not told that none is."""
    from ralph_mission.adapters.storage.loop import lock

    deadline = time.monotonic() + STARTING
    while (found := lock.holder(git_dir)) is None and time.monotonic() < deadline:
        time.sleep(LOOK)
    return found


def _ask(home: Path, git_dir: Path, word: StopSignal) -> None:
    """Leave the word, again while a run that begins takes it for one of an earlier run."""
    from ralph_mission.adapters.storage.loop import inbox, lock

    inbox.write(home, word)
    deadline = time.monotonic() + STARTING
    while _young(git_dir) and time.monotonic() < deadline:
        if not inbox.read(home) and lock.holder(git_dir):
            inbox.write(home, word)
        time.sleep(LOOK)


def _young(git_dir: Path) -> bool:
    """Whether the run that holds the lock has only just taken it."""
    from datetime import UTC, datetime, timedelta

    from ralph_mission.adapters.storage.loop import lock

    found = lock.holder(git_dir)
    recent = (datetime.now(UTC) - timedelta(seconds=1 + STARTING)).isoformat(timespec="seconds")
    return found is not None and (not found.since or found.since >= recent)
