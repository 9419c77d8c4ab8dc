"""Agents on GitHub's issues and pull requests: `ralph work`, `ralph review` and `ralph publish`.

Each ends in the same way: on the page of the job, as JSON for a script, and by its exit code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import (
    SECONDS,
    Dollars,
    at_repository,
    command_option,
    json_option,
    limit_options,
    model_option,
    print_json,
    run_progress,
)
from ralph_mission.cli.spelling import spell, type_commands
from ralph_mission.errors import INTERRUPTED, Stopped, UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.step_summary import Places
    from ralph_mission.mission.issues.agent import WorkReport
    from ralph_mission.mission.publishing.publish_now import PublishReport
    from ralph_mission.mission.reviews.reviewer import ReviewReport


def tell_outcome(result: Mapping[str, Any], page: Callable[[Mapping[str, Any], Places], str], as_json: bool) -> int:
    """Write `result` on the page of the job, if there is one, and print it for a script; gives its exit code."""
    from ralph_mission.adapters.report.step_summary import tell_agent

    tell_agent(result, os.environ, page)
    if as_json:
        print_json(result)
    return int(result["code"])


FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--once", is_flag=True, help="End after one issue, or if there is none.")
@click.option("--persistent", is_flag=True, help="One run with a role prompt: at most 10,000 sessions, a day, $50.")
@click.option("--issue", type=click.IntRange(min=1), metavar="N", help="Only this issue, if it is ready.")
@click.option(
    "-P", "--prompt-file", type=FILE, metavar="FILE", help="The role, for every issue.  [persistent: PROMPT.md]"
)
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where issues live.")
@click.option("--agent", default="", metavar="NAME", help="The agent that runs the sessions.")
@command_option
@model_option
@limit_options
@at_repository
@json_option
def work(once: bool, persistent: bool, as_json: bool, repo: Path, prompt_file: Path | None, **options: Any) -> int:
    """Let an agent work on issues labelled ralph-ready (or agent:NAME), oldest first, and open pull requests.

    Exit code of the last issue's loop: 0 done or nothing to do, 2 at a limit, 1 failed, 130 interrupted.
    """
    from ralph_mission.adapters.report.step_summary import work_page
    from ralph_mission.app.issues import WorkOptions, worker
    from ralph_mission.loop.hats import PERSISTENT
    from ralph_mission.mission.issues import agent as flow

    if once and persistent:
        raise UserError("--once ends after one issue and --persistent keeps running", "give one of them", usage=True)
    if persistent and options["issue"]:
        raise UserError("--issue ends after one issue and --persistent keeps running", "give one of them", usage=True)
    once = once or bool(options["issue"])
    if persistent and prompt_file is None:
        prompt_file = repo / "PROMPT.md"
    settings = WorkOptions(repo, prompt_file=prompt_file, **options)
    with run_progress(repo, "work") as progress:
        agent = worker(settings, progress, partial(spell, repo=repo))
        if once:
            report = flow.work_once(agent)
            for line in flow.work_lines(report):
                progress.note(type_commands(line, repo))
            if report.record and report.record.pull:
                from ralph_mission.app.reviews import call_reviews_in_workflow

                call_reviews_in_workflow(repo, options["config"], progress.note)
        else:
            try:
                report = flow.keep_working(agent, PERSISTENT if persistent else None)
            except Stopped:
                report = flow.WorkReport("stopped", INTERRUPTED, reason="as somebody asked")
    return tell_outcome(_work_document(report), work_page, as_json)


def _work_document(report: WorkReport) -> dict[str, object]:
    record, played = report.record, report.played
    return {
        "outcome": report.outcome,
        "code": report.code,
        "issue": record.issue if record else None,
        "title": report.title,
        "try": record.number if record else 0,
        "branch": record.branch if record else "",
        "pull_request": record.pull or None if record else None,
        "reason": report.reason,
        "run": played.run_id if played else "",
        "sessions": played.sessions if played else 0,
        "seconds": round(played.seconds, 3) if played else 0.0,
        "cost_usd": played.usd if played else 0.0,
        "skipped": [{"issue": number, "why": why} for number, why in report.skipped],
        "settled": [{"issue": number, "outcome": state} for number, state in report.settled],
    }


@click.command()
@click.option("--issue", "number", type=click.IntRange(min=1), metavar="N", required=True, help="The issue.")
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where it lives.")
@at_repository
@json_option
def publish(number: int, forge: str, config: Path | None, as_json: bool, repo: Path) -> int:
    """Publish an issue's approved text now.

    Exit code 0 also if there is nothing to do or it is held; 1 if it was refused, or the result is unknown.
    """
    from ralph_mission.adapters.report.step_summary import publish_page
    from ralph_mission.app.cycle import publisher
    from ralph_mission.app.hosting import ServiceOptions
    from ralph_mission.mission.publishing import publish_now as flow

    with run_progress(repo, "publish") as progress:
        setup = publisher(ServiceOptions(repo, config, forge), progress, partial(spell, repo=repo))
        report = flow.publish_once(setup, number)
        for line in flow.publish_lines(report):
            progress.note(type_commands(line, repo))
    return tell_outcome(_publish_document(report), publish_page, as_json)


def _publish_document(report: PublishReport) -> dict[str, object]:
    return {
        "outcome": report.outcome,
        "code": report.code,
        "issue": report.issue,
        "reason": report.reason,
        "posts": [
            {"network": network, "status": receipt.status, "url": receipt.url, "detail": receipt.explanation}
            for network, receipt in report.receipts
        ],
    }


@click.command()
@click.option("--pr", "number", type=click.IntRange(min=1), required=True, metavar="N", help="The pull request.")
@click.option("--force", is_flag=True, help="Review its head again.")
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where it lives.")
@click.option("--agent", default="", metavar="NAME", help="The agent that reviews.")
@command_option
@model_option
@click.option("--max-runtime", "runtime", type=SECONDS, metavar="S", help="Maximum time in seconds, or 15m.  [45m]")
@click.option("--max-cost", "usd", type=Dollars(min=0, min_open=True), metavar="USD", help="Maximum spending.  [2]")
@at_repository
@json_option
def review(number: int, force: bool, as_json: bool, repo: Path, **options: Any) -> int:
    """Let an agent review a pull request and post one review, which neither approves nor blocks; later runs edit it.

    Exit code 0 also if there was nothing to do, 1 if there is no review to post.
    """
    from ralph_mission.adapters.report.step_summary import review_page
    from ralph_mission.app.hosting import AgentServiceOptions
    from ralph_mission.app.reviews import nobody_reviews, reviewer
    from ralph_mission.mission.reviews import reviewer as reviewer_reviewer

    with run_progress(repo, "review") as progress:
        settings = AgentServiceOptions(repo, **options)
        try:
            setup = reviewer(settings, progress, partial(spell, repo=repo))
            report = reviewer_reviewer.review_once(setup, number, force)
        except UserError:
            if not (why := nobody_reviews(settings)):
                raise
            report = reviewer_reviewer.ReviewReport("skipped", number, reason=why)
        for line in reviewer_reviewer.review_lines(report):
            progress.note(type_commands(line, repo))
    return tell_outcome(_review_document(report), review_page, as_json)


def _review_document(report: ReviewReport) -> dict[str, object]:
    usage = report.answer.usage if report.answer else None
    return {
        "outcome": report.outcome,
        "code": report.code,
        "pull_request": report.pull,
        "head": report.head,
        "url": report.url,
        "reason": report.reason,
        "points": None if report.points is None else [asdict(point) for point in report.points],
        "sessions": usage.sessions if usage else 0,
        "seconds": round(report.answer.seconds, 3) if report.answer else 0.0,
        "cost_usd": (usage.cost_usd or 0.0) if usage else 0.0,
    }
