"""`ralph run`: a loop of fresh sessions in this checkout, live on stderr, summed up at its end.

`ralph agent simulate` plays a pattern of hats, or a team, with a scripted agent in a throw-away repository, and shows
how it converges. In the default script of every pattern the reviewer finds two issues, then one, then none. That of
each team has a fault on its way, too; `RALPH_TASK` tells builders of different tasks apart.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import (
    allow_dirty_option,
    at_repository,
    command_option,
    json_option,
    limit_options,
    model_option,
    print_json,
    print_outcome,
    run_progress,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PLANNED, VERDICT
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.report.loop_progress import PlainRunProgress
    from ralph_mission.app.run import RunSetup
    from ralph_mission.app.run_options import RunOptions
    from ralph_mission.loop.hats import HatPattern
    from ralph_mission.loop.model.spec import RunResult
    from ralph_mission.loop.model.state import HatOutput

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
@command_option
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
    from ralph_mission.cli.loop.runs import resume_command

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
    from ralph_mission.cli.loop.runs import resume_command

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
    text = f"{name} runs: ralph logs -f {name}, ralph pause {name}, ralph stop {name}"
    print_outcome(type_commands(text, repo), {"run": name}, as_json)
    return 0


# --- the rehearsal ------------------------------------------------------------------

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

    with _repository(keep) as repo:
        name, usual = _find_script(pattern)
        play = script.absolute() if script else repo.parent / "script.json"
        if script is None:
            play.write_text(json.dumps(usual), "utf-8")
        _seed(repo, SEED)
        options = RunOptions(repo, task=OBJECTIVE, pattern=name, agent="scripted", command=str(play),
                      iterations=SESSIONS)  # fmt: skip  # one call
        with show_progress(sys.stderr, environment_secrets(), PausingClock().now) as progress:
            account, _ = play_run(options, progress)
    if as_json:
        print_json(document(name, account))
    else:
        click.echo(summary_text(name, account))
        place = f"the repository: {keep}" if keep else "it ran in a temporary repository; --keep DIR keeps one"
        click.echo(place, err=True)
    return account.ending.code


def _find_script(pattern: str) -> tuple[str, dict[str, Any]]:
    """Its proper name, and the default script. Raises UserError."""
    from ralph_mission.app import teams
    from ralph_mission.loop import hats

    if story := teams.find_team(pattern):
        return story, team_script(story)
    chosen = hats.find_pattern(pattern)
    return chosen.name, pattern_script(chosen)


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


Steps = dict[str, list[dict[str, Any]]]

DRAFT = "# Greeting\n\n## Greet\nSay hello to a person by name.\n\n## Refuse\nRefuse what is no name.\n"
REVISED = DRAFT.replace("Refuse what is no name.", "Raise ValueError for an empty name and for one of blanks.")
GREETS = (
    'def greet(name):\n    if not name.strip():\n        raise ValueError("no name")\n    return "Hello, " + name\n'
)
TESTS = 'from greeting import greet\n\n\ndef test_greets():\n    assert greet("Ada") == "Hello, Ada"\n'
FORGETS = GREETS.replace(".strip()", "")
MISSING = {"file": "greeting.py", "line": 2, "severity": "critical", "message": "a name of blanks passes"}
BUILDS = f"""case "$RALPH_TASK" in
greeting) printf %s '{FORGETS}' > greeting.py;;
tests) mkdir -p tests && printf %s '{TESTS}' > tests/test_greeting.py;;
esac"""
AUTHORS = f"""case "$RALPH_TASK" in
greeting) printf %s '{FORGETS}' > greeting.py;;
*) printf %s '{GREETS}' > greeting.py;;
esac"""


def team_script(name: str) -> dict[str, Any]:
    """A script for `adapters/agents/scripted.py` that takes the team `name` to its end. Raises KeyError."""
    return {"hats": SCRIPTS[name]()}


def _ralplan_steps() -> Steps:
    """The Critic objects to one section; the Planner fixes it."""
    rows = [
        {"section": "Greet", "verdict": "approve"},
        {"section": "Refuse", "verdict": "reject", "objections": ["does not define an empty name"]},
    ]
    return {
        "planner": [
            _rehearsal_step("plan.complete", "the plan", {".ralph/plan.md": text}) for text in (DRAFT, REVISED)
        ],
        "critic": [
            _rehearsal_step("plan.verdict", {"sections": rows}),
            _rehearsal_step("plan.verdict", {"sections": [{"section": "Refuse", "verdict": "approve"}]}),
        ],
        "architect": [_rehearsal_step("plan.advice", "one function in greeting.py is enough")],
    }


def _ultrawork_steps() -> Steps:
    """The first plan gives two tasks the same file; the reviewer finds what a builder forgot."""
    shared = [_task("greeting", files=["*.py"]), _task("tests", files=["tests/**"])]
    apart = [_task("greeting", files=["greeting.py"]), _task("tests", files=["tests/**"])]
    return {
        "planner": [_rehearsal_step("plan.complete", {"tasks": tasks}) for tasks in (shared, apart)],
        "builder": [{**_rehearsal_step("build.complete", "built"), "run": [BUILDS]}],
        "reviewer": [_rehearsal_step("review.verdict", {"issues": issues}) for issues in ([MISSING], [])],
        "fixer": [_rehearsal_step("fix.complete", "fixed", {"greeting.py": GREETS})],
    }


def _team_steps() -> Steps:
    """A teammate writes into another one's file, which is undone and reported; the tester sends a fault to its
    owner."""
    members = [{"name": "author", "files": ["greeting.py"]}, {"name": "examiner", "files": ["tests/**"]}]
    tasks = [_task("greeting", owner="author"), _task("tests", owner="examiner")]
    return {
        "lead": [
            _rehearsal_step("plan.complete", {"members": members, "tasks": tasks}),
            _rehearsal_step("lead.decision", {"advice": "the examiner leaves greeting.py to its author"}),
        ],
        "author": [{**_rehearsal_step("build.complete", "built"), "run": [AUTHORS]}],
        "examiner": [
            _rehearsal_step("build.complete", "built", {"tests/test_greeting.py": TESTS, "greeting.py": GREETS})
        ],
        "tester": [
            _rehearsal_step("verification.failed", {"issues": [MISSING]}),
            _rehearsal_step("verification.passed", "greets, and refuses what is no name"),
        ],
    }


def _task(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "title": f"Write the {name}", **more}


def _rehearsal_step(topic: str, payload: object, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return {"write": dict(files or {}), "event": {"topic": topic, "payload": text}}


SCRIPTS: Mapping[str, Callable[[], Steps]] = {
    "ralplan": _ralplan_steps,
    "ultrawork": _ultrawork_steps,
    "team": _team_steps,
}


OBJECTIVE = "Greet a person by name; refuse a name that is empty."
SEED: Mapping[str, str] = {
    "greeting.py": 'def greet(name):\n    return "Hello"\n',
    "README.md": "# A small repository to simulate a loop in\n",
}
"""The files of the temporary repository."""
COMMIT = ("git add -A", "git commit -qm step")
WRONG = 'def greet(name):\n    return "Hello, " + nam\n'
BETTER = 'def greet(name):\n    return "Hello, " + name\n'
RIGHT = 'def greet(name):\n    if not name:\n        raise ValueError("no name")\n    return "Hello, " + name\n'
TYPO = {"file": "greeting.py", "line": 2, "kind": "bug", "severity": "critical", "message": "`nam` is no name here"}
EMPTY = {"file": "greeting.py", "line": 1, "kind": "missing", "severity": "critical", "message": "an empty name passes"}


@dataclass(frozen=True, slots=True)
class SimulationRow:
    """A session of a simulation. `issues`: None unless it was a review. `undone`: paths outside its globs."""

    iteration: int
    hat: str
    event: str
    issues: int | None
    files: tuple[str, ...]
    undone: tuple[str, ...]
    failure: str


def pattern_script(pattern: HatPattern) -> dict[str, Any]:
    """A script for `adapters/agents/scripted.py` that takes the pattern to its end."""
    return {"hats": {hat.name: _steps(hat.name, hat.publishes[0], PLANNED in hat.triggers) for hat in pattern.hats}}


def rows(outputs: Sequence[HatOutput]) -> tuple[SimulationRow, ...]:
    """The rows of a run's sessions."""
    return tuple(
        SimulationRow(
            output.iteration,
            output.hat,
            output.event.topic if output.event else "",
            len(output.issues) if output.event and output.event.topic == VERDICT else None,
            tuple(change.path for change in output.changes if not change.reverted),
            tuple(change.path for change in output.reverted),
            output.failure,
        )
        for output in outputs
    )


def summary_text(pattern: str, account: RunResult) -> str:
    """The rows as a table, and the ending."""
    lines = [_line(row) for row in rows(account.outputs)]
    reviews = [str(row.issues) for row in rows(account.outputs) if row.issues is not None]
    counts = f"; issues per review: {' -> '.join(reviews)}" if reviews else ""
    return "\n".join([*lines, f"{pattern}: {account.ending.reason}, {account.ending.detail}{counts}"])


def document(pattern: str, account: RunResult) -> dict[str, Any]:
    """The same as JSON data."""
    sessions = [
        {"iteration": row.iteration, "hat": row.hat, "event": row.event or None, "issues": row.issues,
         "files": list(row.files), "undone": list(row.undone), "failure": row.failure or None}
        for row in rows(account.outputs)
    ]  # fmt: skip  # one row
    ending = account.ending
    return {
        "pattern": pattern,
        "converged": ending.reason == "complete",
        "ending": {"reason": ending.reason, "detail": ending.detail, "next": ending.next_step},
        "sessions": sessions,
        "issues_per_review": [row["issues"] for row in sessions if row["issues"] is not None],
    }


def _line(row: SimulationRow) -> str:
    outcome = row.event or (f"failed: {row.failure}" if row.failure else "(no event)")
    issues = "" if row.issues is None else f"  {row.issues} issue{'s' if row.issues != 1 else ''}"
    files = f"  {', '.join(row.files)}" if row.files else ""
    undone = f"  undone: {', '.join(row.undone)}" if row.undone else ""
    return f"{row.iteration:>3}  {row.hat:<11} {outcome:<20}{issues}{files}{undone}".rstrip()


def _steps(hat: str, topic: str, builds: bool) -> list[dict[str, Any]]:
    if hat == "reviewer":
        return [_verdict(TYPO, EMPTY), _verdict(EMPTY), _verdict()]
    if hat == "fixer":
        first = (WRONG,) if builds else ()
        return [_step(topic, {"greeting.py": text}) for text in (*first, BETTER, RIGHT)]
    return [_step(topic, FIRST[hat])]


def _step(topic: str, files: Mapping[str, str]) -> dict[str, Any]:
    return {"write": dict(files), "run": list(COMMIT), "event": {"topic": topic, "payload": "one step done"}}


def _verdict(*issues: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": {"topic": VERDICT, "payload": json.dumps({"issues": list(issues)})}}


FIRST: Mapping[str, Mapping[str, str]] = {
    "planner": {"PLAN.md": "1. greet by name\n2. refuse an empty name\n"},
    "builder": {"greeting.py": WRONG},
    "tester": {"tests/test_greeting.py": TESTS},
    "debugger": {"tests/test_greeting.py": TESTS},
    "refactorer": {"greeting.py": WRONG},
}
"""What the first hat, or a builder, writes."""
