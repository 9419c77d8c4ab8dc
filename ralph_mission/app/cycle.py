"""The composition root of the thinker: rules, or a model with rules behind it.

The composition root of a cycle: from configuration and environment to ports.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ralph_mission.adapters.chat.telegram import TelegramInbox
from ralph_mission.adapters.files import safe_paths
from ralph_mission.adapters.fixers import FIXERS
from ralph_mission.adapters.fixers.bumps import Bumps
from ralph_mission.adapters.fixers.verify import FixerObserver, Workbench
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import OBSERVERS, Sources, look_once
from ralph_mission.adapters.observers.together import OneAtATime, together
from ralph_mission.adapters.packages import registries
from ralph_mission.adapters.report.dashboard import dashboard
from ralph_mission.adapters.storage.loop import place
from ralph_mission.adapters.storage.memory.recordings import Recordings, keep_out_of_git
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.adapters.thinkers.rules import RulesThinker
from ralph_mission.app import agents, hosting, sandboxes
from ralph_mission.app import chat as orders
from ralph_mission.app.networks import build_publishers
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.app.stand_ins import FixedClock, Nowhere, QuietProgress, SystemClock
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop import cost
from ralph_mission.loop.model.state import SessionUsage
from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Coder, CyclePorts, CycleProgress, Forge, Observer, Store, Thinker
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.github.forge import GitHubForge


def thinker(settings: Config, cache: Path | None) -> Thinker:
    """Who ranks findings here. Without a place for caches the cycle is a staged one, which asks no model."""
    rules = RulesThinker(dict(settings.thinker.weights))
    if settings.thinker.kind == "rules":
        return rules
    from ralph_mission.adapters.thinkers import models
    from ralph_mission.adapters.thinkers.llm import Bill, LlmThinker
    from ralph_mission.adapters.thinkers.models import ModelAsk

    chosen = settings.thinker
    bill = Bill(partial(price, settings), chosen.max_tokens)
    access = partial(models.access, chosen.model, os.environ)
    ask = ModelAsk(access, chosen.seconds, chosen.tries, chosen.max_tokens) if cache else None
    return LlmThinker(chosen, rules, ask, bill, partial(secrets.token_hex, 8), environment_secrets(), cache)


def price(settings: Config, read: int, written: int) -> float | None:
    """USD for tokens of the thinker's model: by the owners' prices, then by what is listed; None: nobody knows."""
    from ralph_mission.adapters.thinkers import models

    own = {name: one.model_dump() for name, one in settings.cost.prices.items()}
    dollars = cost.price(SessionUsage(1, read, written), settings.thinker.model, own)
    if dollars is not None:
        return dollars
    provider, _, name = settings.thinker.model.partition(":")
    return models.listed_price(provider, name, read, written)


GIT = (2, 38)  # the oldest that can do what we need: merge-tree --write-tree


@dataclass(frozen=True, slots=True)
class App:
    """Everything that a command may touch."""

    ports: CyclePorts
    charter: CycleSettings
    config: Config
    git: Git
    store: RecoverableStore
    recordings: Recordings
    secrets: tuple[str, ...] = field(repr=False)
    github: GitHubForge | None = None

    @property
    def forge(self) -> Forge:
        """Where issues and pulls are."""
        return self.ports.forge


def build_app(
    repo: Path,
    config: Path | None = None,
    forge: str = "auto",
    *,
    staged: bool = False,
    now: datetime | None = None,
    voice: CycleProgress | None = None,
    spell: Callable[[str], str] = str,
) -> App:
    """The ports of one repository. `staged` keeps caches and recordings out of it; `now` stops the clock there.

    `spell` writes out a suggested command as it has to be typed.
    Raises UserError for a repository or a setting that cannot be used.
    """
    git = Git.open(repo)
    _new_enough(git)
    clock, voice = FixedClock(now) if now else SystemClock(), voice or QuietProgress()
    host = hosting.choose_hosting(git, config, forge, clock, voice, staged=staged, spell=spell)
    settings = host.settings
    recordings = Recordings(git, secrets=environment_secrets())
    chat = None if staged else orders.inbox(settings, os.environ, clock.now)
    ports = CyclePorts(
        clock=clock,
        store=host.store,
        forge=host.forge,
        observers=tuple(_observers(settings, git, host, _cache(git, staged), chat)),
        thinker=thinker(settings, _cache(git, staged)),
        hands=Workbench(
            git, settings.hands.verify, settings.hands.verify_timeout, partial(sandboxes.patch_sandbox, settings)
        ),
        recorder=Nowhere() if staged else recordings,
        voice=voice,
        switch=lambda: os.environ.get("RALPH_PAUSED") == "1",
        waker=host.waker,
        scratch=partial(_scratch, git, staged, settings.hands.agent is None),
        dashboard=partial(
            dashboard, repository=host.name, slots=settings.limits.active_missions, link=host.link, how=host.how
        ),
        coder=None if staged else _coder(git, settings, config, host.head),
        press=build_publishers(settings, git, clock, voice.note),
        looks=partial(together, patience=settings.observers.patience.total_seconds()),
        inbox=chat,
        seal=orders.seal(settings, os.environ),
    )
    charter = _charter(settings, host.name)
    return App(ports, charter, settings, git, host.store, recordings, environment_secrets(), host.github)


def _coder(git: Git, settings: Config, config: Path | None, head: str) -> Coder | None:
    if settings.hands.agent is None:
        return None
    from ralph_mission.app import agents  # a loop's parts take a while to load

    return agents.coder(git, settings, config, head)


def _new_enough(git: Git) -> None:
    said = git.try_text("version")
    if git_version(said) < GIT:
        raise UserError(f"{said or 'this git'} is too old", "install git 2.38 or newer")


def refuse_links(git: Git) -> None:
    """For whoever is about to look and write: behind a link nothing is, until a person has looked. Raises UserError."""
    top, ours = git.state_dir.parent, git.state_dir.name  # which a git directory that stands apart calls otherwise
    names = [name.replace(safe_paths.RALPH, ours, 1) for name in place.FOLDERS]
    for folder, kept in ((top, names), (git.common_dir, [safe_paths.RALPH_IN_GIT])):
        if found := safe_paths.links(folder, kept):
            raise UserError(f"{folder / found[0]} is a link", "move it away, then run again")


def git_version(said: str) -> tuple[int, ...]:
    """What `git version` said as numbers that compare; () when it said none."""
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _charter(settings: Config, name: str) -> CycleSettings:
    return CycleSettings(
        limits=replace(settings.limits.limits(), posts_per_day=settings.publishers.per_day),
        rhythm=settings.schedule.rhythm(),
        owners=settings.owners,
        merge_method=settings.forge.merge_method,
        memory_branch=settings.memory.branch,
        name=name,
        quiet_hours=settings.publishers.quiet,
        announce=settings.publishers.announce,
        post_pause=settings.publishers.apart,
    )


def _cache(git: Git, staged: bool) -> Path | None:
    return None if staged else git.state_dir / "cache"


def _observers(
    settings: Config, git: Git, host: hosting.Hosting, cache: Path | None, chat: TelegramInbox | None
) -> Iterator[Observer]:
    sources = Sources(
        git,
        cast("Forge", OneAtATime(host.forge)),
        cache,
        bumper=Bumps(git, registries.hosts(registries.own_environment())),
        posted=partial(_read_posted, host.store),
        overheard=(lambda: tuple(chat.overheard)) if chat else None,
        secrets=environment_secrets(),
    )
    for name, kind in OBSERVERS.items():
        section = getattr(settings.observers, name)
        if section is None:  # a source that only works when it is asked for
            continue
        for item in section if isinstance(section, tuple) else (section,):
            yield ProgressObserver(kind.build(item, sources))
    for name in settings.hands.fixers:
        yield ProgressObserver(FixerObserver(git, FIXERS[name], cache))


def _read_posted(store: Store) -> tuple[Posted, ...]:
    past = store.recall()
    return past.state.posted if past else ()


@contextmanager
def _scratch(git: Git, staged: bool, alone: bool) -> Iterator[str]:
    """A folder for one run. What else the run leaves in `.ralph/` is kept out of git from the start.

    `alone`: no agent works on missions, and what one had begun is gone.
    """
    if not staged:
        keep_out_of_git(git)
        if alone:
            agents.abandon(git, os.environ)
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as folder:
        yield folder


@dataclass(frozen=True, slots=True)
class ProgressObserver:
    """An observer that is timed, and that cannot bring the cycle down."""

    observer: Observer

    @property
    def name(self) -> str:
        """The observer's own."""
        return self.observer.name

    @property
    def seconds(self) -> float:
        """How long it may take at least, where it knows that itself."""
        return float(getattr(self.observer, "seconds", 0))

    def observe(self, gaze: ObservationContext) -> Observation:
        """One look."""
        return look_once(self.observer, gaze)
