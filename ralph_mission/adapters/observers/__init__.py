"""Sources of signals. Observers change nothing, may fail alone, and are strangers to each other.

A new one is a module with `Settings` and `build`, and one line in `OBSERVERS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers import database, social, web
from ralph_mission.adapters.observers.code import observer as code_observer
from ralph_mission.adapters.observers.commands import observer as command_observer
from ralph_mission.adapters.observers.dependencies import observer as dependency_observer
from ralph_mission.adapters.observers.forge import observer as forge_observer
from ralph_mission.adapters.observers.text import one_line
from ralph_mission.adapters.packages.model import Bumper
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge, Observer
from ralph_mission.values import dataclass

REASON = 300  # characters
S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Sources:
    """What observers may be given to look at; `cache` is a folder for what is dear to find out again."""

    git: Git
    forge: Forge
    cache: Path | None = None
    bumper: Bumper | None = None  # who makes a change of updates; without one they are told alone
    errands: web.Errands = field(default_factory=web.Errands)
    posted: Callable[[], Iterable[Posted]] = tuple  # what of ours went out, newest first
    overheard: Callable[[], Sequence[Mapping[str, Any]]] | None = None  # what Telegram told who looked for orders
    secrets: tuple[str, ...] = field(default=(), repr=False)  # values that nothing may be told of


@dataclass(frozen=True, slots=True)
class ObserverKind(Generic[S]):
    """One kind of observer: what it is told by configuration, and how it is made."""

    settings: type[S]
    build: Callable[[S, Sources], Observer]


OBSERVERS: Mapping[str, ObserverKind[Any]] = {
    "code": ObserverKind(
        code_observer.CodeSettings, lambda settings, sources: code_observer.build(settings, sources.git)
    ),
    "commands": ObserverKind(
        command_observer.CommandSettings,
        lambda settings, sources: command_observer.build(settings, sources.git, sources.cache, sources.secrets),
    ),
    "database": ObserverKind(
        database.DatabaseSettings, lambda settings, sources: database.build(settings, sources.git)
    ),
    "dependencies": ObserverKind(
        dependency_observer.DependencySettings,
        lambda settings, sources: dependency_observer.build(
            settings, sources.git, sources.cache, sources.bumper, pulls=lambda: sources.forge.pulls("open")
        ),
    ),
    "forge": ObserverKind(
        forge_observer.ForgeSettings, lambda settings, sources: forge_observer.build(settings, sources.forge)
    ),
    "social": ObserverKind(
        social.SocialSettings, lambda settings, sources: social.build(settings, sources.posted, sources.overheard)
    ),
    "web": ObserverKind(
        web.WebSettings, lambda settings, sources: web.build(settings, sources.cache, errands=sources.errands)
    ),
}
"""By key below `observers:` in ralph.yml; a key that holds a list makes one observer per item."""


def look_once(observer: Observer, gaze: ObservationContext) -> Observation:
    """Ask one observer, timed. Whatever it raises, but an interrupt, makes it `unavailable`."""
    started = time.monotonic()
    try:
        seen = observer.observe(gaze)
    except (Exception, SystemExit) as error:
        seen = Observation(observer.name, "unavailable", detail=failure_reason(error), cursor=gaze.cursor)
    return replace(seen, seconds=round(time.monotonic() - started, 3))


def failure_reason(error: BaseException) -> str:
    """Why an observer failed, on one line.

    Only our own errors are quoted. Any other may carry a connection string or a token in its
    text, so it is named by its type alone.
    """
    said = str(error) if isinstance(error, UserError | GitError) else f"failed unexpectedly ({type(error).__name__})"
    return one_line(said, REASON)
