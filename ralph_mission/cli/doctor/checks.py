"""`ralph doctor`: one small check for each thing: ok, a note, or what is wrong and how to fix it.

A check reads and never fixes. One that cannot be made says so as its own answer.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import acts_on_github, read_shared
from ralph_mission.adapters.projects.detection import DetectedProject, SetupStep
from ralph_mission.cli.doctor import DoctorLine, Hub, attempt, off, wrong
from ralph_mission.cli.doctor.github import asking, far_off, github, parked_ahead, present, reviewing, wakes, waking
from ralph_mission.cli.doctor.sources import agents, sources, work
from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError
from ralph_mission.safety.text import sanitise
from ralph_mission.words import count_noun, stamp

if TYPE_CHECKING:
    from ralph_mission.app.cycle import App
    from ralph_mission.config.settings import Config

PYTHON = (3, 11)
ROOM = 200 * 1024 * 1024  # bytes: a clone for a change, memory, records of fifty cycles


def checkup(repo: Path, config: Path | None) -> tuple[DoctorLine, ...]:
    """Every check in order; those that need what an earlier one missed are left out."""
    from ralph_mission.cli.doctor.github import elsewhere, unseen_github, workflows
    from ralph_mission.cli.options import open_app
    from ralph_mission.config.reading import read

    checks = [_python()]
    try:
        git = Git.open(repo)
    except UserError as problem:
        return (*checks, wrong("repository", problem))
    checks += [_git(git), *_repository(git), _disk(git)]
    try:
        settings = read(git, read_shared, config)
    except UserError as problem:
        return (*checks, wrong("configuration", problem))
    checks += [*_configuration(settings), _code(settings), *_tools(git, settings)]
    checks += elsewhere(git, agents(settings, os.environ), os.environ)
    checks += _extensions(git, settings)
    checks += sources(settings, git, os.environ)
    checks += _other_observers(settings, {check.name.partition(" ")[0] for check in checks})
    checks += _memory_branch(git, settings)
    try:
        app = open_app(repo, config, "github" if _names_github(os.environ) else "auto", staged=True)
    except UserError as problem:
        return (*checks, wrong("forge", problem))
    checks += _alive(app)
    checks += workflows(git, settings)
    checks += unseen_github(git, os.environ) if app.github is None else ()
    return (*checks, work(settings, checks))


def _names_github(environ: Mapping[str, str]) -> bool:
    """Whether a repository and a token are set: then GitHub is checked, wherever issues are stored."""
    signs_in = environ.get("GITHUB_TOKEN") or environ.get("GITHUB_APP_ID")
    return bool(signs_in and environ.get("GITHUB_REPOSITORY")) and not acts_on_github(environ)


def _python() -> DoctorLine:
    if sys.version_info >= PYTHON:
        return DoctorLine("Python", "ok", platform.python_version())
    return DoctorLine("Python", "wrong", platform.python_version(), "install Python 3.11 or newer")


def _git(git: Git) -> DoctorLine:
    from ralph_mission.app.cycle import GIT, git_version

    line = git.try_text("version")
    if git_version(line) >= GIT:
        return DoctorLine("git", "ok", line.removeprefix("git version "))
    return DoctorLine("git", "wrong", line or "no version reported", "install git 2.38 or newer")


# --- the repository -------------------------------------------------------------------


def _repository(git: Git) -> Iterator[DoctorLine]:
    yield DoctorLine("repository", "ok", str(git.work_tree or f"{git.git_dir} (bare)"))
    branch = git.try_text("symbolic-ref", "--short", "--quiet", "HEAD")
    if not git.resolve("HEAD"):
        yield DoctorLine("commits", "wrong", "there is no commit yet", "commit something: git commit")
        return
    detached = DoctorLine("branch", "note", "HEAD is detached", "git switch BRANCH")
    yield DoctorLine("branch", "ok", branch) if branch else detached
    yield DoctorLine("commits", "ok", git.try_text("rev-list", "--count", "HEAD"))
    if git.try_text("rev-parse", "--is-shallow-repository") == "true":
        yield DoctorLine("history", "note", "a shallow clone: ages of lines are unknown", "git fetch --unshallow")


def _disk(git: Git) -> DoctorLine:
    free = shutil.disk_usage(git.common_dir).free
    status, advice = ("ok", "") if free >= ROOM else ("wrong", "free at least 200 MiB")
    return DoctorLine("disk", status, f"{free // 1024**2} MiB free", advice)


def _memory_branch(git: Git, settings: Config) -> Iterator[DoctorLine]:
    branch = settings.memory.branch
    place = _checked_out(git, f"refs/heads/{branch}")
    if place:
        yield DoctorLine("memory branch", "wrong", f"{branch} is checked out in {place}", "switch it to another branch")


def _checked_out(git: Git, ref: str) -> str:
    """The work tree that has `ref` checked out, or ""."""
    for block in git.try_text("worktree", "list", "--porcelain").split("\n\n"):
        entry = dict(line.partition(" ")[::2] for line in block.splitlines())
        if entry.get("branch") == ref:
            return entry.get("worktree", "")
    return ""


# --- settings and tools ---------------------------------------------------------------


def _configuration(settings: Config) -> Iterator[DoctorLine]:
    yield DoctorLine("configuration", "ok", "valid")
    for warning in settings.warnings:
        yield DoctorLine("configuration", "note", warning)


def _code(settings: Config) -> DoctorLine:
    markers = settings.observers.code.markers
    if markers:
        return DoctorLine("code", "ok", f"ready: {', '.join(markers)}")
    return off("code", "to look for markers: observers.code.markers in ralph.yml")


def _tools(git: Git, settings: Config) -> Iterator[DoctorLine]:
    for fixer in settings.hands.fixers:
        if fixer in ("typos", "ruff"):
            yield _check_installed(str(fixer))
    from ralph_mission.adapters.observers.commands import search_path

    checks = [("verify", command, True) for command in settings.hands.verify]
    checks += [(f"command {check.name}", check.run, check.setup) for check in settings.observers.commands]
    project = _project(git, settings)
    yield _set_up(git, settings, project, [command for _, command, uses_setup in checks if uses_setup])
    if not settings.hands.verify:
        yield DoctorLine("verify", "note", "no verification command is set", "set hands.verify in ralph.yml")
    if not settings.observers.commands:
        yield off("commands", "to look at your own checks: observers.commands in ralph.yml")
    for name, command, uses_setup in checks:
        tool = _absent(command, git, None if name == "verify" else search_path(os.environ))
        if tool and uses_setup and _lacks(settings, git, project, tool):
            found = f"{tool} is not installed, and the project's packages do not bring it"
            key = "hands.verify" if name == "verify" else "observers.commands"
            advice = f"remove it from {key}, or add {tool} to the project's packages"
            yield DoctorLine(name, "wrong", found, advice)
        elif lacking := _lacking_word(command, git):
            yield DoctorLine(name, "wrong", f"{command}: {lacking}", "correct it in ralph.yml")
        elif not tool or (uses_setup and project.steps):  # what the set-up installs is in its own line
            yield DoctorLine(name, "ok", command)
        else:
            yield DoctorLine(name, "wrong", f"{tool} is not installed", "install it, or change ralph.yml")


def _lacking_word(command: str, git: Git) -> str:
    """Which script of package.json or target of the Makefile a command names in vain; "" if it can be run, or that
    cannot be told."""
    from ralph_mission.adapters.observers.doc_tree import RUN_MAKE, RUN_SCRIPT, read_scripts, read_targets

    for pattern, file, read, kind in (
        (RUN_SCRIPT, "package.json", read_scripts, "script"),
        (RUN_MAKE, "Makefile", read_targets, "target"),
    ):
        known = read(git.try_text("show", f"HEAD:{file}")) if (found := pattern.match(command)) else None
        if found and known is not None and found[1] not in known and not _may_run(command, found[1], git):
            return f"{file} has no {kind} {found[1]}"
    return ""


def _may_run(command: str, name: str, git: Git) -> bool:
    """Whether a package may bring the program, or make know by a rule of its own how to build it."""
    sources = git.try_text("ls-tree", "--name-only", "HEAD").splitlines() if command.startswith("make ") else ()
    return command.startswith(("yarn ", "bun ")) or any(one.startswith(f"{name}.") for one in sources)


def _lacks(settings: Config, git: Git, project: DetectedProject, tool: str) -> bool:
    """Whether the set-up does not install a program: by what it left, or before it ran, by the manifests."""
    from ralph_mission.adapters.projects.setup import lent_environment
    from ralph_mission.app.workplaces import project_setup

    setup, head = project_setup(settings, git, git.state_dir / "setup"), git.resolve("HEAD")
    result = setup.last_result(head) if project.steps else None
    if result and not result.failed:
        ready = git.state_dir / "setup" / setup.digest(head)
        if "/" in tool:
            return not (ready / "tree" / tool).exists()
        return not shutil.which(tool, path=lent_environment(ready / "tree", ready / "home")["PATH"])
    return any(tool in check.needs for check in project.checks)


def _other_observers(settings: Config, checked: set[str]) -> Iterator[DoctorLine]:
    """Observers without a separate check."""
    from ralph_mission.adapters.observers import OBSERVERS

    for name in (name for name in OBSERVERS if name not in {*checked, "forge"}):  # whose line comes with the forge's
        if getattr(settings.observers, name):
            yield DoctorLine(name, "ok", "ready")
        else:
            yield off(name, f"to switch it on: observers.{name} of ralph.yml")


def _extensions(git: Git, settings: Config) -> Iterator[DoctorLine]:
    from ralph_mission.app.extensions import find_extension

    for chosen in settings.extensions:
        name = f"extension {chosen.use}"
        try:
            yield DoctorLine(name, "ok", f"{chosen.kind}, {find_extension(chosen, git.work_tree).value}")
        except UserError as problem:
            yield wrong(name, problem)


def _check_installed(package: str) -> DoctorLine:
    try:
        return DoctorLine(f"fixer {package}", "ok", version(package))
    except PackageNotFoundError:
        return DoctorLine(f"fixer {package}", "wrong", "not installed", f"pip install {package}")


def _project(git: Git, settings: Config) -> DetectedProject:
    """What is installed for checks and agents here, and by which steps."""
    from ralph_mission.app.workplaces import project_setup

    head = git.resolve("HEAD")
    if settings.hands.setup != "auto":
        return DetectedProject(tuple(SetupStep(command, "", command) for command in settings.hands.setup), ())
    return project_setup(settings, git, None).detect(head) if head else DetectedProject((), ())


def _set_up(git: Git, settings: Config, project: DetectedProject, commands: Sequence[str]) -> DoctorLine:
    """`commands`: the checks that use what the set-up installs."""
    from ralph_mission.adapters.projects.setup import AGAIN
    from ralph_mission.app.workplaces import project_setup

    missing = sorted({name for step in project.steps for name in step.needs if not shutil.which(name)})
    tools = ", ".join(project.tools) or "; ".join(project.notes) or "none"
    if missing and commands:
        advice = f"install {' and '.join(missing)}, or give the commands in hands.setup"
        return DoctorLine("setup", "wrong", f"{tools}; {' and '.join(missing)} not installed", advice)
    lacks = f", of which {' and '.join(missing)} would have to be installed" if missing else ""
    if not commands or not project.steps:
        unused = "" if tools == "none" or not project.steps else f"; runs only when a check needs it{lacks}"
        return DoctorLine("setup", "ok", f"{tools}{unused}")
    result = project_setup(settings, git, git.state_dir / "setup").last_result(git.resolve("HEAD"))
    if result and result.failed:
        when = f"{datetime.fromtimestamp(result.at, UTC):%H:%M} UTC"
        until = f"{datetime.fromtimestamp(result.at + AGAIN, UTC):%H:%M} UTC"
        advice = f"it is tried again after {until}, or now: ralph cycle --force; or give the commands in hands.setup"
        return DoctorLine("setup", "wrong", f"failed at {when}: {result.failed.partition(chr(10))[0]}", advice)
    if result is None:
        required = filter(None, (_absent(command, git) for command in commands))
        absent = dict.fromkeys(tool for tool in required if not _lacks(settings, git, project, tool))
        prefix = f"not installed here yet: {', '.join(absent)}; " if absent else ""
        steps = ", ".join(dict.fromkeys(step.tool for step in project.steps))
        found = f"{prefix}the first cycle that needs a check installs the project's packages ({steps})"
        return DoctorLine("setup", "note", found)
    return DoctorLine("setup", "ok", f"done: {tools}")


def _absent(command: str, git: Git, path: str | None = None) -> str:
    """The program of a command, if it is not on the `path` (None: PATH); "" if it is, or if only a shell could tell."""
    tool = program(command)
    local = git.work_tree is not None and "/" in tool and (git.work_tree / tool).is_file()
    return "" if not tool or local or shutil.which(tool, path=path) else tool


SHELL = frozenset(
    ". alias break case cd command eval exec exit export false for function if local read readonly return set shift "
    "source test time times trap true type ulimit umask unset until wait while".split()
)
"""Words that a shell understands by itself."""


def program(command: str) -> str:
    """What a shell command starts: its first word that is no assignment; "" when only a shell could tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    word = next((word for word in words if not re.match(r"\w+=", word)), "")
    return word if re.fullmatch(r"[\w.+@/-]+", word) and word not in SHELL else ""


# --- what it does here ----------------------------------------------------------------


def _alive(app: App) -> Iterator[DoctorLine]:
    yield from attempt("forge", _forge(app), "")
    yield from attempt("forge", _local(app), "")
    if app.github:
        yield from attempt("GitHub", _github(app), "")
    yield from attempt("memory", _memory(app), "")


def _forge(app: App) -> Iterator[DoctorLine]:
    branch, where = app.forge.default_branch(), "github" if app.github else "local"
    yield DoctorLine("forge", "ok", f"{where}, as {app.forge.identity().login}; merges into {branch.name}")


def _local(app: App) -> Iterator[DoctorLine]:
    from ralph_mission.adapters.forges.local import LocalForge

    if isinstance(app.forge, LocalForge):
        yield from (wrong("forge", problem) for problem in app.forge.problems())


def _github(app: App) -> Iterator[DoctorLine]:
    from ralph_mission.adapters import wakers

    assert app.github is not None
    get, folder, config = asking(app.github.api), app.git.work_tree, app.config
    instance = wakers.instance(folder) if folder else ""
    here = wakers.look(folder, instance, wakers.unit_places(Path.home()))
    account = app.forge.identity().login
    yield from github(Hub(get, account, app.clock.now(), here.workflow, os.environ, present(folder)))
    yield from waking(config.schedule.wake, here)
    yield from reviewing(account, folder, never=config.schedule.review == "never")


def _memory(app: App) -> Iterator[DoctorLine]:
    from ralph_mission.app.hosting import switched_off
    from ralph_mission.mission.gather import check_anchor

    if switched_off():
        yield DoctorLine("paused", "note", "RALPH_PAUSED=1 stands in the environment", "unset RALPH_PAUSED")
    faults = list(app.store.faults())
    yield from (DoctorLine("memory", "wrong", fault, "ralph memory recover") for fault in faults)
    if faults:
        return
    recalled = app.store.recall()
    check_anchor(app.forge, recalled)
    if recalled is None:
        yield DoctorLine("memory", "ok", "none yet; the first cycle makes it")
        return
    header = recalled.memory.header
    yield DoctorLine("memory", "ok", f"serial {header.serial}, lineage {header.lineage[:8]}")
    yield _check_anchor(app, header.serial)
    if header.paused:
        yield DoctorLine("paused", "note", "nothing will be done", "ralph resume")
    when = stamp(header.last_cycle_at) if header.last_cycle_at else "never"
    yield DoctorLine("last cycle", "ok", f"{header.cycle}, {when}, {header.drift_seconds} s after it was due")
    now = app.clock.now()
    yield from far_off(header.next_due_at, now, app.config.schedule.rhythm())
    yield from parked_ahead(recalled.state.missions, now)
    yield from wakes(recalled.state.wakes)
    for key in recalled.state.unknown:
        yield DoctorLine("unknown", "wrong", f"was {key} sent?", f"ralph journal resolve {key} --sent|--not-sent")


def _check_anchor(app: App, serial: int) -> DoctorLine:
    anchor = app.forge.anchor()
    if anchor is None:
        return DoctorLine(
            "anchor", "note", "the forge does not know where memory stands", "the next cycle records it there"
        )
    if anchor.serial > serial:
        return DoctorLine("anchor", "wrong", f"memory had already reached {anchor.serial}", "ralph memory recover")
    return DoctorLine("anchor", "ok", f"serial {anchor.serial}")


MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
COLOURS = {"ok": "green", "note": "yellow", "wrong": "red"}


@click.command()
@at_repository
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Also what is fine or not configured.")
def doctor(repo: Path, config: Path | None, as_json: bool, verbose: bool) -> int:
    """Check what Ralph needs here. Exit code 1 if something is wrong."""
    return report_checks(checkup(repo, config), "ralph doctor", repo, as_json, verbose)


def report_checks(checks: tuple[DoctorLine, ...], again: str, repo: Path, as_json: bool, verbose: bool = True) -> int:
    """Print what was found; the exit code, 1 when something is wrong. `again` is the command that looks once more.

    Unless `verbose`, what needs nobody is only counted.
    """
    healthy = all(check.status != "wrong" for check in checks)
    if as_json:
        print_json({"healthy": healthy, "checks": [{**asdict(check), "mend": check.hint} for check in checks]})
        return 0 if healthy else 1
    quiet = [check for check in checks if check.status == "ok" or check.unused]
    for check in checks:
        if verbose or check not in quiet:
            click.echo(type_commands(_line(check), repo))
    if not verbose:
        unused = sum(check.unused for check in quiet)
        more = f", {count_noun(unused, 'feature')} not configured" if unused else ""
        fine = f"{count_noun(len(quiet) - unused, 'check')} fine{more}; to list them: {again} -v"
        click.echo(type_commands(f"{click.style(MARKS['ok'], fg='green')} {fine}", repo))
    noted = any(check.status == "note" for check in checks if check not in quiet)
    verdict = "nothing is wrong, but see the notes" if noted else "nothing is wrong"
    click.echo(type_commands(verdict if healthy else f"fix what is WRONG, then: {again}", repo))
    return 0 if healthy else 1


def _line(check: DoctorLine) -> str:
    mark = click.style(MARKS[check.status], fg=COLOURS[check.status])
    hint = f"\n      -> {sanitise(check.hint, 'log')}" if check.hint else ""
    return f"{mark} {check.name}: {sanitise(check.found, 'log')}{hint}"
