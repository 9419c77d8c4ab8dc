"""`ralph due` for click: its help, its completion and its mistakes. `gate` answers the question."""

from __future__ import annotations

import click

from ralph_mission.cli.gate import LONGEST_WAIT, Plain, answer
from ralph_mission.cli.options import json_option, now_option


@click.command()
@click.option("--repo", default=".", metavar="DIR", help="The repository.")
@click.option("--config", metavar="FILE", help="Settings to use instead of ralph.yml.")
@now_option
@click.option(
    "--wait",
    type=click.IntRange(0, LONGEST_WAIT),
    default=0,
    metavar="SECONDS",
    help=f"When a cycle is due within that many seconds (at most {LONGEST_WAIT}), wait until it is.",
)
@json_option
def due(repo: str, config: str | None, now: str | None, wait: int, as_json: bool) -> int:
    """Say whether a cycle is due: exit code 0 when it is, 10 when not."""
    return answer(Plain(repo, config, now, as_json, wait))
