"""The composition root of isolation: how far the settings have agents kept apart, and a cage for each use of a run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ralph_mission.config import Config
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.isolation import OPEN, Cage, Level, of_checkout
from ralph_mission.gateways.isolation_probe import Found, insisted
from ralph_mission.gateways.isolation_relay import of_models

PACKAGES = "node_modules"
"""A program in there needs what lies beside it."""


def found(settings: Config) -> Found:
    """The level at which agents of this repository play here. Raises Trouble when it cannot be had."""
    choice = settings.hands.agent
    return insisted(choice.sandbox if choice else None, os.environ)


def of_agent(level: Level, git: Git, names: Iterable[str], command: tuple[str, ...] | str) -> Cage:
    """For sessions in the checkout of an agent that sees `names` of our environment. Raises Trouble."""
    if level == "env":
        return OPEN
    seen = {name: os.environ[name] for name in names if name in os.environ}
    cage = of_checkout(level, git, os.environ, of_models(seen) if level == "bwrap" else ())
    return replace(cage, readable=(*cage.readable, *_named(command)))


def of_checks(level: Level, git: Git) -> Cage:
    """For a project's own checks, which run what an agent wrote and have nobody to talk to. Raises Trouble."""
    return of_checkout(level, git, os.environ, ())


def of_patches(settings: Config, git: Git) -> Cage:
    """For the checks of a change, in a clone of their own: an agent may have written it where one is named."""
    return of_checks(found(settings).level, git) if settings.hands.agent else OPEN


def elsewhere(cage: Cage, git: Git) -> Cage:
    """The same for another checkout. Raises Trouble."""
    if cage.level == "env":
        return cage
    made = of_checkout(cage.level, git, os.environ, cage.endpoints)
    return replace(made, readable=tuple(dict.fromkeys((*made.readable, *cage.readable))))


def _named(command: tuple[str, ...] | str) -> Iterator[Path]:
    """The files that a command names by their full path: an owner wrote it."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # the shell that runs it will say so
        words = []
    for place in (Path(word) for word in words if os.path.isabs(word) and "\0" not in word):
        if place.is_file():
            yield place
            yield from (parent for parent in place.resolve().parents if parent.name == PACKAGES)
