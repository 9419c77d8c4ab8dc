"""`ralph cycle`: one cycle, live on stderr, summed up on stdout."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.moments import moment
from ralph_mission.cli.options import at_repository, json_option, now_option, print_json
from ralph_mission.cli.wiring import household, run_cycle

if TYPE_CHECKING:
    from ralph_mission.adapters.report.voice import RequestCounts
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.cycle import CycleReport, CycleSummary


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
    from ralph_mission.adapters.report.step_summary import tell_runner
    from ralph_mission.adapters.report.voice import speaking
    from ralph_mission.app.secrets import environment_secrets

    with speaking(sys.stderr, environment_secrets()) as voice:
        house = household(repo, config, forge, staged=staged, now=moment(now), voice=voice)
        for warning in house.config.warnings:
            voice.note(f"note: {warning}")
        report, telling = run_cycle(house, staged=staged, force=force)
    asked = _request_counts(house)
    tell_runner(report, telling, os.environ, asked)
    show(report, telling, as_json, house.git.work_tree, repo, asked)
    return 1 if report.outcome == "failed" else 0


def _request_counts(house: App) -> RequestCounts | None:
    from ralph_mission.adapters.report.voice import RequestCounts

    counts = house.github.requests if house.github else None
    return RequestCounts(counts.total, counts.not_modified) if counts else None


def show(
    report: CycleReport,
    telling: CycleSummary,
    as_json: bool,
    work_tree: Path | None,
    repo: Path,
    asked: RequestCounts | None = None,
) -> None:
    """The report for machines, or the summary for people."""
    if as_json:
        from ralph_mission.adapters.report.summary import to_document

        print_json(to_document(report))
    else:
        from ralph_mission.adapters.report.summary import Standpoint, summary

        at = Standpoint(partial(type_commands, repo=repo), partial(_from_here, work_tree=work_tree))
        click.echo(summary(report, telling, lambda text: click.style(text, bold=True), at, asked))


def _from_here(place: str, work_tree: Path | None) -> str:
    """A place in the work tree as it is called from where we stand; anything else unchanged."""
    inside = place and work_tree and not Path(place).is_absolute() and "://" not in place
    return os.path.relpath(work_tree / place) if inside and work_tree else place
