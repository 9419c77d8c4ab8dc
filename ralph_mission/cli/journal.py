"""`ralph journal`: what was done, cycle by cycle, and the effects whose fate only a person can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ralph_mission.cli.options import at_repository, config_option, json_option, print_json, repo_option
from ralph_mission.cli.wiring import household
from ralph_mission.safety.text import sanitise


@click.group(invoke_without_command=True)
@at_repository
@json_option
@click.pass_context
def journal(context: click.Context, repo: Path, config: Path | None, as_json: bool) -> None:
    """List every effect with its cycle, its state and what came of it."""
    context.obj = (repo, config)
    if context.invoked_subcommand is not None:
        return
    from ralph_mission.flows import control

    entries = control.journal(household(repo, config).store)
    if as_json:
        print_json(entries)
    else:
        click.echo("\n".join(_line(entry) for entry in entries) or "nothing was done yet")


@journal.command()
@click.argument("key")
@click.option("--sent/--not-sent", default=None, required=True, help="Whether it arrived.")
@click.option("--number", type=click.IntRange(0), default=0, help="The issue or remark it made, when it was sent.")
@repo_option
@config_option
@json_option
@click.pass_context
def resolve(
    context: click.Context, key: str, sent: bool, number: int, repo: Path, config: Path | None, as_json: bool
) -> None:
    """Say whether the effect KEY, whose fate is unknown, did happen. It is never sent again by itself."""
    from ralph_mission.flows import control

    above_repo, above_config = context.obj
    house = household(repo if repo != Path() else above_repo, config or above_config)
    control.resolve(house.store, key, sent, number)
    if as_json:
        print_json({"key": key, "sent": sent})
    else:
        click.echo(f"{key}: {'sent' if sent else 'not sent'}, settled")


def _line(entry: dict[str, Any]) -> str:
    known = ("cycle", "at", "key", "kind", "state", "url")
    return sanitise("  ".join(str(entry[name]) for name in known if entry.get(name)), "log")
