"""A cycle's ports for observing, ranking, verifying, coding, publishing, waking and the owners' chat, by configuration
and environment. Loaded if a cycle or a chat runs, not by commands that only read memory.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ralph_mission.adapters.chat import ADDRESS, API, TOKEN, Bot, TelegramInbox
from ralph_mission.adapters.fixers import FIXERS
from ralph_mission.adapters.fixers.verify import CheckRunner, FixerObserver
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import OBSERVERS, Sources, look_once
from ralph_mission.adapters.observers.looking import OneAtATime, together
from ralph_mission.adapters.publishers.channel import Channel, OutboxFolder
from ralph_mission.adapters.publishers.publisher import PublisherByNetwork, png
from ralph_mission.adapters.report.dashboard import dashboard
from ralph_mission.adapters.storage.memory.recordings import Recordings, keep_out_of_git
from ralph_mission.adapters.thinkers import RulesThinker
from ralph_mission.app import hosting
from ralph_mission.app.extensions import build_extensions
from ralph_mission.app.extras import needed_extras
from ralph_mission.app.hosting import Nowhere, switched_off
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.loop import FixerCommand
from ralph_mission.config.settings import NETWORKS, Config, OutboxSettings, Publishers
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command, missing_module
from ralph_mission.loop.model.spec import RunWatch
from ralph_mission.mission.model.forge import OUTBOX
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.mission import Observation, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import (
    AgentQuestion,
    AskAgent,
    Coder,
    CycleClock,
    CyclePorts,
    CycleProgress,
    Forge,
    Observer,
    PaidObserver,
    Parsed,
    PostPublisher,
    Seal,
    Store,
    Thinker,
)
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.fixers.commands import CommandFixes
    from ralph_mission.adapters.packages.model import Bumper
    from ralph_mission.adapters.projects.setup import ProjectSetup
    from ralph_mission.adapters.sandbox.isolation import Sandbox
    from ralph_mission.config.observers import ForgeSettings

SETUP = f"set {TOKEN}, and list your chat in telegram.chats of ralph.yml: docs/publishing.md#telegram"


def build_ports(
    git: Git,
    host: hosting.Hosting,
    config: Path | None,
    clock: CycleClock,
    progress: CycleProgress,
    *,
    recordings: Recordings,
    staged: bool = False,
) -> CyclePorts:
    """The ports of a repository, with the `host` of its issues and memory; `config`: another settings file."""
    settings, cache = host.settings, None if staged else git.state_dir / "cache"
    setup = _setup(settings, git, staged, progress)
    chat = None if staged else telegram_inbox(settings, os.environ, clock.now)
    return CyclePorts(
        clock=clock,
        store=host.store,
        forge=host.forge,
        observers=tuple(_observers(settings, git, host, cache, chat, setup, progress.note)),
        thinker=thinker(settings, cache, git.work_tree),
        hands=CheckRunner(
            git,
            settings.hands.verify,
            settings.hands.verify_timeout,
            partial(_patch_sandbox, settings),
            setup,
            None if cache is None else cache / "base",
            progress.note,
        ),
        recorder=Nowhere() if staged else recordings,
        progress=progress,
        switch=switched_off,
        waker=host.waker,
        scratch=partial(_scratch, git, staged, settings.hands.agent is None),
        dashboard=partial(dashboard, repository=host.name, link=host.link),
        coder=None if staged else _coder(git, settings, config, host.head, progress.watch),
        publisher=build_publishers(settings, git, clock, progress.note),
        lookups=partial(together, patience=settings.observers.patience.total_seconds()),
        inbox=chat,
        seal=telegram_seal(settings, os.environ),
        ask=None if staged else _ask(settings, git),
    )


def _patch_sandbox(settings: Config, git: Git) -> Sandbox:
    from ralph_mission.app import workplaces

    return workplaces.patch_sandbox(settings, git)


def _setup(settings: Config, git: Git, staged: bool, progress: CycleProgress) -> ProjectSetup | None:
    """The set-up for checks, if any. A staged cycle uses one that is there, and keeps none."""
    own = any(isinstance(fixer, FixerCommand) for fixer in settings.hands.fixers)
    if not settings.hands.verify and not own and not any(command.setup for command in settings.observers.commands):
        return None
    from ralph_mission.app import workplaces

    setup = workplaces.project_setup(settings, git, git.state_dir / "setup", progress.note)
    return replace(setup, keeps=not staged)


def thinker(settings: Config, cache: Path | None, checkout: Path | None = None) -> Thinker:
    """The thinker that ranks findings. Without a cache folder the cycle is staged and uses no model."""
    rules = RulesThinker(dict(settings.thinker.weights))
    other: Thinker | None = next(build_extensions(settings, "thinker", checkout, rules), None) if cache else None
    if other:
        return other
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
    """USD for tokens of the thinker's model: by the owners' prices, then by list prices; None if unknown."""
    from ralph_mission.adapters.thinkers import models
    from ralph_mission.loop import cost
    from ralph_mission.loop.model.state import SessionUsage

    own = {name: one.model_dump() for name, one in settings.cost.prices.items()}
    dollars = cost.price(SessionUsage(1, read, written), settings.thinker.model, own)
    if dollars is not None:
        return dollars
    provider, _, name = settings.thinker.model.partition(":")
    return models.listed_price(provider, name, read, written)


def _coder(git: Git, settings: Config, config: Path | None, head: str, watch: RunWatch) -> Coder | None:
    if settings.hands.agent is None:
        return None
    from ralph_mission.app import agent_jobs  # a loop's parts take a while to load

    return agent_jobs.build_coder(git, settings, config, head, watch)


def _ask(settings: Config, git: Git) -> AskAgent | None:
    """The model for writing and research, loaded on first use."""
    if settings.hands.agent is None:
        return None

    def ask(question: AgentQuestion, parse: Callable[[str], Parsed]) -> tuple[Parsed | None, str, Usage]:
        from ralph_mission.app.agent_jobs import AgentSessions

        return AgentSessions(git, settings)(question, parse)

    return ask


def forge_watch(settings: Config) -> ForgeSettings:
    """The value of `forge.stale_after`, or an older file's `observers.forge` if that waits longer."""
    older, patience = settings.observers.forge, settings.forge.stale_after
    if "stale_after" in older.model_fields_set:
        patience = max(patience, older.stale_after)
    return older.model_copy(update={"stale_after": patience})


ON_GITHUB = ("ci",)
"""Observers of features that only GitHub has."""


def _observers(
    settings: Config,
    git: Git,
    host: hosting.Hosting,
    cache: Path | None,
    chat: TelegramInbox | None,
    setup: ProjectSetup | None,
    note: Callable[[str], None],
) -> Iterator[Observer]:
    packages = settings.observers.dependencies
    sources = Sources(
        git,
        cast("Forge", OneAtATime(host.forge)),
        cache,
        bumper=_bumper(git) if packages and packages.updates else None,
        posted=lambda: _recall_state(host.store).posted,
        ask=_ask(settings, git) if cache else None,
        backlog=lambda: _recall_state(host.store).backlog,
        begun=lambda: frozenset(one for mission in _recall_state(host.store).missions for one in mission.members),
        overheard=(lambda: tuple(chat.overheard)) if chat else None,
        secrets=environment_secrets(),
        setup=setup,
    )
    if settings.observers.explore is not None and settings.hands.agent is not None and cache:
        from ralph_mission.app.agent_jobs import AgentSessions, build_prover, explore  # they take a while to load

        prover = build_prover(settings, git, cache, note)
        sources = replace(sources, explorer=partial(explore, AgentSessions(git, settings)), prover=prover)
    for name, build in OBSERVERS.items():
        section = getattr(settings.observers, name, None)
        if name == "forge":
            section = forge_watch(settings)
        if section is None:  # a source that only works on demand
            continue
        if name in ON_GITHUB and not host.github:
            continue
        for item in section if isinstance(section, tuple) else (section,):
            yield ProgressObserver(build(item, sources))
    if host.github:
        from ralph_mission.adapters.observers.forge import AlertObserver

        yield ProgressObserver(AlertObserver(sources.forge))
    for observer in build_extensions(settings, "observer", git.work_tree, sources):
        yield ProgressObserver(observer)
    others = build_extensions(settings, "fixer", git.work_tree)
    for fixer in (*(FIXERS[name] for name in settings.hands.fixers if name in FIXERS), *others):
        yield ProgressObserver(FixerObserver(git, fixer, cache))
    for observer in _command_fixers(settings, git, cache, setup):
        yield ProgressObserver(observer)


def _command_fixers(
    settings: Config, git: Git, cache: Path | None, setup: ProjectSetup | None
) -> Iterator[CommandFixes]:
    """The repository's own tools if there are checks to verify their changes, and the owner's commands."""
    if setup is None:
        return
    from ralph_mission.adapters.fixers.commands import CommandFixes, owners_fixer
    from ralph_mission.app import workplaces

    checks = {command.name: command.run for command in settings.observers.commands}
    most = settings.limits.limits().auto_pr_lines
    for fixer in settings.hands.fixers:
        if isinstance(fixer, FixerCommand):
            own = (owners_fixer(fixer.name, fixer.run, checks),)
            yield CommandFixes(f"fixers.{fixer.name}", git, setup, workplaces.fixer_sandbox, most, cache, own)
        elif fixer == "project" and settings.hands.verify:
            yield CommandFixes("fixers.project", git, setup, workplaces.fixer_sandbox, most, cache)


def _bumper(git: Git) -> Bumper:
    from ralph_mission.adapters.fixers.bumps import Bumps  # package managers take a while to load
    from ralph_mission.adapters.packages import registries

    return Bumps(git, registries.hosts(registries.own_environment()))


def _recall_state(store: Store) -> OpenState:
    past = store.recall()
    return past.state if past else OpenState()


@contextmanager
def _scratch(git: Git, staged: bool, alone: bool) -> Iterator[str]:
    """A folder for one run. Other files of the run in `.ralph/` are excluded from git from the start.

    `alone`: no agent works on missions, and their clones are removed.
    """
    if not staged:
        keep_out_of_git(git)
        if alone:
            hosting.abandon_clones(git, os.environ)
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as folder:
        yield folder


@dataclass(frozen=True, slots=True)
class ProgressObserver:
    """A timed observer that cannot crash the cycle."""

    observer: Observer

    @property
    def name(self) -> str:
        """The observer's own."""
        return self.observer.name

    @property
    def seconds(self) -> float:
        """Its own minimum time limit, if it has one."""
        return float(getattr(self.observer, "seconds", 0))

    def asks(self, context: ObservationContext) -> bool:
        """Whether it would use a model now, if it can."""
        return isinstance(self.observer, PaidObserver) and self.observer.asks(context)

    def observe(self, context: ObservationContext) -> Observation:
        """One look."""
        return look_once(self.observer, context)


# --- publishing: which networks are named in ralph.yml and set up in the environment ---


def build_publishers(
    settings: Config,
    git: Git,
    clock: CycleClock,
    note: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> PostPublisher:
    """The usable networks; `note` gets the reason for each unusable one. The outbox replaces all others."""
    publishers, ready = settings.publishers, dict[str, Channel]()
    for network, publisher in build_channels(publishers, environment):
        if isinstance(publisher, UserError):
            note(f"publishers: {publisher.what}; {publisher.next_step}")
        else:
            ready[network] = publisher
    if "charts" in needed_extras(settings) and (module := missing_module("charts")):
        note(f"publishers: posts go without charts, which need {module}; {install_command('charts')}")
    for channel in build_extensions(settings, "publisher", git.work_tree, environment):
        if channel.network in (*NETWORKS, *ready):
            raise UserError(f"there are two networks {channel.network}", "take one out of ralph.yml", usage=True)
        ready[channel.network] = channel
    outboxed = outbox(publishers, git, clock)
    if publishers.outbox is not None or not ready:
        ready[OUTBOX] = outboxed
    order = [network for network in dict.fromkeys((*NETWORKS, *ready)) if network in ready]
    return PublisherByNetwork(publishers, tuple(ready[network] for network in order), outboxed)


def build_channels(settings: Publishers, environment: Mapping[str, str]) -> Iterator[tuple[str, Channel | UserError]]:
    """Each named network, or why it is unusable: missing secrets (`Unset`) or another error."""
    for network in NETWORKS:
        if network != OUTBOX and getattr(settings, network) is not None:
            from ralph_mission.adapters.publishers.networks import BUILDS  # takes a while to load

            try:
                yield network, BUILDS[network](png, environment)
            except UserError as problem:
                yield network, problem


def outbox(settings: Publishers, git: Git, clock: CycleClock) -> OutboxFolder:
    """The folder: as configured, else in the folder that git ignores."""
    if settings.outbox is None or settings.outbox == OutboxSettings() or git.work_tree is None:
        folder = git.state_dir / "outbox"
    else:
        folder = git.work_tree / settings.outbox.path
    return OutboxFolder(folder, clock.now, png)


def telegram_inbox(
    settings: Config, environ: Mapping[str, str], now: Callable[[], datetime], wait: int = 0
) -> TelegramInbox | None:
    """The inbox; None if no owner is listed, RObot is switched off, or the environment has no bot.

    `wait`: seconds that an empty answer may take.
    """
    telegram, bot = settings.telegram, bot_of(environ)
    if bot is None or not (telegram.chats or telegram.users):
        return None
    first = (*telegram.chats, *telegram.users)[0]
    return TelegramInbox(bot, frozenset(telegram.chats), frozenset(telegram.users), wait, first, now=now)


def bot_of(environ: Mapping[str, str]) -> Bot | None:
    """The bot of the environment."""
    token = environ.get(TOKEN, "")
    return Bot(token, environ.get(ADDRESS) or API) if token else None


def telegram_seal(settings: Config, environ: Mapping[str, str]) -> Seal | None:
    """The seal that proves orders in memory are genuine; None if no orders are accepted."""
    telegram, bot = settings.telegram, bot_of(environ)
    return bot.seal if bot and (telegram.chats or telegram.users) else None


def patience(settings: Config) -> tuple[int, int]:
    """Seconds that a question waits for a person, and between two progress messages of a loop."""
    return settings.telegram.timeout_seconds, settings.telegram.checkin_interval_seconds
