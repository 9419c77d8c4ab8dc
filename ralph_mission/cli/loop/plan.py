"""`ralph plan`: a planner's sessions write the stories of a task, and they are checked before anything is built."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.loop import run
from ralph_mission.cli.loop.options import allow_dirty_option, limit_options, model_option
from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.loop_voice import PlainRunProgress
    from ralph_mission.app.run import RunSetup
    from ralph_mission.app.run_options import RunOptions
    from ralph_mission.loop.model.order import RunResult


@click.command()
@click.argument("task")
@click.option("--agent", default="", metavar="NAME", help="Who plans.")
@click.option("--command", default="", metavar="CMD", help="A program that plans: prompt in, last message out.")
@model_option
@limit_options
@click.option("--continue", "go_on", is_flag=True, help="Go on where a planning of the same task was left.")
@allow_dirty_option
@click.option("--force", is_flag=True, help="Let the planner replace the stories that are there.")
@click.option("--consensus", is_flag=True, help="Have planner, critic and architect agree on a plan first.")
@at_repository
@json_option
def plan(as_json: bool, force: bool, consensus: bool, **options: Any) -> int:
    """Have prd.json written for TASK: user stories that each fit into one session.

    What else it ends with, and the exit codes of that, are those of `ralph run`.
    """
    from ralph_mission.adapters.report.loop_voice import telling
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.run_options import RunOptions
    from ralph_mission.app.secrets import environment_secrets

    asked = run.mark_restarted(RunOptions(**options))
    agreed_on = _writing(asked, force)
    with telling(sys.stderr, environment_secrets(), PausingClock().now) as voice:
        made, account = _plan(asked, voice, force, consensus and not agreed_on)
    if account.ending.reason == "restart":
        run.again(made)
    if account.ending.code:
        return _not_planned(account, made, as_json)
    _tell(account, made.root, asked.repo, as_json)
    return 0


def _writing(asked: RunOptions, force: bool) -> bool:
    """Whether stories are being written already. Raises UserError when they are there."""
    from ralph_mission.adapters.storage.loop.stories import Stories
    from ralph_mission.app.ground import open_checkout
    from ralph_mission.app.run_options import left_planning

    root = open_checkout(asked.repo)[1]
    found, writing = Stories(root).find(), left_planning(asked, root)
    if found and not (force or writing):
        raise UserError(
            f"{found} is there already", "run it with ralph run --prd, or plan again with --force", usage=True
        )
    return writing


def _plan(asked: RunOptions, voice: PlainRunProgress, force: bool, consensus: bool) -> tuple[RunSetup, RunResult]:
    """The stories of the task; by consensus those of a plan that was agreed on. All of it is one run."""
    from ralph_mission.app import teams

    if not consensus:
        return teams.write_stories(asked, voice, replacing=force)
    made, first = teams.agree_on_plan(asked, voice)
    if first.ending.code:
        return made, first
    made.unaltered()
    made, account = teams.write_stories(replace(asked, go_on=True), voice, replacing=force)
    return made, replace(account, outputs=(*first.outputs, *account.outputs))


def _not_planned(account: RunResult, made: RunSetup, as_json: bool) -> int:
    from ralph_mission.adapters.report.loop_voice import account_document

    if as_json:
        print_json(account_document(account, None, made.desk.complaints, made.isolation, made.ports.secrets))
    return account.ending.code


def _tell(account: RunResult, root: Path, repo: Path, as_json: bool) -> None:
    from ralph_mission.adapters.storage.loop.stories import Stories

    prd = Stories(root).read()
    if prd is None:
        raise UserError("the stories are gone again", "plan again")
    if as_json:
        stories = [{"id": story.id, "title": story.title, "priority": story.priority} for story in prd.stories]
        print_json({"branch": prd.branch, "stories": stories, "sessions": account.state.iteration})
    else:
        click.echo("\n".join(f"{story.id}  {story.title}" for story in prd.stories))
        click.echo(type_commands("Read prd.json, change what you disagree with, then: ralph run --prd", repo))
