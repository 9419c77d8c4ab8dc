"""`ralph review`: a pull that Ralph made, reviewed by an agent that did not see it being made."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.loop_options import SECONDS, Dollars, model_option
from ralph_mission.cli.options import at_repository, json_option
from ralph_mission.cli.outcome import tell_outcome
from ralph_mission.cli.typed import spell, type_commands

if TYPE_CHECKING:
    from ralph_mission.flows.review_end import ReviewReport


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
    from ralph_mission.bootstrap.known import environment_secrets
    from ralph_mission.bootstrap.loop import PausingClock
    from ralph_mission.bootstrap.review import reviewer
    from ralph_mission.bootstrap.wanted import AgentServiceOptions
    from ralph_mission.flows import review as flow
    from ralph_mission.report.agent_summary import review_page
    from ralph_mission.report.loop_voice import telling

    with telling(sys.stderr, environment_secrets(), PausingClock().now) as voice:
        made = reviewer(AgentServiceOptions(repo, **options), voice, partial(spell, repo=repo))
        report = flow.review_once(made, number, force)
        for line in flow.review_lines(report):
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
