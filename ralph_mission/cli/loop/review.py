"""`ralph review` and `ralph publish`: one pull of ours reviewed by an agent, one issue's approved texts sent now."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.command_hints import spell, type_commands
from ralph_mission.cli.loop.options import SECONDS, Dollars, model_option
from ralph_mission.cli.options import at_repository, json_option
from ralph_mission.cli.outcome import tell_outcome

if TYPE_CHECKING:
    from ralph_mission.mission.publishing.publish_now import PublishReport
    from ralph_mission.mission.reviews.reviewer import ReviewReport


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
    from ralph_mission.adapters.report.loop_voice import telling
    from ralph_mission.adapters.report.step_summary import publish_page
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.app.services import ServiceOptions, publisher
    from ralph_mission.mission.publishing import publish_now as flow

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
            {"network": network, "status": receipt.status, "url": receipt.url, "detail": receipt.explanation}
            for network, receipt in report.receipts
        ],
    }


@click.command()
@click.option("--pr", "number", type=click.IntRange(min=1), required=True, metavar="N", help="The pull request.")
@click.option("--force", is_flag=True, help="Read it again, though its head was reviewed before.")
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where it lives.")
@click.option("--agent", default="", metavar="NAME", help="Who reviews.")
@click.option("--command", default="", metavar="CMD", help="A program that does: prompt in, last message out.")
@model_option
@click.option("--max-runtime", "runtime", type=SECONDS, metavar="S", help="Seconds at most, or 15m.  [45m]")
@click.option("--max-cost", "usd", type=Dollars(min=0, min_open=True), metavar="USD", help="Spent at most.  [2]")
@at_repository
@json_option
def review(number: int, force: bool, as_json: bool, repo: Path, **options: Any) -> int:
    """Review pull request N, which Ralph made, and post one review that comments; a later one edits it.

    It approves nothing and refuses nothing: that is for a person. Exit code 0 also when nothing had to be done, 1 when
    there is no review to post.
    """
    from ralph_mission.adapters.report.loop_voice import telling
    from ralph_mission.adapters.report.step_summary import review_page
    from ralph_mission.app.reviews import reviewer
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.app.services import AgentServiceOptions
    from ralph_mission.mission.reviews import reviewer as reviewer_reviewer

    with telling(sys.stderr, environment_secrets(), PausingClock().now) as voice:
        made = reviewer(AgentServiceOptions(repo, **options), voice, partial(spell, repo=repo))
        report = reviewer_reviewer.review_once(made, number, force)
        for line in reviewer_reviewer.review_lines(report):
            voice.note(type_commands(line, repo))
    return tell_outcome(_document(report), review_page, as_json)


def _document(report: ReviewReport) -> dict[str, object]:
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
