"""`ralph cycle`: one cycle, live on stderr, summed up on stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.moment import moment
from ralph_mission.cli.options import at_repository, json_option, now_option, print_json
from ralph_mission.cli.wiring import household, run_cycle

if TYPE_CHECKING:
    from ralph_mission.mission.account import CycleReport, Telling


@click.command()
@at_repository
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where issues live.")
@click.option("--staged", is_flag=True, help="Change nothing; say what would happen.")
@click.option("--force", is_flag=True, help="Run even when no cycle is due.")
@now_option
@json_option
def cycle(
    repo: Path, config: Path | None, forge: str, staged: bool, force: bool, now: str | None, as_json: bool
) -> int:
    """Run one cycle: recall, observe, think, judge, act, reflect.

    Exit code 0 when it ran or had nothing to do, 1 when it failed.
    """
    from ralph_mission.report.voice import speaking

    with speaking(sys.stderr) as voice:
        house = household(repo, config, forge, staged=staged, now=moment(now), voice=voice)
        for warning in house.config.warnings:
            voice.note(f"note: {warning}")
        report, telling = run_cycle(house, staged=staged, force=force)
    show(report, telling, as_json)
    return 1 if report.outcome == "failed" else 0


def show(report: CycleReport, telling: Telling, as_json: bool) -> None:
    """The report for machines, or the summary for people."""
    if as_json:
        from ralph_mission.report.document import to_document

        print_json(to_document(report))
    else:
        from ralph_mission.report.summary import summary

        click.echo(summary(report, telling, heading=lambda text: click.style(text, bold=True)))
