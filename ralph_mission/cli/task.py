"""`ralph task` for click: the tasks of a loop's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ralph_mission.cli import chores
from ralph_mission.cli.options import json_option

Function = Callable[..., Any]


def common(command: Function) -> Function:
    """`--repo` and `--json`, as every command of a loop's files has them."""
    where = click.option(
        "--repo", metavar="DIR", help="The checkout; else the running loop's, else the one around here."
    )
    return where(json_option(command))


@click.group()
def task() -> None:
    """The tasks of a loop: pending → ready → active → done or failed."""


@task.command()
@click.argument("title")
@click.option("--needs", multiple=True, metavar="ID", help="A task that must be done before; may be repeated.")
@click.option("--priority", type=click.IntRange(1, 5), default=3, show_default=True, help="1 goes first.")
@click.option("--description", default="", metavar="TEXT")
@click.option("--id", default="", metavar="ID", help="Its name, if not one of ours.")
@common
def add(repo: str | None, as_json: bool, **asked: Any) -> int:
    """Put a task on the list."""
    return chores.do(chores.task_add, repo, as_json, **asked)


@task.command("list")
@click.option("--status", type=click.Choice(chores.STATUSES), default=None, help="Only these.")
@common
def list_(repo: str | None, as_json: bool, status: str | None) -> int:
    """Show the tasks, and what is wrong with the list."""
    return chores.do(chores.task_list, repo, as_json, status=status or "")


@task.command()
@common
def ready(repo: str | None, as_json: bool) -> int:
    """Show what can be claimed, first things first."""
    return chores.do(chores.task_ready, repo, as_json)


@task.command()
@click.argument("id", required=False, default="")
@click.option("--owner", default="", metavar="TEXT", help="Who works on it: host:boot-id:pid, or $RALPH_OWNER.")
@common
def claim(repo: str | None, as_json: bool, id: str, owner: str) -> int:
    """Take a task, the first that is ready unless you name one. Nobody else gets it."""
    return chores.do(chores.task_claim, repo, as_json, id=id, owner=owner)


@task.command()
@click.argument("id")
@common
def done(repo: str | None, as_json: bool, id: str) -> int:
    """Mark a task done; what only waited for it becomes ready."""
    return chores.do(chores.task_done, repo, as_json, id=id)


@task.command()
@click.argument("id")
@click.option("--why", default="", metavar="TEXT", help="What went wrong.")
@common
def fail(repo: str | None, as_json: bool, id: str, why: str) -> int:
    """Mark a task failed; what needs it stays pending."""
    return chores.do(chores.task_fail, repo, as_json, id=id, why=why)


@task.command()
@click.argument("id")
@common
def show(repo: str | None, as_json: bool, id: str) -> int:
    """Show one task."""
    return chores.do(chores.task_show, repo, as_json, id=id)
