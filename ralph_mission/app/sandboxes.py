"""Composes isolation: the settings' isolation of agents, and a sandbox for each use in a run."""

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
"""Parts of the engine's folder that no session writes, if its view can be restricted."""
PACKAGES = "node_modules"
"""Programs in there need the files beside them."""


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


def workbench(
    settings: Config, git: Git, checks: tuple[str, ...], note: Callable[[str], None] = lambda _: None
) -> Workbench:
    """Runs checks like an agent's, isolated like agents. Raises UserError."""
    found = agent_level(settings)
    return Workbench(
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
    folders = tuple(ours / name for name in HELD)
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
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # the shell that runs it will report it
        words = []
    for place in (Path(word) for word in words if os.path.isabs(word) and "\0" not in word):
        if place.is_file():
            yield place
            yield from (parent for parent in place.resolve().parents if parent.name == PACKAGES)
