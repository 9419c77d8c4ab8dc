"""`ralph run`: a loop of fresh sessions in this checkout, live on stderr, summed up at its end."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.loop_options import SECONDS
from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.bootstrap.asked import Asked
    from ralph_mission.loop.order import Account
    from ralph_mission.report.loop_voice import PlainLoopVoice

FILE = click.Path(path_type=Path, dir_okay=False)
RESTART = "RALPH_RESTART"
"""`exit` in the environment: whoever started us starts us again, so a restart ends with its code 3.
`done`: we are the new process, and find what the last session left uncommitted."""


@click.command()
@click.argument("task", required=False, default="")
@click.option("-P", "--prompt-file", type=FILE, metavar="FILE", help="The objective.  [default: PROMPT.md]")
@click.option("--prd", is_flag=True, help="Work through the stories of prd.json, one per session.")
@click.option("--prd-file", type=FILE, metavar="FILE", help="The same with the stories of this file.")
@click.option("--preset", default="", metavar="NAME", help="Limits and habits: loop, fresh, prd, issue.")
@click.option("--pattern", default="", metavar="NAME", help="plan-build-review, … or ralplan, ultrawork, team.")
@click.option("--agent", default="", metavar="NAME", help="Who plays the sessions.")
@click.option("--command", default="", metavar="CMD", help="A program that plays them: prompt in, last message out.")
@click.option("--max-iterations", "iterations", type=click.IntRange(min=1), metavar="N", help="Sessions at most.")
@click.option("--max-runtime", "runtime", type=SECONDS, metavar="S", help="Seconds at most, or 15m, 4h.")
@click.option("--max-cost", "usd", type=click.FloatRange(min=0), metavar="USD", help="Spent at most.")
@click.option("--continue", "go_on", is_flag=True, help="Go on where a run of the same objective was left.")
@click.option("--worktree", is_flag=True, help="Work in a linked work tree of its own, in .ralph/worktrees.")
@click.option("--allow-dirty", is_flag=True, help="Work beside uncommitted changes.")
@click.option("--verify", multiple=True, metavar="CMD", help="A check that must pass, instead of those in ralph.yml.")
@click.option("--require-tests", is_flag=True, help="No story passes that no check has looked at.")
@click.option("--single-story-per-run", "single_story", is_flag=True, help="End at the first story that passes.")
@click.option("--archive-previous/--no-archive-previous", default=True, help="Put the stories of another branch away.")
@at_repository
@json_option
def run(as_json: bool, **options: Any) -> int:
    """Work on TASK in fresh sessions until files prove that it is done.

    Exit code 0 when complete, 2 at a limit, 1 when it failed or was stopped, 130 when interrupted.
    """
    from ralph_mission.bootstrap.asked import Asked
    from ralph_mission.bootstrap.loop import SystemClock
    from ralph_mission.report.loop_voice import telling

    asked = Asked(**options)
    if os.environ.get(RESTART) == "done":
        asked = replace(asked, allow_dirty=True)
    with telling(sys.stderr, SystemClock().now) as voice:
        account, stories = played(_with_stories(asked, voice), voice)
    if account.ending.reason == "restart" and os.environ.get(RESTART) != "exit":
        _replace_ourselves()
    if as_json:
        from ralph_mission.report.loop_voice import account_document

        print_json(account_document(account, stories))
    return account.ending.code


def played(asked: Asked, voice: PlainLoopVoice) -> tuple[Account, tuple[int, int] | None]:
    """One run, and how many of how many stories pass after it. Raises Trouble."""
    from ralph_mission.bootstrap import teams
    from ralph_mission.bootstrap.loop import bench
    from ralph_mission.loop.run import run as run_loop

    story = teams.named(asked.pattern)
    made = bench(replace(asked, pattern="") if story else asked, voice)
    for note in made.notes:
        voice.note(f"note: {note}")
    account = teams.play(made, story) if story else run_loop(made.order, made.ports)
    for complaint in made.desk.complaints:
        voice.note(f"note: {complaint}")
    for line in made.after:
        voice.note(line)
    return account, made.desk.counted()


def _with_stories(asked: Asked, voice: PlainLoopVoice) -> Asked:
    """The same; a task without stories is planned first."""
    from ralph_mission.bootstrap.asked import stories_wanted

    if not stories_wanted(asked):
        return asked
    from ralph_mission.cli.plan import planned

    voice.note("no prd.json yet: a planner writes one first")
    planned(asked, voice)
    return asked


def _replace_ourselves() -> None:
    """Become a new process of the same command line; when that cannot be, the exit code 3 says it."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, RESTART: "done"})
    except OSError as error:
        raise _cannot_restart(error) from None


def _cannot_restart(error: OSError) -> Trouble:
    trouble = Trouble(f"cannot restart: {(error.strerror or 'no reason given').lower()}", "run it again")
    trouble.exit_code = 3
    return trouble
