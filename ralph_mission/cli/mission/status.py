"""`ralph pause` and `ralph resume`: the kill switch that memory carries. `ralph status`: what memory says."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.wiring import household, recollection, refuse_if_elsewhere
from ralph_mission.errors import UserError

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@at_repository
@json_option
def pause(repo: Path, config: Path | None, as_json: bool) -> None:
    """Stop before the next effect, also of a cycle that runs right now; `ralph resume` goes on."""
    from ralph_mission.mission.operations import control

    control.pause(household(repo, config).store)
    _tell_paused(True, type_commands("paused: nothing is done until `ralph resume`", repo), as_json)


@click.command()
@at_repository
@json_option
def resume(repo: Path, config: Path | None, as_json: bool) -> None:
    """Go on after `ralph pause`."""
    from ralph_mission.mission.operations import control

    control.resume(household(repo, config).store)
    line = "resumed: the next cycle runs when it is due; now: ralph cycle --force"
    _tell_paused(False, type_commands(line, repo), as_json)


def _tell_paused(paused: bool, line: str, as_json: bool) -> None:
    if as_json:
        print_json({"paused": paused})
    else:
        click.echo(line)


@click.command()
@click.option("--page", is_flag=True, help="The dashboard instead: everything known, as one markdown page.")
@click.option("--output", type=FILE, metavar="FILE", help="Write the page there.")
@at_repository
@json_option
def status(page: bool, output: Path | None, repo: Path, config: Path | None, as_json: bool) -> None:
    """Show missions, free slots, spending and who waits for whom; from memory alone."""
    if page or output:
        if as_json:
            raise click.UsageError("the page is markdown: leave --page or --json out")
        _write_page(repo, config, output)
        return
    from ralph_mission.adapters.report.status import facts, lines
    from ralph_mission.mission.lifecycle.waiting import list_waiting

    house = household(repo, config)
    recalled = house.store.recall()
    if recalled is None:
        refuse_if_elsewhere(house)
    asks = list_waiting(recalled.state.missions, house.forge.how) if recalled else ()
    known = facts(recalled, house.charter.limits, house.clock.now(), asks, house.charter.rhythm)
    if as_json:
        print_json(known)
    else:
        click.echo("\n".join(lines(known, partial(type_commands, repo=repo))))


def _write_page(repo: Path, config: Path | None, output: Path | None) -> None:
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
