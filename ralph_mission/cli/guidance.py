"""`ralph guidance` for click; `plain` reads the usual calls without it."""

from __future__ import annotations

import click

from ralph_mission.cli import chores
from ralph_mission.cli.task import common


@click.command()
@click.argument("text", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Show what was said, and whether a session was given it.")
@common
def guidance(repo: str | None, as_json: bool, text: tuple[str, ...], listed: bool) -> int:
    """Tell the next session something, once."""
    if listed == bool(text):
        raise click.UsageError("give either words for the next session or --list")
    if listed:
        return chores.do(chores.guidance_list, repo, as_json)
    return chores.do(chores.add_guidance, repo, as_json, text=" ".join(text))
