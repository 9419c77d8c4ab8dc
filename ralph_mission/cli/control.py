"""`ralph pause` and `ralph resume`: the kill switch that memory carries."""

from __future__ import annotations

from pathlib import Path

import click

from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.typed import type_commands
from ralph_mission.cli.wiring import household


@click.command()
@at_repository
@json_option
def pause(repo: Path, config: Path | None, as_json: bool) -> None:
    """Stop before the next effect, also of a cycle that runs right now."""
    from ralph_mission.flows import control

    house = household(repo, config)
    control.pause(house.store)
    _tell(True, type_commands("paused: nothing is done until `ralph resume`", repo), as_json)


@click.command()
@at_repository
@json_option
def resume(repo: Path, config: Path | None, as_json: bool) -> None:
    """Go on after `ralph pause`."""
    from ralph_mission.flows import control

    house = household(repo, config)
    control.resume(house.store)
    _tell(False, type_commands("resumed: the next cycle runs when it is due; now: ralph cycle --force", repo), as_json)


def _tell(paused: bool, line: str, as_json: bool) -> None:
    if as_json:
        print_json({"paused": paused})
    else:
        click.echo(line)
