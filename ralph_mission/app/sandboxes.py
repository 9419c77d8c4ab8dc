"""Composes isolation: how far the settings have agents kept apart, and a sandbox for each use of a run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.fixers.verify import Workbench
from ralph_mission.adapters.git.git import Git
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

HELD = ("loop/state.json", "loop/prd.json", "loop/prd.previous.json", "loop/runs", "loop/verdicts.jsonl")
"""Of the engine's folder what no session writes, where its view can be bounded."""
PACKAGES = "node_modules"
"""A program in there needs what lies beside it."""


def agent_level(settings: Config, environ: Mapping[str, str] = os.environ) -> Found:
    """The level at which agents of this repository play here. Raises UserError when it cannot be had."""
    choice = settings.hands.agent
    level = find_level(choice.sandbox if choice else None, environ)
    return replace(level, wrap=_split_words(choice.wrap)) if choice else level


def agent_sandbox(
    found: Found, git: Git, names: Iterable[str], command: tuple[str, ...] | str, clone: Path | None = None
) -> Sandbox:
    """For sessions in the checkout, or in the `clone` of it, of an agent that sees `names` of our environment. Raises
    UserError."""
    if found.level == "env":
        return Sandbox(wrap=found.wrap)
    seen = {name: os.environ[name] for name in names if name in os.environ}
    sandbox = _sandbox_for(found, git, clone, of_models(seen))
    return replace(sandbox, readable=tuple(dict.fromkeys((*sandbox.readable, *_named_files(command)))))


def checks_sandbox(found: Found, git: Git, clone: Path | None = None) -> Sandbox:
    """For a project's own checks, which run what an agent wrote and have nobody to talk to. Raises UserError."""
    return _sandbox_for(found, git, clone, ())


def patch_sandbox(settings: Config, git: Git) -> Sandbox:
    """For the checks of a change, in a clone of their own: an agent may have written it where one is named."""
    return checks_sandbox(agent_level(settings), git) if settings.hands.agent else Sandbox()


def project_setup(
    settings: Config, git: Git, place: Path | None, note: Callable[[str], None] = lambda _: None
) -> ProjectSetup:
    """What installs what checks and agents need: with the network, without a credential, and kept apart where it can
    be had. `place` keeps results."""
    level: Level = "env" if missing_bwrap()[0] else "bwrap"

    def kept_apart(clone: Git) -> Sandbox:
        sandbox = of_clone(level, git, clone.work_tree or clone.git_dir, os.environ)
        return replace(sandbox, endpoints=None)

    chosen = settings.hands.setup
    return ProjectSetup(git, place, None if chosen == "auto" else chosen, sandbox_for=kept_apart, note=note)


def workbench(
    settings: Config, git: Git, checks: tuple[str, ...], note: Callable[[str], None] = lambda _: None
) -> Workbench:
    """Runs checks as an agent's are run, kept apart as agents are. Raises UserError."""
    found = agent_level(settings)
    return Workbench(
        git, checks, settings.hands.verify_timeout, lambda clone: checks_sandbox(found, clone),
        project_setup(settings, git, git.state_dir / "setup", note), git.state_dir / "cache/base", note,
    )  # fmt: skip  # one call


def fixer_sandbox(clone: Git) -> Sandbox:
    """For a tool of the project's that changes files in its clone: no network, where that can be had."""
    level: Level = "env" if missing_bwrap()[0] else "bwrap"
    return of_clone(level, clone, clone.work_tree or clone.git_dir, os.environ, ())


def writable_elsewhere(sandbox: Sandbox, git: Git) -> Sandbox:
    """The same for another checkout. Raises UserError."""
    if sandbox.level == "env":
        return sandbox
    made = of_checkout(sandbox.level, git, os.environ, sandbox.endpoints)
    return replace(made, readable=tuple(dict.fromkeys((*made.readable, *sandbox.readable))), wrap=sandbox.wrap)


def sharing(sandbox: Sandbox, ours: Path) -> Sandbox:
    """The same for a session that leaves words, tasks and notes in the engine's folder `ours`, and nothing else."""
    if sandbox.level == "env":
        return sandbox
    shared = (ours / "agent", ours / "loop")
    held = tuple(ours / name for name in HELD)
    return replace(sandbox, writable=(*sandbox.writable, *shared), readable=(*sandbox.readable, *held))


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
    """The files that a command names by their full path: an owner wrote it."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # the shell that runs it will say so
        words = []
    for place in (Path(word) for word in words if os.path.isabs(word) and "\0" not in word):
        if place.is_file():
            yield place
            yield from (parent for parent in place.resolve().parents if parent.name == PACKAGES)
