"""`ralph fleet`: many repositories, looked after from one control repository."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ralph_mission.cli.options import SharedGroup, at_repository, json_option, now_option, print_json, repo_option
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=SharedGroup)
def fleet() -> None:
    """Look after many repositories from one control repository."""


@fleet.command()
@now_option
@click.option("--page", type=FILE, metavar="FILE", help="Write a page of all of them, in HTML.")
@at_repository
@json_option
def due(now: str | None, page: Path | None, repo: Path, config: Path | None, as_json: bool) -> int:
    """Show which repositories are due, the most urgent first; changes nothing outside a workflow."""
    from ralph_mission.cli.fleet import FleetQuestion, answer_fleet

    return answer_fleet(FleetQuestion(str(repo), str(config) if config else None, now, as_json, page))


@fleet.command()
@repo_option
@click.option("--action", metavar="OWNER/NAME@COMMIT", help="The action that the workflows use.")
@click.option("--runner", metavar="LABELS", help="Labels of the runner for cycles; default: self-hosted.")
@click.option("--force", is_flag=True, help="Overwrite workflows that differ.")
@json_option
def init(repo: Path, action: str | None, runner: str | None, force: bool, as_json: bool) -> None:
    """Write fleet.yml and the workflows into this control repository."""
    from ralph_mission.cli.setup.fleet import STEPS, write_fleet
    from ralph_mission.cli.setup.init import LINES

    planned = write_fleet(repo, action, runner, force)
    if as_json:
        print_json({"files": [{"path": str(file.place), "state": state} for file, state in planned], "steps": STEPS})
        return
    for file, state in planned:
        click.echo(LINES[state].format(file.place))
    for step in STEPS:
        click.echo(f"to do: {step}")
    click.echo(type_commands("next: ralph fleet doctor", repo))


@fleet.command()
@at_repository
@json_option
def doctor(repo: Path, config: Path | None, as_json: bool) -> int:
    """Check what a fleet needs. Exit code 1 if something is wrong."""
    from ralph_mission.cli.doctor.checks import report_checks
    from ralph_mission.cli.setup.fleet import check_fleet

    checks = check_fleet(repo, str(config) if config else None, datetime.now(UTC))
    return report_checks(tuple(checks), "ralph fleet doctor", repo, as_json)


@fleet.command()
@at_repository
@json_option
def run(repo: Path, config: Path | None, as_json: bool) -> None:
    """Run each due cycle in the folders of fleet.yml, and write a page.

    For one machine without GitHub. The page is .ralph/fleet.html beside fleet.yml.
    """
    from ralph_mission.adapters.report.fleet import headline, to_document
    from ralph_mission.adapters.report.progress import safe
    from ralph_mission.app.fleet import page_of, run_fleet
    from ralph_mission.cli.fleet import read_fleet, tell_left_out

    named, base = read_fleet(repo, str(config) if config else None), config.parent if config else repo
    if not named.folders:
        advice = "name some, such as ./site; what is on GitHub is looked after there"
        raise UserError("fleet.yml names no folder", advice, usage=True)
    for line in tell_left_out(named, here=True):
        click.echo(safe(line), err=True)
    overview = run_fleet(named, base, lambda line: click.echo(safe(line), err=as_json))
    if as_json:
        print_json(to_document(overview))
    else:
        click.echo(f"{headline(overview)}\nwrote {page_of(base)}")
