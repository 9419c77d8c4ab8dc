"""`ralph publish`: the texts of one issue, now, if somebody who may said yes to them."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.typed import spell, typed

if TYPE_CHECKING:
    from ralph_mission.flows.publish import Report


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
    from ralph_mission.bootstrap.known import known_secrets
    from ralph_mission.bootstrap.loop import SystemClock
    from ralph_mission.bootstrap.publish import Wanted, publisher
    from ralph_mission.flows import publish as flow
    from ralph_mission.report.agent_summary import publish_page
    from ralph_mission.report.loop_voice import telling
    from ralph_mission.report.outputs import tell_agent

    with telling(sys.stderr, known_secrets(), SystemClock().now) as voice:
        made = publisher(Wanted(repo, config, forge), voice, partial(spell, repo=repo))
        report = flow.once(made, number)
        for line in flow.lines(report):
            voice.note(typed(line, repo))
    told = _document(report)
    tell_agent(told, os.environ, publish_page)
    if as_json:
        print_json(told)
    return report.code


def _document(report: Report) -> dict[str, object]:
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
