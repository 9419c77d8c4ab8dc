"""Where agents work: a loop's work tree, and the isolation of its sessions.

The work tree is the checkout on the branch that a run's stories name, or its own linked one. Isolation is composed of
the settings' level for agents, with a sandbox for each use in a run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.fixers.verify import CheckRunner
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.projects.setup import ProjectSetup
from ralph_mission.adapters.sandbox.bwrap import Endpoint, of_models
from ralph_mission.adapters.sandbox.isolation import (
    Found,
    Level,
    Sandbox,
    find_level,
    missing_bwrap,
    of_checkout,
    of_clone,
)
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop.rules import scope
from ralph_mission.values import compile_regex

SHARED = ("prd.json", "progress.txt", ".ralph/agent/memories.md")
"""Files that a new work tree gets from its checkout if git does not include them."""
SHOWN = 5
CLONE = "/.ralph/workspace/"
"""The path component of clones that sessions work in."""
NAME = compile_regex(r"[A-Za-z][\w.+-]*")
BUILTINS = frozenset(
    "alias builtin case cd command eval exec exit export for hash if let local read return set source test time trap "
    "type ulimit umask unset until wait while".split()
)
"""Names that a shell knows without a program."""
READ_ONLY_PATHS = ("loop/state.json", "loop/prd.json", "loop/prd.previous.json", "loop/runs", "loop/verdicts.jsonl")
"""Parts of the engine's folder that no session writes, if its view can be restricted."""
PACKAGES = "node_modules"
"""Programs in there need the files beside them."""


def open_checkout(repo: Path) -> tuple[Git, Path]:
    """The repository and its work tree. Raises UserError (usage) if there is none."""
    git = Git.open(repo)
    if git.work_tree is None:
        raise UserError(f"{repo} has no work tree", "run a loop in a checkout: git worktree add DIR", usage=True)
    if CLONE in (here := git.work_tree.as_posix()):
        what = f"{repo} is where sessions of a loop work"
        raise UserError(what, f"run it in the checkout itself: {here.partition(CLONE)[0]}")
    return git, git.work_tree


def open_worktree(git: Git, root: Path, branch: str, objective: str, named: Path | None) -> tuple[Git, Path]:
    """A linked work tree in `.ralph/worktrees/`, on `branch` or on one named after the objective; created if missing,
    with the stories of `root` (in `named`, if set). Raises UserError if git refuses."""
    name = branch or f"ralph-run/{_slug(objective)}-{hashlib.sha256(objective.encode()).hexdigest()[:6]}"
    place = git.state_dir / "worktrees" / _slug(name)
    if not place.exists():
        _check_branch_name(git, name)
        known = ("--", str(place), name) if git.resolve(f"refs/heads/{name}") else ("-b", name, "--", str(place))
        try:
            git.run("worktree", "add", "--quiet", *known)
        except GitError as error:
            raise UserError(
                f"no work tree for {name}: {_first_line(error)}", "fix that, or leave --worktree out"
            ) from None
        more = (named.relative_to(root).as_posix(),) if named and named.is_relative_to(root) else ()
        _share(root, place, (*SHARED, *more))
    return Git.open(place), place


def find_newest_worktree(git: Git, name: str) -> Path | None:
    """The linked work tree with the newest file `name`, or None."""
    found = [path for path in (git.state_dir / "worktrees").glob(f"*/{name}") if path.is_file()]
    last = max(found, key=lambda path: path.stat().st_mtime, default=None)
    return last.parents[len(Path(name).parts) - 1] if last else None


def describe_worktree(git: Git, place: Path) -> str:
    """The place of a linked work tree's work, and how to get its commits into the checkout."""
    branch = git.try_text("symbolic-ref", "--quiet", "--short", "HEAD")
    where = shlex.quote(str(place))
    return (
        f"the work is in {where} on the branch {branch}; what is committed there comes here with: "
        f"git merge {shlex.quote(branch)}; once it is no longer needed: git worktree remove {where}"
    )


def settle_branch(git: Git, branch: str, exempt: tuple[str, ...], note: Callable[[str], None]) -> None:
    """Make sure that the checkout is clean and on `branch` ("": the present one), with a note if it was on another. No
    other loop may use it. Raises UserError."""
    dirty = list(_dirty(git, exempt))
    if dirty:
        more = f" and {len(dirty) - SHOWN} more" if len(dirty) > SHOWN else ""
        what = f"the checkout has changes of yours: {', '.join(dirty[:SHOWN])}{more}"
        raise UserError(what, "commit or stash them, or use --worktree")
    current = git.try_text("symbolic-ref", "--quiet", "HEAD")
    if branch and current != f"refs/heads/{branch}":
        _switch(git, branch)
        note(f"the checkout is on {branch} now, the stories' branch; go back: git switch -")


def require_committed(git: Git, root: Path, command: str | Sequence[str]) -> None:
    """Raise UserError if a file of the checkout that the agent's `command` names is not there, or not committed:
    sessions work in a clone, which does not hold it."""
    words = split_command(command)
    program = words[0] if words else ""
    if program.startswith(("./", "../")) and not (root / program).exists():
        raise UserError(f"there is no program {program} in {root}", "name another one with --command")
    named = [word for word in words if not Path(word).is_absolute() and (root / word).is_file()]
    lacking = git.try_text("ls-files", "--others", "--exclude-standard", "--", *named) if named else ""
    if lacking:
        path = shlex.quote(lacking.splitlines()[0])
        what = f"the agent's program {path} is not committed, and sessions work in a clone, which holds only commits"
        raise UserError(what, f"git add {path} && git commit, or call it by its full path from outside the checkout")


def require_program(command: str | Sequence[str], path: str | None) -> None:
    """Raise UserError if a program that the agent's `command` calls by a bare name is not on `path` (None: ours)."""
    if isinstance(command, str) and set(command) & set(";&|\n"):
        return  # the shell may call another one
    program = next(iter(split_command(command)), "")
    if NAME.fullmatch(program) and program not in BUILTINS and not shutil.which(program, path=path):
        raise UserError(f"there is no program {program} on the PATH", "name another one with --command")


def split_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words of a command, none of one that cannot be read: that is reported where it is used."""
    try:
        return tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError:
        return ()


def _switch(git: Git, branch: str) -> None:
    _check_branch_name(git, branch)
    known = bool(git.resolve(f"refs/heads/{branch}"))
    try:
        git.run("switch", "--quiet", *(("--no-guess",) if known else ("--create",)), branch)
    except GitError as error:
        raise UserError(f"cannot switch to {branch}: {_first_line(error)}", "fix that, or use --worktree") from None


def _check_branch_name(git: Git, branch: str) -> None:
    if not git.try_text("check-ref-format", "--branch", branch):
        raise UserError(f"{branch!r} is not a branch name", "fix branchName in prd.json", usage=True)


def _dirty(git: Git, exempt: tuple[str, ...]) -> Iterator[str]:
    """Changed paths, without the engine's own files and `exempt` (a folder ends with a slash)."""
    entries = iter(git.text("status", "--porcelain", "-z", "--untracked-files=all").split("\0"))
    for entry in filter(None, entries):
        path = entry[3:]
        if entry[0] in "RC":
            next(entries)  # where it was
        within = (path == one or (one.endswith("/") and path.startswith(one)) for one in exempt)
        if not scope.ours(path) and not any(within):
            yield path


def _share(root: Path, place: Path, names: tuple[str, ...]) -> None:
    for name in names:
        if (root / name).is_file() and not (place / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, place / name)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:50].strip("-") or "run"


def _first_line(error: GitError) -> str:
    """The first line, with the files that it lists below it."""
    lines = [line for line in error.detail.splitlines() if line.strip()] or [f"exit {error.code}"]
    listed = ", ".join(line.strip() for line in lines if line[0] == "\t")
    return f"{lines[0].removeprefix('fatal: ').removeprefix('error: ')} {listed}".rstrip()


def agent_level(settings: Config, environ: Mapping[str, str] = os.environ) -> Found:
    """The isolation level of this repository's agents here. Raises UserError if unavailable."""
    choice = settings.hands.agent
    level = find_level(choice.sandbox if choice else None, environ)
    return replace(level, wrap=_split_words(choice.wrap)) if choice else level


def agent_sandbox(
    found: Found, git: Git, names: Iterable[str], command: tuple[str, ...] | str, clone: Path | None = None
) -> Sandbox:
    """For an agent's sessions in the checkout, or its `clone`, with `names` of our environment visible. Raises
    UserError."""
    if found.level == "env":
        return Sandbox(wrap=found.wrap)
    variables = {name: os.environ[name] for name in names if name in os.environ}
    sandbox = _sandbox_for(found, git, clone, of_models(variables))
    return replace(sandbox, readable=tuple(dict.fromkeys((*sandbox.readable, *_named_files(command)))))


def checks_sandbox(found: Found, git: Git, clone: Path | None = None) -> Sandbox:
    """For a project's own checks, which run an agent's code and need no network. Raises UserError."""
    return _sandbox_for(found, git, clone, ())


def patch_sandbox(settings: Config, git: Git) -> Sandbox:
    """For the checks of a change, in their own clone: an agent may have written it, if one is named."""
    return checks_sandbox(agent_level(settings), git) if settings.hands.agent else Sandbox()


def project_setup(
    settings: Config, git: Git, place: Path | None, note: Callable[[str], None] = lambda _: None
) -> ProjectSetup:
    """Installs what checks and agents need: with the network, without credentials, and isolated if possible.
    `place`: the folder for results."""
    level: Level = "env" if missing_bwrap()[0] else "bwrap"

    def kept_apart(clone: Git) -> Sandbox:
        sandbox = of_clone(level, git, clone.work_tree or clone.git_dir, os.environ)
        return replace(sandbox, endpoints=None)

    chosen = settings.hands.setup
    return ProjectSetup(git, place, None if chosen == "auto" else chosen, sandbox_for=kept_apart, note=note)


def check_runner(
    settings: Config, git: Git, checks: tuple[str, ...], note: Callable[[str], None] = lambda _: None
) -> CheckRunner:
    """Runs checks like an agent's, isolated like agents. Raises UserError."""
    found = agent_level(settings)
    return CheckRunner(
        git, checks, settings.hands.verify_timeout, lambda clone: checks_sandbox(found, clone),
        project_setup(settings, git, git.state_dir / "setup", note), git.state_dir / "cache/base", note,
    )  # fmt: skip  # one call


def fixer_sandbox(clone: Git) -> Sandbox:
    """For a project's tool that changes files in its clone: without network, if possible."""
    level: Level = "env" if missing_bwrap()[0] else "bwrap"
    return of_clone(level, clone, clone.work_tree or clone.git_dir, os.environ, ())


def writable_elsewhere(sandbox: Sandbox, git: Git) -> Sandbox:
    """The same for another checkout. Raises UserError."""
    if sandbox.level == "env":
        return sandbox
    own = of_checkout(sandbox.level, git, os.environ, sandbox.endpoints)
    return replace(own, readable=tuple(dict.fromkeys((*own.readable, *sandbox.readable))), wrap=sandbox.wrap)


def sharing(sandbox: Sandbox, ours: Path) -> Sandbox:
    """The same for a session that may only write messages, tasks and notes in the engine's folder `ours`."""
    if sandbox.level == "env":
        return sandbox
    shared = (ours / "agent", ours / "loop")
    folders = tuple(ours / name for name in READ_ONLY_PATHS)
    return replace(sandbox, writable=(*sandbox.writable, *shared), readable=(*sandbox.readable, *folders))


def _sandbox_for(found: Found, git: Git, clone: Path | None, endpoints: tuple[Endpoint, ...]) -> Sandbox:
    if clone:
        sandbox = of_clone(found.level, git, clone, os.environ, endpoints)
    else:
        sandbox = of_checkout(found.level, git, os.environ, endpoints)
    return replace(sandbox, readable=(*sandbox.readable, *_named_files(found.wrap)), wrap=found.wrap)


def _split_words(wrap: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(wrap))
    except ValueError as error:
        raise UserError(f"hands.agent.wrap cannot be read: {error}", "fix its quotation marks", usage=True) from None


def _named_files(command: tuple[str, ...] | str) -> Iterator[Path]:
    """The files that an owner's command names by full path."""
    for place in (Path(word) for word in split_command(command) if os.path.isabs(word) and "\0" not in word):
        if place.is_file():
            yield place
            yield from (parent for parent in place.resolve().parents if parent.name == PACKAGES)
