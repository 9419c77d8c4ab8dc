"""`ralph plan`: a planner's sessions write the stories of a task, and they are checked before anything is built."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.typed import typed
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.bootstrap.asked import Asked
    from ralph_mission.loop.model import HatOutput, Prd
    from ralph_mission.loop.order import Account
    from ralph_mission.report.loop_voice import PlainLoopVoice


@click.command()
@click.argument("task")
@click.option("--agent", default="", metavar="NAME", help="Who plans.")
@click.option("--command", default="", metavar="CMD", help="A program that plans: prompt in, last message out.")
@click.option("--allow-dirty", is_flag=True, help="Work beside uncommitted changes.")
@click.option("--force", is_flag=True, help="Let the planner replace the stories that are there.")
@click.option("--consensus", is_flag=True, help="Have planner, critic and architect agree on a plan first.")
@at_repository
@json_option
def plan(as_json: bool, force: bool, consensus: bool, **options: Any) -> int:
    """Have prd.json written for TASK: user stories that each fit into one session.

    With --consensus a plan that is not agreed on ends it with the codes of `ralph run`, and no story is written.
    """
    from ralph_mission.bootstrap.asked import Asked
    from ralph_mission.bootstrap.loop import SystemClock
    from ralph_mission.report.loop_voice import telling

    asked = Asked(**options)
    if not force:
        _refuse_to_replace(asked.repo)
    with telling(sys.stderr, SystemClock().now) as voice:
        before, task = _agreed(asked, voice) if consensus else (None, asked.task)
        if before and before.ending.code:
            return _not_agreed(before, as_json)
        prd, outputs = planned(replace(asked, task=task), voice)
    if as_json:
        stories = [{"id": story.id, "title": story.title, "priority": story.priority} for story in prd.stories]
        sessions = len(outputs) + len(before.outputs if before else ())
        print_json({"branch": prd.branch, "stories": stories, "sessions": sessions})
    else:
        click.echo("\n".join(f"{story.id}  {story.title}" for story in prd.stories))
        click.echo(typed("Read prd.json, mend what you mean differently, then: ralph run --prd", asked.repo))
    return 0


def _agreed(asked: Asked, voice: PlainLoopVoice) -> tuple[Account, str]:
    from ralph_mission.bootstrap.teams import agreed

    return agreed(asked, voice)


def _not_agreed(account: Account, as_json: bool) -> int:
    from ralph_mission.report.loop_voice import account_document

    if as_json:
        print_json(account_document(account, None))
    return account.ending.code


def planned(asked: Asked, voice: PlainLoopVoice) -> tuple[Prd, tuple[HatOutput, ...]]:
    """The stories of a task, written and checked. Raises Trouble when no planner managed."""
    from ralph_mission.bootstrap.loop import bench
    from ralph_mission.loop import planning
    from ralph_mission.stores.loop.stories import Stories

    made = bench(replace(asked, prd=False, preset="", pattern="", go_on=False, worktree=False), voice)
    order = planning.order(f"Write the user stories of this task, and build nothing of it:\n\n{asked.task}", made.order)

    def read() -> tuple[Prd | None, str]:
        stories = Stories(made.root)
        return stories.read(), stories.complaint

    return planning.plan(order, made.ports, read)


def _refuse_to_replace(repo: Path) -> None:
    from ralph_mission.bootstrap.ground import open_checkout
    from ralph_mission.stores.loop.stories import Stories

    found = Stories(open_checkout(repo)[1]).find()
    if found:
        raise Trouble(f"{found} is there already", "run it with ralph run --prd, or plan anew with --force", usage=True)
