"""Sources of signals. Observers are read-only, fail independently, and do not import each other.

A new one is a module with `build`, its settings, and a few lines beside `OBSERVERS` that import it on demand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.looking import one_line
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Observation
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.observers.research import Researcher
    from ralph_mission.adapters.observers.web import SharedRequests
    from ralph_mission.adapters.packages.model import Bumper
    from ralph_mission.adapters.projects.prover import Prover
    from ralph_mission.adapters.projects.setup import ProjectSetup
    from ralph_mission.config.observers import BriefSettings, DependencySettings, WebSettings
    from ralph_mission.mission.model.forge import Posted
    from ralph_mission.mission.model.mission import Finding
    from ralph_mission.mission.model.proposal import ObservationContext
    from ralph_mission.mission.ports import AskAgent, Forge, Observer
    from ralph_mission.mission.proof.exploring import Exploration, ExplorationJob

REASON = 300  # characters


@dataclass(frozen=True, slots=True)
class Sources:
    """What observers may need; `cache`: a folder for expensive results."""

    git: Git
    forge: Forge
    cache: Path | None = None
    bumper: Bumper | None = None  # makes changes for updates; without it they are only reported
    shared_requests: dict[str, SharedRequests] = field(default_factory=dict)  # requests shared by web sources
    posted: Callable[[], Iterable[Posted]] = tuple  # our posts, newest first
    overheard: Callable[[], Sequence[Mapping[str, Any]]] | None = (
        None  # Telegram updates read while looking for commands
    )
    secrets: tuple[str, ...] = field(default=(), repr=False)  # known secret values
    setup: ProjectSetup | None = None  # installs what the project's checks need
    explorer: Callable[[ExplorationJob], Exploration] | None = None  # reads code, if an agent is configured
    prover: Prover | None = None  # judges its claims
    ask: AskAgent | None = None  # researches and writes, if an agent is configured
    backlog: Callable[[], Iterable[Finding]] = tuple  # open findings, best first
    begun: Callable[[], Collection[str]] = tuple  # fingerprints of findings with a mission


def _build_briefs(settings: BriefSettings, sources: Sources) -> Observer:
    from ralph_mission.adapters.observers.briefs import BriefObserver

    ask, backlog = sources.ask, sources.backlog
    if ask is None:
        return BriefObserver(sources.git, sources.cache, begun=sources.begun)

    def make() -> Researcher:
        from ralph_mission.adapters.observers import research  # prompts take a while to load

        return research.Researcher(ask, lambda: research.watched_lines(backlog()))

    return BriefObserver(sources.git, sources.cache, make, sources.begun)


def _build_dependencies(settings: DependencySettings, sources: Sources) -> Observer:
    from ralph_mission.adapters.observers.dependencies import PackageObserver

    def make() -> Observer:
        from ralph_mission.adapters.observers.dependencies import observer

        pulls = partial(sources.forge.pulls, "open")
        alerts = partial(sources.forge.security_alerts, "dependency")
        return observer.build(settings, sources.git, sources.cache, sources.bumper, pulls=pulls, alerts=alerts)

    return PackageObserver(sources.git, make)


def _build_web(settings: WebSettings, sources: Sources) -> Observer:
    from ralph_mission.adapters.observers import web

    sources.shared_requests.setdefault("web", web.SharedRequests())
    return web.build(settings, sources.cache, shared_requests=sources.shared_requests["web"])


def _load(name: str) -> Any:
    """An observer's module, only if it is configured: importing all takes longer than a cycle."""
    return import_module(f"{__name__}.{name}")


OBSERVERS: Mapping[str, Callable[[Any, Sources], Observer]] = {
    "briefs": _build_briefs,
    "ci": lambda settings, of: _load("ci").build(settings, of.forge, of.git, of.cache),
    "code": lambda settings, of: _load("code").build(settings, of.git, of.cache, of.forge),
    "commands": lambda settings, of: _load("commands").build(settings, of.git, of.cache, of.secrets, of.setup),
    "database": lambda settings, of: _load("database").build(settings, of.git),
    "dependencies": _build_dependencies,
    "docs": lambda settings, of: _load("docs").build(settings, of.git, of.cache),
    "explore": lambda settings, of: _load("explore").build(settings, of.git, of.cache, of.explorer, of.prover),
    "forge": lambda settings, of: _load("forge").build(settings, of.forge, of.git, of.cache),
    "releases": lambda settings, of: _load("releases").build(settings, of.git, of.cache),
    "scanners": lambda settings, of: _load("scanners").build(settings, of.git, of.cache, of.secrets, of.setup),
    "social": lambda settings, of: _load("social").build(settings, of.posted, of.overheard),
    "web": _build_web,
}
"""By key below `observers:` in ralph.yml; a list makes one observer per item."""


def look_once(observer: Observer, context: ObservationContext) -> Observation:
    """Run an observer, timed. Any exception except an interrupt makes it `unavailable`."""
    started = time.monotonic()
    try:
        observation = observer.observe(context)
    except (Exception, SystemExit) as error:
        observation = Observation(observer.name, "unavailable", detail=failure_reason(error), cursor=context.cursor)
    return replace(observation, seconds=round(time.monotonic() - started, 3))


def failure_reason(error: BaseException) -> str:
    """Why an observer failed, on one line.

    Only our own errors are quoted. Others may contain a connection string or a token, so only their type is named.
    """
    reason = str(error) if isinstance(error, UserError | GitError) else f"failed unexpectedly ({type(error).__name__})"
    return one_line(reason, REASON)
