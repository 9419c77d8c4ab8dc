"""`ralph cycle`: one cycle, live on stderr, summed up on stdout; `ralph status` and `ralph report`: how things stand.

`ralph backtest`: what cycles would have opened in the past of a repository, and what became of it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import (
    at_repository,
    json_option,
    now_option,
    open_app,
    print_json,
    print_outcome,
    refuse_if_elsewhere,
    run_cycle,
    watched_run,
)
from ralph_mission.cli.spelling import moment, type_commands
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.progress import RequestCounts
    from ralph_mission.adapters.report.repository_report import LoopFacts, RepositoryReport
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
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
        from ralph_mission.mission.model.ledger import MemorySnapshot, OpenState
        from ralph_mission.mission.model.memory import Header, Memory

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
        from ralph_mission.adapters.report import to_document

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
    from ralph_mission.adapters.report import to_document
    from ralph_mission.adapters.report.backtest import lines, page
    from ralph_mission.adapters.report.progress import speaking
    from ralph_mission.app import backtest as replay
    from ralph_mission.app.secrets import environment_secrets

    with speaking(sys.stderr, environment_secrets()) as progress:
        report = replay.backtest(replay.BacktestOptions(repo, config, since, every), progress)
    print_outcome("\n".join(lines(report)), to_document(report), as_json)
    if output or not as_json:
        click.echo(f"wrote {write_page(page(report), repo, output, BACKTEST_PAGE)}", err=True)


@click.command()
@at_repository
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where issues live.")
@click.option("--staged", is_flag=True, help="Change nothing; show what would happen.")
@click.option("--force", is_flag=True, help="Run even if no cycle is due.")
@click.option("-v", "--verbose", is_flag=True, help="Also what was seen, scores, reasons, rules.")
@now_option
@json_option
def cycle(
    repo: Path,
    config: Path | None,
    forge: str,
    staged: bool,
    force: bool,
    verbose: bool,
    now: str | None,
    as_json: bool,
) -> int:
    """Run one cycle: recall, observe, think, judge, act, reflect.

    Exit code 0 also if there was nothing to do, 1 if it failed.
    """
    from contextlib import nullcontext

    from ralph_mission.adapters.report.progress import speaking
    from ralph_mission.adapters.report.step_summary import tell_runner
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.loop.model.spec import UNWATCHED

    with (
        nullcontext(UNWATCHED) if staged else watched_run(repo, "cycle") as live,
        speaking(sys.stderr, environment_secrets(), live, verbose) as progress,
    ):
        app = open_app(repo, config, forge, staged=staged, now=moment(now), progress=progress)
        for warning in app.config.warnings:
            progress.note(f"note: {warning}")
        account, cycle_summary = _look_after(app, staged, force)
        if (account.trigger, account.outcome) == ("person", "done") and not staged:
            from ralph_mission.cli.gate import answer_order

            answer_order(dict(cycle_summary.answers))
        if not staged and _has_pulls(app, account):
            from ralph_mission.app.reviews import call_reviews_in_workflow

            call_reviews_in_workflow(repo, config, progress.note)
    requests = _request_counts(app)
    tell_runner(account, cycle_summary, os.environ, requests)
    show(account, cycle_summary, as_json, app.git.work_tree, repo, requests, verbose, force)
    return 1 if account.outcome == "failed" else 0


def _look_after(app: App, staged: bool, force: bool) -> tuple[CycleReport, CycleSummary]:
    """A cycle; of a fleet's new repository, the question whether to look after it."""
    from ralph_mission.app.cycle import FLEET_TERMS

    if (terms_text := os.environ.get(FLEET_TERMS)) and not staged:
        from ralph_mission.mission.fleet.model import parse_terms

        terms = parse_terms(terms_text)
        if terms.onboard:
            from ralph_mission.cli.setup.onboarding import propose_settings

            return propose_settings(app, terms.extends)
    return run_cycle(app, staged=staged, force=force)


def _has_pulls(app: App, report: CycleReport) -> bool:
    """Whether anything may wait for a review: most cycles need no request."""
    from ralph_mission.adapters.wakers import REVIEW, listening

    proposed = any(mission.pull_request for mission in report.missions)
    return proposed and bool(listening(app.git.work_tree, REVIEW))


def _request_counts(app: App) -> RequestCounts | None:
    from ralph_mission.adapters.report.progress import RequestCounts

    counts = app.github.requests if app.github else None
    return RequestCounts(counts.total, counts.not_modified) if counts else None


def show(
    report: CycleReport,
    cycle_summary: CycleSummary,
    as_json: bool,
    work_tree: Path | None,
    repo: Path,
    requests: RequestCounts | None = None,
    verbose: bool = False,
    force: bool = False,
) -> None:
    """The report for machines, or the summary for people."""
    if as_json:
        from ralph_mission.adapters.report import to_document

        print_json(to_document(report))
    else:
        from ralph_mission.adapters.report.summary import Standpoint, summary

        at = Standpoint(
            partial(type_commands, repo=repo),
            partial(_from_here, work_tree=work_tree),
            _dashboard(work_tree),
            "ralph cycle --force" if force else "ralph cycle",
        )
        click.echo(summary(report, cycle_summary, _paint, at, requests, verbose))


COLOURS: dict[str, dict[str, Any]] = {
    "title": {"bold": True},
    "good": {"bold": True, "fg": "green"},
    "waits": {"bold": True, "fg": "yellow"},
    "quiet": {"dim": True},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
}
"""The role of a text on a terminal; click leaves colours out elsewhere, and where NO_COLOR is set."""


def _paint(text: str, role: str) -> str:
    return click.style(text, **COLOURS[role])


def _from_here(place: str, work_tree: Path | None) -> str:
    """A path in the work tree relative to the present folder; anything else unchanged."""
    inside = place and work_tree and not Path(place).is_absolute() and "://" not in place
    return os.path.relpath(work_tree / place) if inside and work_tree else place


def _dashboard(work_tree: Path | None) -> str:
    """The dashboard's file, relative to the present folder; "" where it is none."""
    from ralph_mission.adapters.files import RALPH
    from ralph_mission.adapters.forges.local.threads import DASHBOARD

    place = f"{RALPH}/forge/{DASHBOARD}"
    return _from_here(place, work_tree) if work_tree and (work_tree / place).is_file() else ""


@click.command()
@click.option("--page", is_flag=True, hidden=True)
@click.option("--output", type=FILE, hidden=True)
@at_repository
@json_option
@click.pass_context
def status(
    context: click.Context, page: bool, output: Path | None, repo: Path, config: Path | None, as_json: bool
) -> None:
    """Show what runs here, missions, free slots, spending and what waits for whom, as of now."""
    if page or output:
        if as_json:
            raise click.UsageError("the page is markdown: leave --page or --json out")
        click.echo("note: `ralph status --page` is `ralph report --format md` now", err=True)
        context.invoke(report, form="md", output=output, launch=False, repo=repo, config=config, as_json=False)
        return
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.report.status import facts, lines
    from ralph_mission.cli.loop.runs import describe_runs
    from ralph_mission.mission.lifecycle.waiting import find_waiting, list_waiting
    from ralph_mission.mission.model.ledger import work_key

    runs, runs_here = describe_runs(repo, Git.open(repo).state_dir)
    if runs_here and not as_json:  # whatever the forge and the settings say
        click.echo("\n".join(runs_here))
    app = open_app(repo, config)
    recalled = app.store.recall()
    if recalled is None:
        refuse_if_elsewhere(app)
    answers, remark = ask_forge(app, recalled) if recalled else ({}, "")
    asks = list_waiting(recalled.state.missions, app.forge.how, answers) if recalled else ()
    working = app.store.records(map(work_key, recalled.state.working), recalled).values() if recalled else ()
    known = facts(recalled, app.settings.limits, app.clock.now(), asks, app.settings.rhythm, answers, working)
    if as_json:
        print_json({**known, "runs": runs})
    else:
        missions = recalled.state.missions if recalled else ()
        waiting = find_waiting(missions, app.forge.how, answers)
        rows = lines(
            known,
            partial(type_commands, repo=repo),
            waiting,
            _paint,
            _dashboard(app.git.work_tree),
            bool(answers and app.github is None),
        )
        click.echo("\n".join([*rows, *([remark] if remark else [])]))
