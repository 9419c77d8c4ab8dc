"""`ralph replay`: decide a recorded cycle again, from what the world answered then."""

from __future__ import annotations

from pathlib import Path

import click

from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.wiring import decide_again, household


@click.command()
@click.argument("cycle_id")
@at_repository
@json_option
def replay(cycle_id: str, repo: Path, config: Path | None, as_json: bool) -> int:
    """Decide the recorded cycle CYCLE_ID again; exit code 1 when the decisions differ."""
    differences = decide_again(household(repo, config, staged=True), cycle_id)
    if as_json:
        print_json({"cycle_id": cycle_id, "same": not differences, "differences": differences})
    else:
        click.echo("\n".join(differences) or f"{cycle_id}: the same decisions")
    return 1 if differences else 0
