"""`ralph cycle`: one cycle, live on stderr, summed up on stdout; `ralph status`: what runs here, what memory says."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.mission.report import FILE, ask_forge, report
from ralph_mission.cli.options import (
    at_repository,
    json_option,
    now_option,
    open_app,
    print_json,
    refuse_if_elsewhere,
    run_cycle,
    watched_run,
)
from ralph_mission.cli.spelling import moment, type_commands

if TYPE_CHECKING:
    from ralph_mission.adapters.report.progress import RequestCounts
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.cycle import CycleReport, CycleSummary


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
        account, cycle_summary = run_cycle(app, staged=staged, force=force)
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
        from ralph_mission.adapters.report.summary import to_document

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
    from ralph_mission.adapters.forges.local.store import DASHBOARD

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
    from ralph_mission.cli.loop.hold import describe_runs
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
