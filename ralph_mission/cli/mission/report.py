"""`ralph report`: how things stand with a repository, as a page for a browser, as markdown or as JSON.

`ralph backtest`: what Ralph would have opened in the past of a repository, and what became of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import (
    at_repository,
    json_option,
    open_app,
    print_json,
    refuse_if_elsewhere,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.repository_report import LoopFacts, RepositoryReport
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.ledger import MemorySnapshot

PAGE = "report.html"
LOOPS = ("run", "work", "plan")
"""The kinds of runs that are loops."""
FILE = click.Path(path_type=Path, dir_okay=False)
DAYS = {"d": 1, "w": 7, "y": 365}
LONGEST = 50 * 365  # days: beyond it the calendar comes to its end
BACKTEST_PAGE = "backtest.html"


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["html", "md", "json"]), default="html", help="What to make.  [default: html]"
)
@click.option("--output", type=FILE, metavar="FILE", help="Where to write it.")
@click.option("--open", "launch", is_flag=True, help="Open the page in a browser.")
@at_repository
@json_option
def report(form: str, output: Path | None, launch: bool, repo: Path, config: Path | None, as_json: bool) -> None:
    """Write a page: what waits for you, missions, loops, verdicts, spending, health.

    The page is one file that loads nothing, .ralph/report.html unless --output says otherwise. Markdown, which is what
    the dashboard shows, and JSON go to standard output.
    """
    form = "json" if as_json else form
    if launch and form != "html":
        raise click.UsageError("only a page can be opened: leave --open or --format out")
    app = open_app(repo, config)
    loops = _loops(app)
    recalled = app.store.recall()
    is_started = recalled is not None
    if recalled is None:
        refuse_if_elsewhere(app)
        from ralph_mission.mission.model.ledger import Header, Memory, MemorySnapshot, OpenState

        recalled = MemorySnapshot(Memory(Header()), OpenState(), "")
    if form == "html":
        from ralph_mission.adapters.report.report_page import page

        path = write_page(page(_collect(app, recalled, loops)), repo, output, PAGE)
        click.echo(f"wrote {path}")
        if launch and click.launch(path.resolve().as_uri()) != 0:
            click.echo(f"no browser could be opened: open {path} yourself", err=True)
    elif form == "md" and not is_started:
        from ralph_mission.adapters.report.status import NOT_STARTED

        _tell("; ".join(type_commands(line, repo=repo) for line in NOT_STARTED) + "\n", repo, output)
    elif form == "md":
        _tell(app.ports.dashboard(recalled.memory, recalled.state), repo, output)
    else:
        from ralph_mission.adapters.report.repository_report import to_document

        if output:
            import json

            _tell(json.dumps(to_document(_collect(app, recalled, loops)), indent=2) + "\n", repo, output)
        else:
            print_json(to_document(_collect(app, recalled, loops)))


def _loops(app: App) -> tuple[LoopFacts, ...]:
    """The loops that ran on this machine, newest first."""
    from ralph_mission.adapters.report.repository_report import LoopFacts
    from ralph_mission.adapters.storage.loop import live

    known = (one for one in reversed(live.list_runs(app.git.state_dir)) if one.kind in LOOPS)
    return tuple(
        LoopFacts(
            one.id,
            datetime.fromisoformat(one.began) if one.began else None,
            one.doing or one.state,
            one.sessions,
            one.stories,
            one.usd,
        )
        for one in known
    )


def _collect(app: App, recalled: MemorySnapshot, loops: tuple[LoopFacts, ...]) -> RepositoryReport:
    from dataclasses import replace

    from ralph_mission.adapters.report.repository_report import collect_report
    from ralph_mission.mission.lifecycle.waiting import find_waiting

    answers, remark = ask_forge(app, recalled)
    report = collect_report(
        app.name,
        recalled,
        app.store.journal(),
        app.settings.limits,
        app.clock.now(),
        find_waiting(recalled.state.missions, app.forge.how, answers),
        answers,
        lambda number: f"{app.page}/issues/{number}" if app.page else "",
        loops,
    )
    return replace(report, remark=remark)


def ask_forge(app: App, recalled: MemorySnapshot) -> tuple[Mapping[int, str], str]:
    """What happened on the forge to each mission since the last cycle, by its id; else why it could not be asked."""
    if not any(mission.thread and mission.status.active for mission in recalled.state.missions):
        return {}, ""
    from ralph_mission.mission.lifecycle.facts import read_answers

    try:
        return read_answers(app.ports, app.settings, recalled.state, app.clock.now()), ""
    except UserError as problem:
        return {}, f"as of the last cycle, because the forge could not be asked: {problem.what}"


def write_page(text: str, repo: Path, output: Path | None, name: str) -> Path:
    """Where a page was written: to `output`, or to `name` among our own files. Raises UserError."""
    from ralph_mission.adapters import files
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.memory.recordings import keep_out_of_git

    try:
        if output:
            output.write_text(text, encoding="utf-8")
        else:
            git = Git.open(repo)
            keep_out_of_git(git)
            output = files.own(git.state_dir) / name
            files.write(output, text.encode())
    except OSError as error:
        raise UserError(f"{output} cannot be written: {error.strerror}", "name another file with --output") from None
    return output


def _tell(text: str, repo: Path, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write_page(text, repo, output, PAGE)}", err=True)


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
    from ralph_mission.adapters.report.backtest import lines, page, to_document
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
        click.echo(f"wrote {write_page(page(report), repo, output, BACKTEST_PAGE)}", err=True)
