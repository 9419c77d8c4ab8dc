"""`ralph backtest`: what Ralph would have opened in the past of a repository, and what became of it."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from ralph_mission.cli.mission.report import write_page
from ralph_mission.cli.options import at_repository, json_option, print_json

DAYS = {"d": 1, "w": 7, "y": 365}
LONGEST = 50 * 365  # days: beyond it the calendar comes to its end
PAGE = "backtest.html"


class PastSpan(click.ParamType[timedelta]):
    """`30d`, `2w` or `1y`."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The span; click tells the person when it is none."""
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d{1,6})([dwy])", str(value).strip())
        days = int(found[1]) * DAYS[found[2]] if found else 0
        if not 0 < days <= LONGEST:
            self.fail(f"{value!r} is not a span of time: write 30d, 2w or 1y", param, ctx)
        return timedelta(days=days)


class PastMoment(click.ParamType["datetime | timedelta"]):
    """A span before the last commit, or a day."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | timedelta:
        """The day at midnight UTC, or the span; click tells the person when it is neither."""
        if re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)):
            try:
                return datetime.fromisoformat(value).replace(tzinfo=UTC)
            except ValueError:
                self.fail(f"{value!r} is not a day", param, ctx)
        if isinstance(value, timedelta) or re.fullmatch(r"\d{1,6}[dwy]", str(value).strip()):
            return PastSpan().convert(value, param, ctx)
        self.fail(f"{value!r} is not a time: write 30d, 2w, 1y or a day such as 2026-01-31", param, ctx)


@click.command()
@click.option("--since", type=PastMoment(), default="1y", help="From when: 26w, 1y, or a day.  [default: 1y]")
@click.option("--every", type=PastSpan(), default="1w", help="How often to look.  [default: 1w]")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the page.  [default: .ralph/backtest.html]",
)
@at_repository
@json_option
def backtest(
    since: datetime | timedelta, every: timedelta, output: Path | None, repo: Path, config: Path | None, as_json: bool
) -> None:
    """Replay history with today's settings; write a page of what would have been opened.

    No network is used, except GitHub's API if GITHUB_TOKEN and GITHUB_REPOSITORY are set, for issues, pull
    requests, workflow runs and alerts.
    """
    from ralph_mission.adapters.report.backtest import lines, to_document
    from ralph_mission.adapters.report.backtest_page import page
    from ralph_mission.adapters.report.progress import speaking
    from ralph_mission.app import backtest as replay
    from ralph_mission.app.secrets import environment_secrets

    with speaking(sys.stderr, environment_secrets()) as progress:
        report = replay.backtest(replay.BacktestOptions(repo, config, since, every), progress)
    if as_json:
        print_json(to_document(report))
    else:
        click.echo("\n".join(lines(report)))
    if output or not as_json:
        click.echo(f"wrote {write_page(page(report), repo, output, PAGE)}", err=True)
