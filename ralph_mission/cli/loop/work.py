"""`ralph work`: the issue agent, one issue or one after the other, live on stderr, summed up at its end."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.command_hints import spell, type_commands
from ralph_mission.cli.loop.options import limit_options, model_option
from ralph_mission.cli.options import at_repository, json_option
from ralph_mission.cli.outcome import tell_outcome
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.mission.issues.agent import WorkReport

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--once", is_flag=True, help="End after one issue, or when there is none.")
@click.option("--persistent", is_flag=True, help="One long run by a role prompt: 10,000 sessions, a day, $50 in all.")
@click.option("--issue", type=click.IntRange(min=1), metavar="N", help="This issue alone, if it is ready.")
@click.option(
    "-P", "--prompt-file", type=FILE, metavar="FILE", help="The role, for every issue.  [persistent: PROMPT.md]"
)
@click.option("--forge", type=click.Choice(["auto", "local", "github"]), default="auto", help="Where issues live.")
@click.option("--agent", default="", metavar="NAME", help="Who plays the sessions.")
@click.option("--command", default="", metavar="CMD", help="A program that plays them: prompt in, last message out.")
@model_option
@limit_options
@at_repository
@json_option
def work(once: bool, persistent: bool, as_json: bool, repo: Path, prompt_file: Path | None, **options: Any) -> int:
    """Take the oldest open issue labelled ralph-ready, let an agent work on it, open a pull request; then the next.

    A label agent:NAME asks for it as well, by that agent.

    The exit code is that of the last issue's loop: 0 done or nothing to do, 2 at a limit, 1 failed, 130 interrupted.
    """
    from ralph_mission.adapters.report.loop_voice import telling
    from ralph_mission.adapters.report.step_summary import work_page
    from ralph_mission.app.issues import WorkOptions, worker
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.loop.hats import PERSISTENT
    from ralph_mission.mission.issues import agent as flow

    if once and persistent:
        raise UserError("--once ends after one issue and --persistent keeps running", "give one of them", usage=True)
    if persistent and options["issue"]:
        raise UserError("--issue ends after one issue and --persistent keeps running", "give one of them", usage=True)
    once = once or bool(options["issue"])
    if persistent and prompt_file is None:
        prompt_file = repo / "PROMPT.md"
    wanted = WorkOptions(repo, prompt_file=prompt_file, **options)
    with telling(sys.stderr, environment_secrets(), PausingClock().now) as voice:
        made = worker(wanted, voice, partial(spell, repo=repo))
        if once:
            report = flow.work_once(made)
            for line in flow.work_lines(report):
                voice.note(type_commands(line, repo))
        else:
            report = flow.keep_working(made, PERSISTENT if persistent else None)
    return tell_outcome(_document(report), work_page, as_json)


def _document(report: WorkReport) -> dict[str, object]:
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
