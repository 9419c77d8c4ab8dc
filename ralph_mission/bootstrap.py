"""The composition root: from configuration and environment to ports. Adapters meet here and nowhere else."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ralph_mission.config import Config, read
from ralph_mission.config.settings import MemoryPlace
from ralph_mission.forges.local import LocalForge
from ralph_mission.gateways.git import Git
from ralph_mission.hands import FIXERS
from ralph_mission.hands.survey import FixerObserver
from ralph_mission.hands.verify import Workbench
from ralph_mission.mission.deciding import Charter
from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.model import Sighting
from ralph_mission.mission.ports import Gaze, Observer, Ports, Voice
from ralph_mission.mission.trouble import Trouble
from ralph_mission.observers import OBSERVERS, Sources, look
from ralph_mission.report.dashboard import dashboard
from ralph_mission.stores.branch import BranchStore
from ralph_mission.stores.recordings import Recordings, keep_out_of_git
from ralph_mission.thinkers.rules import RulesThinker

GIT = (2, 38)  # the oldest that can do what we need: merge-tree --write-tree
SECRET_NAMES = ("TOKEN", "SECRET", "PASSWORD", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "WEBHOOK_URL", "DATABASE_URL")
SHORTEST_SECRET = 8  # characters; anything shorter would be found in ordinary words


@dataclass(frozen=True, slots=True)
class Household:
    """Everything that a command may touch."""

    ports: Ports
    charter: Charter
    config: Config
    git: Git
    store: BranchStore
    forge: LocalForge
    recordings: Recordings
    secrets: tuple[str, ...] = field(repr=False)


def build(
    repo: Path, config: Path | None = None, forge: str = "auto", *,
    staged: bool = False, now: datetime | None = None, voice: Voice | None = None,
    spell: Callable[[str], str] = str,
) -> Household:  # fmt: skip
    """The ports of one repository. `staged` keeps caches and recordings out of it; `now` stops the clock there.

    `spell` writes out a suggested command as it has to be typed.
    Raises Trouble for a repository or a setting that cannot be used.
    """
    git = Git.open(repo)
    _new_enough(git)
    settings = read(git, config)
    _only_local(forge, settings)
    _apart(git, settings.memory)
    clock = FixedClock(now) if now else SystemClock()
    store = BranchStore(git, clock, branch=settings.memory.branch, path=settings.memory.path)
    local = LocalForge(git, now=clock.now, spell=spell)
    recordings = Recordings(git)
    ports = Ports(
        clock=clock,
        store=store,
        forge=local,
        observers=tuple(_observers(settings, git, local, _cache(git, staged))),
        thinker=RulesThinker(dict(settings.thinker.weights)),
        hands=Workbench(git, settings.hands.verify, settings.hands.verify_timeout),
        recorder=Nowhere() if staged else recordings,
        voice=voice or Silence(),
        switch=lambda: os.environ.get("RALPH_PAUSED") == "1",
        waker=NobodyToWake(),
        scratch=partial(_scratch, git, staged),
        dashboard=partial(dashboard, repository=_name(git), slots=settings.limits.active_missions),
    )
    return Household(ports, _charter(settings, git), settings, git, store, local, recordings, known_secrets())


def known_secrets() -> tuple[str, ...]:
    """Values of the environment that must not leave, longest first."""
    named = (value for name, value in os.environ.items() if any(part in name.upper() for part in SECRET_NAMES))
    return tuple(sorted({value for value in named if len(value) >= SHORTEST_SECRET}, key=lambda v: (-len(v), v)))


def _only_local(forge: str, settings: Config) -> None:
    wanted = settings.forge.kind if forge == "auto" else forge
    on_github = wanted == "auto" and os.environ.get("GITHUB_ACTIONS") == "true"
    if wanted == "github" or on_github:
        raise Trouble("the GitHub forge is not part of this version", "use --forge local", usage=True)


def _new_enough(git: Git) -> None:
    said = git.try_text("version")
    if git_version(said) < GIT:
        raise Trouble(f"{said or 'this git'} is too old", "install git 2.38 or newer")


def git_version(said: str) -> tuple[int, ...]:
    """What `git version` said as numbers that compare; () when it said none."""
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _apart(git: Git, place: MemoryPlace) -> None:
    # A name that was chosen may be taken: nothing of ours, `recover` least of all, may go onto people's commits.
    branch = f"refs/heads/{place.branch}"
    if place.branch == MemoryPlace().branch or not git.resolve(branch) or git.try_text("ls-tree", branch, place.path):
        return
    roots = git.text("rev-list", "--max-parents=0", branch).split()
    if any(git.try_text("merge-base", root, "HEAD") for root in roots):
        what = f"the branch {place.branch} shares its history with your commits: it is none for memory"
        raise Trouble(what, "name another one in memory.branch of ralph.yml", usage=True)


def _charter(settings: Config, git: Git) -> Charter:
    return Charter(
        limits=settings.limits.limits(),
        rhythm=settings.schedule.rhythm(),
        owners=settings.owners,
        merge_method=settings.forge.merge_method,
        memory_branch=settings.memory.branch,
        name=_name(git),
    )


def _name(git: Git) -> str:
    folder = git.work_tree or git.git_dir
    return folder.name.removesuffix(".git") or "repository"


def _cache(git: Git, staged: bool) -> Path | None:
    return None if staged else git.state_dir / "cache"


def _observers(settings: Config, git: Git, forge: LocalForge, cache: Path | None) -> Iterator[Observer]:
    sources = Sources(git, forge, cache)
    for name, kind in OBSERVERS.items():
        section = getattr(settings.observers, name)
        for item in section if isinstance(section, tuple) else (section,):
            yield Watched(kind.build(item, sources))
    for name in settings.hands.fixers:
        yield Watched(FixerObserver(git, FIXERS[name], cache))


@contextmanager
def _scratch(git: Git, staged: bool) -> Iterator[str]:
    """A folder for one run. What else the run leaves in `.ralph/` is kept out of git from the start."""
    if not staged:
        keep_out_of_git(git)
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as folder:
        yield folder


@dataclass(frozen=True, slots=True)
class Watched:
    """An observer that is timed, and that cannot bring the cycle down."""

    observer: Observer

    @property
    def name(self) -> str:
        """The observer's own."""
        return self.observer.name

    def observe(self, gaze: Gaze) -> Sighting:
        """One look."""
        return look(self.observer, gaze)


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """`--now`: it is always this moment."""

    moment: datetime

    def now(self) -> datetime:
        """That moment, in UTC."""
        return self.moment.astimezone(UTC)


class Silence:
    """A voice that says nothing."""

    def phase(self, name: str, note: str = "") -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


class NobodyToWake:
    """A waker that asks nobody: whoever runs `ralph cycle` decides when."""

    def wake(self, due: datetime, generation: int) -> Receipt | None:
        """None."""
        return None


class Nowhere:
    """A recorder that keeps nothing: a staged cycle leaves no trace."""

    def record(self, name: str, value: object) -> None:
        """Nothing."""
