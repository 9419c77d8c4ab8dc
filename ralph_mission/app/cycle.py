"""The composition root: from configuration and environment to everything a command may use.

`AppFactory` is the common start of `ralph work`, `ralph review` and `ralph publish`: memory and forge as in a cycle.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.recordings import Recordings, keep_out_of_git
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.app import hosting
from ralph_mission.app.hosting import FixedClock, QuietProgress, ServiceOptions, SystemClock
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.github import GitHubForge
    from ralph_mission.adapters.report.loop_progress import PlainRunProgress
    from ralph_mission.mission.model.cycle import CycleSettings
    from ralph_mission.mission.operations.inbox import InboxPoller
    from ralph_mission.mission.ports import CycleClock, CyclePorts, CycleProgress, Forge
    from ralph_mission.mission.publishing.publish_now import PublishSetup
    from ralph_mission.mission.transaction import TransactionContext

FLEET_TERMS = "RALPH_FLEET"  # a fleet's plan for one repository; `mission.fleet.model` reads it
GIT = (2, 38)  # the oldest version with what we need: merge-tree --write-tree


@dataclass(frozen=True)  # without slots: what only a cycle needs is built on demand
class App:
    """Everything that a command may use."""

    config: Config
    git: Git
    clock: CycleClock
    store: RecoverableStore
    forge: Forge
    name: str
    recordings: Recordings
    build_ports: Callable[[], CyclePorts]
    secrets: tuple[str, ...] = field(repr=False)
    github: GitHubForge | None = None
    page: str = ""
    head: str = ""  # the settings' commit, if they are not from the work tree

    @cached_property
    def ports(self) -> CyclePorts:
        """A cycle's ports: observers, fixers, publishers and the rest."""
        return self.build_ports()

    @cached_property
    def settings(self) -> CycleSettings:
        """A cycle's settings, with the terms of the fleet that starts it. Raises UserError."""
        settings, terms = cycle_settings(self.config, self.name, self.page), os.environ.get(FLEET_TERMS, "")
        if not terms:
            return settings
        from ralph_mission.mission.fleet.model import apply_terms, parse_terms

        return apply_terms(settings, parse_terms(terms))


def build_app(
    repo: Path,
    config: Path | None = None,
    forge: str = "auto",
    *,
    staged: bool = False,
    now: datetime | None = None,
    progress: CycleProgress | None = None,
    spell: Callable[[str], str] = str,
) -> App:
    """The parts of one repository. `staged`: without caches and recordings; `now`: a fixed clock.

    `spell` spells a suggested command as it has to be typed.
    Raises UserError for an unusable repository or setting.
    """
    git = Git.open(repo)
    refuse_old_git(git)
    clock = FixedClock(now) if now else SystemClock()
    progress = progress or QuietProgress()
    terms, extends = os.environ.get(FLEET_TERMS, ""), ""
    if terms:
        from ralph_mission.mission.fleet.model import parse_terms

        extends = parse_terms(terms).extends
    host = hosting.choose_hosting(git, config, forge, clock, progress, staged=staged, spell=spell, extends=extends)
    recordings = Recordings(git, secrets=environment_secrets())

    def build() -> CyclePorts:
        from ralph_mission.app.ports import build_ports

        return build_ports(git, host, config, clock, progress, recordings=recordings, staged=staged)

    return App(
        config=host.settings,
        git=git,
        clock=clock,
        store=host.store,
        forge=host.forge,
        name=host.name,
        recordings=recordings,
        build_ports=build,
        secrets=environment_secrets(),
        github=host.github,
        page=host.page,
        head=host.head,
    )


def refuse_old_git(git: Git) -> None:
    """Raises UserError for a git version without the features we need."""
    version = git.try_text("version")
    if git_version(version) < GIT:
        raise UserError(f"{version or 'this git'} is too old", "install git 2.38 or newer")


def refuse_links(git: Git) -> None:
    """Refuse links before reading and writing, until a person has checked them. Raises UserError."""
    from ralph_mission.adapters.storage.loop import run_files

    top, ours = git.state_dir.parent, git.state_dir.name  # a separate git directory has another name for it
    names = [name.replace(files.RALPH, ours, 1) for name in run_files.FOLDERS]
    for folder, entries in ((top, names), (git.common_dir, [files.RALPH_IN_GIT])):
        if found := files.links(folder, entries):
            raise UserError(f"{folder / found[0]} is a link", "move it away, then run again")


def git_version(text: str) -> tuple[int, ...]:
    """The version from `git version` as comparable numbers, or ()."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, str):
        yield value
    elif isinstance(value, Collection):
        for one in value:
            yield from _texts(one)


def _require_known_kinds(settings: Config) -> None:
    """Raises UserError for a kind to be watched only that neither Ralph's nor the owner's observers find: it would not
    be. A weight for such a kind does no harm, and other repositories that share these settings may find it.
    """
    from ralph_mission.mission.model.proposal import KINDS

    unknown = [kind for kind in settings.thinker.watch_only if kind not in KINDS]
    if not unknown:
        return
    from difflib import get_close_matches

    own = set(_texts(settings.observers.model_dump()))
    for kind in unknown:
        if kind not in own:
            near = "".join(f"did you mean {one}? " for one in get_close_matches(kind, KINDS, 1))
            next_step = f"{near}There are {', '.join(sorted(KINDS))}"
            raise UserError(f"thinker.watch_only names {kind}, which is not a kind of finding", next_step, usage=True)


def _name_checks(settings: Config) -> str:
    document = json.dumps([settings.hands.verify, settings.hands.setup, settings.hands.verify_timeout])
    return hashlib.sha256(document.encode()).hexdigest()[:8]


def cycle_settings(settings: Config, name: str, page: str = "") -> CycleSettings:
    """The settings of `ralph.yml` for a cycle; `name` and `page` are the repository's, for people.

    Raises UserError for kinds of finding that no observer here finds.
    """
    from ralph_mission.mission.model.cycle import CycleSettings

    if not settings.extensions:
        _require_known_kinds(settings)
    return CycleSettings(
        limits=replace(
            settings.limits.limits(), posts_per_day=settings.publishers.per_day, auto_kinds=settings.hands.auto
        ),
        rhythm=settings.schedule.rhythm(),
        owners=settings.owners,
        merge_method=settings.forge.merge_method,
        memory_branch=settings.memory.branch,
        name=name,
        page=page,
        quiet_hours=settings.publishers.quiet,
        announce=settings.publishers.announce,
        post_pause=settings.publishers.apart,
        watch_only=settings.thinker.watch_only,
        weights=tuple(settings.thinker.weights.items()),
        agent=settings.hands.agent.kind if settings.hands.agent else "",
        checks=_name_checks(settings),
    )


@dataclass(frozen=True, slots=True)
class AppFactory:
    """Opens memory and forge again for each step; `first` is for what does not change meanwhile."""

    options: ServiceOptions
    progress: PlainRunProgress
    spell: Callable[[str], str] = str

    def first(self) -> App:
        """The first one, after showing its warnings. Raises UserError for invalid settings."""
        first = self._opened()
        refuse_links(first.git)
        for warning in first.config.warnings:
            self.progress.note(f"note: {warning}")
        keep_out_of_git(first.git)
        return first

    def context(self) -> TransactionContext:
        """For a step. Raises UserError."""
        from ralph_mission.mission.transaction import TransactionContext

        app = self._opened()
        return TransactionContext(app.ports, app.settings, app.secrets)

    def _opened(self) -> App:
        options = self.options
        return build_app(options.repo, options.config, options.forge, progress=self.progress, spell=self.spell)


def publisher(options: ServiceOptions, progress: PlainRunProgress, spell: Callable[[str], str] = str) -> PublishSetup:
    """Everything the flow needs. Raises UserError for an unusable repository or setting."""
    from ralph_mission.mission.publishing.publish_now import PublishSetup

    factory = AppFactory(options, progress, spell)
    factory.first()
    return PublishSetup(factory.context, time.sleep, progress.note)


@contextmanager
def open_poller(repo: Path, config: Path | None, wait: int, say: Callable[[str], None]) -> Iterator[InboxPoller]:
    """The poller of a checkout's chat. Raises UserError if nothing is set up, or one is already running."""
    from ralph_mission.adapters.storage.loop import run_files
    from ralph_mission.adapters.storage.loop.inbox import Beside, Questions
    from ralph_mission.app.ports import SETUP, patience, telegram_inbox
    from ralph_mission.mission.operations.inbox import InboxPoller

    app = build_app(repo, config)
    chat, root = telegram_inbox(app.config, os.environ, app.clock.now, wait), app.git.work_tree
    if chat is None:
        raise UserError("no one may give commands here", SETUP, usage=True)
    if root is None:
        raise UserError(f"{repo} has no work tree", "name a checkout with --repo DIR", usage=True)
    waits, checkin = (timedelta(seconds=seconds) for seconds in patience(app.config))
    run_files.prepare(root / ".ralph")
    with Questions(root / ".ralph").attended() as ours:
        if not ours:
            raise UserError("ralph agent telegram runs here already", "end the other one first")
        yield InboxPoller(
            chat, app.ports, app.store, app.settings.limits, app.secrets,
            Beside(root, app.git.git_dir, waits), CursorFile(app.git.git_dir / "ralph-telegram"),
            chat.chat, checkin, say,
        )  # fmt: skip  # one value


@dataclass(frozen=True, slots=True)
class CursorFile:
    """`inbox.Note`: one line in a file, beside the lock of loops: sessions work in `.ralph/`."""

    path: Path

    def read(self) -> str:
        """The stored text, or ""."""
        from ralph_mission.adapters.storage.loop import run_files

        return (run_files.read(self.path, 200) or b"").decode(errors="replace").strip()

    def keep(self, cursor: str) -> None:
        """Store it."""
        from ralph_mission.adapters.storage.loop import run_files

        run_files.write(self.path, f"{cursor}\n".encode())
