"""`ralph run`: a loop of fresh sessions in this checkout, live on stderr, summed up at its end.

`ralph agent simulate` plays a pattern of hats with a scripted agent in a throw-away repository.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import (
    allow_dirty_option,
    at_repository,
    json_option,
    limit_options,
    model_option,
    print_json,
    run_progress,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.loop_progress import PlainRunProgress
    from ralph_mission.app.run import RunSetup
    from ralph_mission.app.run_options import RunOptions

NO_AGENT = "no agent is named"
RESTART = "RALPH_RESTART"
"""`exit` in the environment: the parent process restarts us, so a restart exits with code 3.
`done`: we are the new process, and find what the last session left uncommitted."""


def mark_restarted(options: RunOptions) -> RunOptions:
    """What was asked, of a process that was restarted."""
    return replace(options, restarted=True) if os.environ.get(RESTART) == "done" else options


def again(setup: RunSetup) -> None:
    """Become a new process; returns where somebody else starts it. Raises UserError when the settings have changed."""
    setup.unaltered()
    if os.environ.get(RESTART) != "exit":
        _replace_ourselves()


def _replace_ourselves() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, RESTART: "done"})
    except OSError as error:
        problem = UserError(f"cannot restart: {(error.strerror or 'no reason given').lower()}", "run it again")
        problem.exit_code = 3
        raise problem from None


FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("task", required=False, default="")
@click.option("-P", "--prompt-file", type=FILE, metavar="FILE", help="The objective.  [default: PROMPT.md]")
@click.option("--prd", is_flag=True, help="Work through prd.json, one story per session.")
@click.option(
    "--prd-file",
    type=FILE,
    metavar="FILE",
    help="The stories of this file: JSON, or a markdown check list.",
)
@click.option("--issues", is_flag=True, help="The issues labelled ralph-ready, on this branch.")
@click.option(
    "--parallel",
    type=click.IntRange(1, 8),
    default=1,
    metavar="N",
    help="Build up to N independent stories side by side.",
)
@click.option("--preset", default="", hidden=True)  # its name before there were patterns without hats
@click.option("--pattern", default="", metavar="NAME", help="plan-build-review, ralplan, fresh, prd, …")
@click.option("--agent", default="", metavar="NAME", help="The agent that runs the sessions.")
@click.option(
    "--command", default="", metavar="CMD", help="A program as agent: prompt on stdin, last message on stdout."
)
@model_option
@limit_options
@click.option("--continue", "go_on", is_flag=True, help="Resume the last run of the same objective.")
@click.option("--build", is_flag=True, help="Build what ralplan approves while it revises the rest.")
@click.option("--worktree", is_flag=True, help="Work in a linked work tree in .ralph/worktrees.")
@allow_dirty_option
@click.option("--verify", multiple=True, metavar="CMD", help="A check instead of those in ralph.yml.")
@click.option("--require-tests", is_flag=True, help="A story needs a check that ran and a changed test.")
@click.option("--single-story-per-run", "single_story", is_flag=True, help="End at the first story that passes.")
@click.option("--archive-previous/--no-archive-previous", default=True, help="Archive the stories of another branch.")
@at_repository
@click.option("--detach", is_flag=True, help="Run in the background: ralph logs -f, ralph stop.")
@json_option
def run(as_json: bool, detach: bool, issues: bool, **options: Any) -> int:
    """Work on TASK in fresh sessions until files prove that it is done.

    The agent, or a --command, reports that with LOOP_COMPLETE as the last line of its last message (fresh:
    TASK_COMPLETE; prd: its stories). The checks decide whether it is true.

    Exit code 0 if complete, 2 at a limit, 1 if it failed or was stopped, 130 if interrupted.
    """
    from ralph_mission.adapters.storage.loop.live import LiveRun
    from ralph_mission.app.run_options import RunOptions, resolve_options
    from ralph_mission.app.teams import play_run
    from ralph_mission.cli.loop.hold import resume_command

    if detach:
        return _detach(options["repo"], as_json)
    request = mark_restarted(resolve_options(RunOptions(**options)))
    if issues and (request.task or request.prompt_file or request.stories or request.worktree):
        what = "--issues is a list of its own, worked through in this checkout"
        raise UserError(what, "give it without a task, --prd, --prd-file and --worktree", usage=True)
    with (
        run_progress(request.repo, "run") as progress,
        _of_issues(request, progress) if issues else nullcontext(request) as listed,
    ):
        try:
            account, setup = play_run(listed, progress)
        except UserError as problem:
            raise _with_last_command(problem, request) from None
    over = account.ending.code and account.ending.reason != "restart"
    if over and account.ending.reason != "cancel" and not as_json and isinstance(progress.watch, LiveRun):
        click.echo(f"continue: {resume_command(progress.watch.record, request.repo)}", err=True)
    if account.ending.reason == "restart":
        again(setup)
    if as_json:
        from ralph_mission.adapters.report.loop_progress import account_document

        print_json(
            account_document(
                account, setup.store.counted(), setup.store.complaints, setup.isolation, setup.ports.secrets
            )
        )
    return account.ending.code


def _with_last_command(problem: UserError, options: RunOptions) -> UserError:
    """The problem of a run that is continued without an agent, with the command that names the one of the last run."""
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.loop.live import list_runs
    from ralph_mission.cli.loop.hold import resume_command

    if problem.what == NO_AGENT and options.go_on and not (options.command or options.agent):
        runs = [one for one in list_runs(Git.open(options.repo).state_dir) if one.kind == "run" and not one.alive]
        named = [one for one in runs if "--command" in one.command or "--agent" in one.command]
        if named:
            problem.next_step = f"as the last run was begun: {resume_command(named[-1], options.repo)}"
    return problem


def _of_issues(options: RunOptions, progress: PlainRunProgress) -> AbstractContextManager[RunOptions]:
    from ralph_mission.app.issues import listed_issues

    return listed_issues(options, progress)


def _detach(repo: Path, as_json: bool) -> int:
    """Start the same command line in the background, and print how to view and control it. Its refusals are reported
    here."""
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.loop import live

    home, words = Git.open(repo).state_dir, [word for word in sys.orig_argv[1:] if word != "--detach"]
    try:
        name, code = live.start_detached(home, "run", words)
    except OSError as error:
        raise UserError(f"it cannot run in the background: {error.strerror}", "run it without --detach") from None
    if code is not None:
        click.echo(live.read_output(home, name), nl=False, err=True)
        return code
    if as_json:
        print_json({"run": name})
    else:
        click.echo(type_commands(f"{name} runs: ralph logs -f {name}, ralph pause {name}, ralph stop {name}", repo))
    return 0


START = ("git init -q -b main . && git config user.name Ralph && git config user.email ralph@localhost"
         " && git add -A && git commit -qm start")  # fmt: skip  # one line of shell
SESSIONS = 30


@click.command()
@click.option("--pattern", default="plan-build-review", metavar="NAME", show_default=True,
              help="Or test-first, refactor, debug, ralplan, ultrawork, team.")  # fmt: skip  # one
@click.option("--script", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="What the agent does, instead of the built-in script (docs/agents.md).")  # fmt: skip  # one option
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the repository in DIR, which must be new or empty.")  # fmt: skip  # one option
@json_option
def simulate(pattern: str, script: Path | None, keep: Path | None, as_json: bool) -> int:
    """Run a pattern with a scripted agent, and show each session and review.

    Calls no model and touches nothing of yours. Exit code 0 if it converged, otherwise as for `ralph run`.
    """
    from ralph_mission.adapters.report.loop_progress import show_progress
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.run_options import RunOptions
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.app.teams import play_run
    from ralph_mission.loop import simulation

    with _repository(keep) as repo:
        name, usual = _find_script(pattern)
        play = script.absolute() if script else repo.parent / "script.json"
        if script is None:
            play.write_text(json.dumps(usual), "utf-8")
        _seed(repo, simulation.SEED)
        options = RunOptions(repo, task=simulation.OBJECTIVE, pattern=name, agent="scripted", command=str(play),
                      iterations=SESSIONS)  # fmt: skip  # one call
        with show_progress(sys.stderr, environment_secrets(), PausingClock().now) as progress:
            account, _ = play_run(options, progress)
    if as_json:
        print_json(simulation.document(name, account))
    else:
        click.echo(simulation.summary_text(name, account))
        place = f"the repository: {keep}" if keep else "it ran in a temporary repository; --keep DIR keeps one"
        click.echo(place, err=True)
    return account.ending.code


def _find_script(pattern: str) -> tuple[str, dict[str, Any]]:
    """Its proper name, and the default script. Raises UserError."""
    from ralph_mission.app import teams
    from ralph_mission.loop import hats, simulation

    if story := teams.find_team(pattern):
        return story, simulation.team_script(story)
    chosen = hats.find_pattern(pattern)
    return chosen.name, simulation.pattern_script(chosen)


@contextmanager
def _repository(keep: Path | None) -> Iterator[Path]:
    """An empty folder for the repository, with a scratch folder around it; both are deleted afterwards, or kept."""
    if keep and keep.exists() and any(keep.iterdir()):
        raise UserError(f"{keep} is not empty", "name a new folder for --keep", usage=True)
    scratch = Path(tempfile.mkdtemp(prefix="ralph-simulate-"))
    repo = scratch / "repository"
    repo.mkdir()
    try:
        yield repo
    finally:
        if keep:
            shutil.copytree(repo, keep, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)


def _seed(repo: Path, files: Mapping[str, str]) -> None:
    from ralph_mission.adapters.sandbox.process import run_foreign

    for name, text in files.items():
        (repo / name).write_text(text, "utf-8")
    done = run_foreign(START, cwd=repo, home=repo.parent / "home", timeout=60)
    if done.code:
        raise UserError(f"git cannot make a repository: {done.stderr.decode(errors='replace').strip()}", "fix git")
