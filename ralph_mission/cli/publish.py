"""`ralph publish`: the texts of one issue, now, if somebody who may said yes to them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.options import at_repository, json_option
from ralph_mission.cli.outcome import tell_outcome
from ralph_mission.cli.typed import spell, type_commands

if TYPE_CHECKING:
    from ralph_mission.flows.publish import PublishReport


@click.command()
@click.option("--issue", "number", type=click.IntRange(min=1), metavar="N", required=True, help="Which issue.")
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where it lives.")
@at_repository
@json_option
def publish(number: int, forge: str, config: Path | None, as_json: bool, repo: Path) -> int:
    """Publish exactly what issue N shows, if it was approved: what the next cycle would do of it, at once.

    Exit code 0 also when there is nothing to do or a rule lets it wait; 1 when a network or a rule refused it, or
    nobody can tell.
    """
    from ralph_mission.bootstrap.known import environment_secrets
    from ralph_mission.bootstrap.loop import PausingClock
    from ralph_mission.bootstrap.publish import publisher
    from ralph_mission.bootstrap.wanted import ServiceOptions
    from ralph_mission.flows import publish as flow
    from ralph_mission.report.agent_summary import publish_page
    from ralph_mission.report.loop_voice import telling

    with telling(sys.stderr, environment_secrets(), PausingClock().now) as voice:
        made = publisher(ServiceOptions(repo, config, forge), voice, partial(spell, repo=repo))
        report = flow.publish_once(made, number)
        for line in flow.publish_lines(report):
            voice.note(type_commands(line, repo))
    return tell_outcome(_publish_document(report), publish_page, as_json)


def _publish_document(report: PublishReport) -> dict[str, object]:
    return {
        "outcome": report.outcome,
        "code": report.code,
        "issue": report.issue,
        "reason": report.reason,
        "posts": [
            {"network": network, "status": receipt.status, "url": receipt.url, "detail": receipt.detail}
            for network, receipt in report.receipts
        ],
    }
