"""`ralph pause` and `ralph resume`: the kill switch that memory carries.

`ralph status` and `ralph report`: what memory says, at a glance and in full. Both only read.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.wiring import household, recollection, refuse_if_elsewhere
from ralph_mission.errors import UserError


@click.command()
@at_repository
@json_option
def pause(repo: Path, config: Path | None, as_json: bool) -> None:
    """Stop before the next effect, also of a cycle that runs right now."""
    from ralph_mission.mission.operations import control

    house = household(repo, config)
    control.pause(house.store)
    _tell(True, type_commands("paused: nothing is done until `ralph resume`", repo), as_json)


@click.command()
@at_repository
@json_option
def resume(repo: Path, config: Path | None, as_json: bool) -> None:
    """Go on after `ralph pause`."""
    from ralph_mission.mission.operations import control

    house = household(repo, config)
    control.resume(house.store)
    _tell(False, type_commands("resumed: the next cycle runs when it is due; now: ralph cycle --force", repo), as_json)


def _tell(paused: bool, line: str, as_json: bool) -> None:
    if as_json:
        print_json({"paused": paused})
    else:
        click.echo(line)


@click.command()
@at_repository
@json_option
def status(repo: Path, config: Path | None, as_json: bool) -> None:
    """Show missions, free slots, spend, drift and who waits for whom; from memory alone."""
    from ralph_mission.adapters.report.status import facts, lines
    from ralph_mission.mission.report import waiting

    house = household(repo, config)
    recalled = house.ports.store.recall()
    if recalled is None:
        refuse_if_elsewhere(house)
    asks = waiting(recalled.state.missions, house.ports.forge.how) if recalled else ()
    known = facts(recalled, house.charter.limits, house.ports.clock.now(), asks, house.charter.rhythm)
    if as_json:
        print_json(known)
    else:
        click.echo("\n".join(lines(known, partial(type_commands, repo=repo))))


@click.command()
@at_repository
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Instead of stdout.")
def report(repo: Path, config: Path | None, output: Path | None) -> None:
    """Write the dashboard: everything known about this repository, as one markdown page."""
    house = household(repo, config)
    recalled = recollection(house)
    page = house.ports.dashboard(recalled.memory, recalled.state)
    if output is None:
        click.echo(page, nl=False)
        return
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output} cannot be written: {error.strerror}", "name another file with --output") from None
    click.echo(f"wrote {output}", err=True)
