"""`ralph schema`: the published contracts as JSON Schema."""

from __future__ import annotations

import click

from ralph_mission.cli.options import print_json


@click.command()
@click.argument("name", type=click.Choice(["config", "cycle-report"]))
def schema(name: str) -> None:
    """Print the JSON Schema of ralph.yml (config) or of what `ralph cycle --json` prints (cycle-report)."""
    if name == "config":
        from ralph_mission import config

        print_json(config.schema())
    else:
        from ralph_mission.report import document

        print_json(document.schema())
