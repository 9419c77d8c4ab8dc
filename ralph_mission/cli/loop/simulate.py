"""`ralph simulate`: a pattern of hats, played by a scripted agent in a throw-away repository."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ralph_mission.cli.options import json_option, print_json
from ralph_mission.errors import UserError

START = ("git init -q -b main . && git config user.name Ralph && git config user.email ralph@localhost"
         " && git add -A && git commit -qm start")  # fmt: skip  # one line of shell
SESSIONS = 30


@click.command()
@click.option("--pattern", required=True, metavar="NAME",
              help="plan-build-review, test-first, refactor, debug, ralplan, ultrawork, team.")  # fmt: skip  # one
@click.option("--script", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="What the agent does, instead of the built-in script (docs/agents.md).")  # fmt: skip  # one option
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Leave the repository there to look at; DIR must be new or empty.")  # fmt: skip  # one option
@json_option
def simulate(pattern: str, script: Path | None, keep: Path | None, as_json: bool) -> int:
    """Play a pattern to its end with a scripted agent, and show each session and the issues of each review.

    No model is called and nothing of yours is touched. Exit code 0 when it converged, else as of `ralph run`.
    """
    from ralph_mission.adapters.report.loop_voice import telling
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.run_options import RunOptions
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.cli.loop.run import play_run
    from ralph_mission.loop import simulation

    with _repository(keep) as repo:
        name, usual = _find_script(pattern)
        play = script.absolute() if script else repo.parent / "script.json"
        if script is None:
            play.write_text(json.dumps(usual), "utf-8")
        _seed(repo, simulation.SEED)
        asked = RunOptions(repo, task=simulation.OBJECTIVE, pattern=name, agent="scripted", command=str(play),
                      iterations=SESSIONS)  # fmt: skip  # one call
        with telling(sys.stderr, environment_secrets(), PausingClock().now) as voice:
            account, _ = play_run(asked, voice)
    if as_json:
        print_json(simulation.document(name, account))
    else:
        click.echo(simulation.summary_text(name, account))
    return account.ending.code


def _find_script(pattern: str) -> tuple[str, dict[str, Any]]:
    """Its proper name, and the script that is played when none is given. Raises UserError."""
    from ralph_mission.app import teams
    from ralph_mission.loop import hats, simulation

    if story := teams.find_team(pattern):
        return story, simulation.team_script(story)
    chosen = hats.find_pattern(pattern)
    return chosen.name, simulation.pattern_script(chosen)


@contextmanager
def _repository(keep: Path | None) -> Iterator[Path]:
    """An empty folder for the repository, with a scratch folder around it; both are gone afterwards, or kept."""
    if keep and keep.exists() and any(keep.iterdir()):
        raise UserError(f"{keep} is not empty", "name a new folder for --keep", usage=True)
    around = Path(tempfile.mkdtemp(prefix="ralph-simulate-"))
    repo = around / "repository"
    repo.mkdir()
    try:
        yield repo
    finally:
        if keep:
            shutil.copytree(repo, keep, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(around, ignore_errors=True)


def _seed(repo: Path, files: Mapping[str, str]) -> None:
    from ralph_mission.adapters.sandbox.process import run_foreign

    for name, text in files.items():
        (repo / name).write_text(text, "utf-8")
    done = run_foreign(START, cwd=repo, home=repo.parent / "home", timeout=60)
    if done.code:
        raise UserError(f"git cannot make a repository: {done.stderr.decode(errors='replace').strip()}", "fix git")
