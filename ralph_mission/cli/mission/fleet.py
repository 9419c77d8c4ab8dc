"""`ralph fleet`: many repositories, looked after from one control repository."""

from __future__ import annotations

from pathlib import Path

import click

from ralph_mission.cli.options import SharedGroup, at_repository, json_option, now_option


@click.group(cls=SharedGroup)
def fleet() -> None:
    """Look after many repositories from one control repository."""


@fleet.command()
@now_option
@at_repository
@json_option
def due(now: str | None, repo: Path, config: Path | None, as_json: bool) -> int:
    """Show which repositories of fleet.yml are due, the most urgent first; changes nothing outside a workflow."""
    from ralph_mission.cli.fleet import FleetQuestion, answer_fleet

    return answer_fleet(FleetQuestion(str(repo), str(config) if config else None, now, as_json))
