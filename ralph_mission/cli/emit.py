"""`ralph emit` for click; `plain` reads the usual calls without it."""

from __future__ import annotations

import click

from ralph_mission.cli import chores
from ralph_mission.cli.task import common


@click.command()
@click.argument("topic")
@click.argument("payload", required=False, default="")
@click.option("--json-payload", is_flag=True, help="The payload is JSON: refuse it when it is not.")
@common
def emit(repo: str | None, as_json: bool, topic: str, payload: str, json_payload: bool) -> int:
    """Say an event; the loop hears it when this session is over."""
    return chores.do(chores.emit_event, repo, as_json, topic=topic, payload=payload, json_payload=json_payload)
