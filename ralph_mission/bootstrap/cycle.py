"""The composition root of a cycle: from configuration and environment to ports."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ralph_mission.bootstrap import cages, clones, orders, thinking
from ralph_mission.bootstrap.known import known_secrets
from ralph_mission.bootstrap.press import press
from ralph_mission.config import Config, read
from ralph_mission.config.settings import MemoryPlace
from ralph_mission.forges.local import LocalForge
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.packages import indexes
from ralph_mission.gateways.place import Place, acts_on_github, place
from ralph_mission.gateways.remote import Remote
from ralph_mission.gateways.telegram_orders import TelegramInbox
from ralph_mission.hands import FIXERS
from ralph_mission.hands.bumps import Bumps
from ralph_mission.hands.survey import FixerObserver
from ralph_mission.hands.verify import Workbench
from ralph_mission.mission.deciding import Charter
from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.model import Sighting
from ralph_mission.mission.ports import Clock, Coder, Forge, Gaze, Observer, Ports, Store, Voice, Waker
from ralph_mission.mission.posts import Posted
from ralph_mission.observers import OBSERVERS, Sources, look
from ralph_mission.observers.together import OneAtATime, together
from ralph_mission.report.dashboard import dashboard
from ralph_mission.stores.branch import BranchStore
from ralph_mission.stores.recordings import Recordings, keep_out_of_git
from ralph_mission.trouble import Trouble
from ralph_mission.wakers.dispatch import DispatchWaker, Outcome, Post

if TYPE_CHECKING:
    from ralph_mission.forges.github import GitHubForge

GIT = (2, 38)  # the oldest that can do what we need: merge-tree --write-tree
PATIENCE = 30.0  # seconds that a dispatch may take


@dataclass(frozen=True, slots=True)
class Household:
    """Everything that a command may touch."""

    ports: Ports
    charter: Charter
    config: Config
    git: Git
    store: BranchStore
    recordings: Recordings
    secrets: tuple[str, ...] = field(repr=False)
    github: GitHubForge | None = None

    @property
    def forge(self) -> Forge:
        """Where issues and pulls are."""
        return self.ports.forge


def build(
    repo: Path,
    config: Path | None = None,
    forge: str = "auto",
    *,
    staged: bool = False,
    now: datetime | None = None,
    voice: Voice | None = None,
    spell: Callable[[str], str] = str,
) -> Household:
    """The ports of one repository. `staged` keeps caches and recordings out of it; `now` stops the clock there.

    `spell` writes out a suggested command as it has to be typed.
    Raises Trouble for a repository or a setting that cannot be used.
    """
    git = Git.open(repo)
    _new_enough(git)
    clock, voice = FixedClock(now) if now else SystemClock(), voice or Silence()
    settings = read(git, config)
    if _wants_github(forge, settings):
        ground = _on_github(git, config, forge, clock, voice, staged)
    else:
        ground = _on_this_machine(git, settings, clock, spell)
    settings = ground.settings
    recordings = Recordings(git, secrets=known_secrets())
    chat = None if staged else orders.inbox(settings, os.environ, clock.now)
    ports = Ports(
        clock=clock,
        store=ground.store,
        forge=ground.forge,
        observers=tuple(_observers(settings, git, ground, _cache(git, staged), chat)),
        thinker=thinking.thinker(settings, _cache(git, staged)),
        hands=Workbench(git, settings.hands.verify, settings.hands.verify_timeout, partial(cages.of_patches, settings)),
        recorder=Nowhere() if staged else recordings,
        voice=voice,
        switch=lambda: os.environ.get("RALPH_PAUSED") == "1",
        waker=ground.waker,
        scratch=partial(_scratch, git, staged, settings.hands.agent is None),
        dashboard=partial(
            dashboard, repository=ground.name, slots=settings.limits.active_missions, link=ground.link, how=ground.how
        ),
        coder=None if staged else _coder(git, settings, config, ground.head),
        press=press(settings, git, clock, voice.note),
        looks=partial(together, patience=settings.observers.patience.total_seconds()),
        inbox=chat,
        seal=orders.seal(settings, os.environ),
    )
    charter = _charter(settings, ground.name)
    return Household(ports, charter, settings, git, ground.store, recordings, known_secrets(), ground.github)


def _coder(git: Git, settings: Config, config: Path | None, head: str) -> Coder | None:
    if settings.hands.agent is None:
        return None
    from ralph_mission.bootstrap import coding  # a loop's parts take a while to load

    return coding.coder(git, settings, config, head)


# --- where issues, pulls and memory are ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ground:
    """What differs between a repository on this machine and one on GitHub."""

    name: str
    settings: Config
    forge: Forge
    store: BranchStore
    waker: Waker
    how: Callable[[str, int], str]  # as `Forge.how`, for whoever reads it anywhere
    link: Callable[[int], str]  # the address of an issue or pull, "" where it has none
    github: GitHubForge | None = None
    head: str = ""  # the commit that the settings came from, where it is not the work tree


def bare_forge(git: Git) -> Forge:
    """The forge alone, for saying that nothing else could be built. Raises Trouble."""
    if not acts_on_github(os.environ):
        return LocalForge(git)
    from ralph_mission.forges.github import connect

    return connect(git, place(os.environ))


def _wants_github(forge: str, settings: Config) -> bool:
    wanted = settings.forge.kind if forge == "auto" else forge
    return wanted == "github" or (wanted == "auto" and acts_on_github(os.environ))


def _on_this_machine(git: Git, settings: Config, clock: Clock, spell: Callable[[str], str]) -> Ground:
    memory = settings.memory
    _apart(git, memory, git.resolve(f"refs/heads/{memory.branch}"))
    store = BranchStore(git, clock, branch=memory.branch, path=memory.path, secrets=known_secrets())
    forge, anywhere = LocalForge(git, now=clock.now, spell=spell), LocalForge(git)
    return Ground(_name(git), settings, forge, store, NobodyToWake(), anywhere.how, lambda number: "")


def _on_github(git: Git, config: Path | None, forge: str, clock: Clock, voice: Voice, staged: bool) -> Ground:
    """Settings come from the default branch: neither a work tree nor a pull's head decides what is allowed."""
    from ralph_mission.forges.github import connect

    where = place(os.environ)
    remote = Remote(git, where.git_url, where.token, keep=not staged)
    name, head = remote.default()
    remote.fetch({f"refs/heads/{name}": head})
    settings = read(git, config, head)
    if forge == "auto" and settings.forge.kind == "local":
        return _on_this_machine(git, settings, clock, str)
    _apart(git, settings.memory, _memory_tip(git, remote, settings.memory))
    memory = settings.memory
    github = connect(
        git,
        where,
        now=clock.now,
        note=voice.note,
        staged=staged,
        memory_branch=memory.branch,
        memory_path=memory.path,
    )
    store = BranchStore(
        git,
        clock,
        branch=memory.branch,
        path=memory.path,
        remote=remote,
        holder=_run(where),
        run_is_over=github.run_is_over,
        vouched=github.anchor,
        secrets=known_secrets(),
    )
    waker = DispatchWaker(where.repository, poster(where))
    link = f"{where.page}/issues/{{}}".format  # of a pull as well: GitHub leads on
    return Ground(where.repository, settings, github, store, waker, github.how, link, github, head)


def poster(where: Place) -> Post:
    """Sends a JSON document to the API of a server, once. What it gives raises OSError when there is no answer."""
    from ralph_mission.forges.github.wire import Wire

    def post(path: str, body: dict[str, Any]) -> Outcome:
        status, _, text = Wire(where.api, where.token, PATIENCE).request("POST", path, body, {})
        with suppress(ValueError, AttributeError):
            return Outcome(status, str(json.loads(text or "{}").get("message", "")))
        return Outcome(status)

    return post


def _memory_tip(git: Git, remote: Remote, memory: MemoryPlace) -> str:
    if memory.branch == MemoryPlace().branch:
        return ""
    tip = remote.head(memory.branch)
    remote.fetch({f"refs/heads/{memory.branch}": tip} if tip else {})
    return tip


def _run(where: Place) -> str:
    """This workflow run as a claim names it; "" outside of one."""
    told = [os.environ.get(f"GITHUB_{name}", "") for name in ("RUN_ID", "RUN_ATTEMPT", "JOB")]
    if not acts_on_github(os.environ) or not told[0]:
        return ""
    runner = os.environ.get("RUNNER_NAME", "")
    return f"{where.page}/actions/runs/{told[0]}/attempts/{told[1] or 1} ({told[2]}, {runner})"


def _new_enough(git: Git) -> None:
    said = git.try_text("version")
    if git_version(said) < GIT:
        raise Trouble(f"{said or 'this git'} is too old", "install git 2.38 or newer")


def git_version(said: str) -> tuple[int, ...]:
    """What `git version` said as numbers that compare; () when it said none."""
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _apart(git: Git, memory: MemoryPlace, tip: str) -> None:
    # A name that was chosen may be taken: nothing of ours, `recover` least of all, may go onto people's commits.
    if memory.branch == MemoryPlace().branch or not tip or git.try_text("ls-tree", tip, memory.path):
        return
    roots = git.text("rev-list", "--max-parents=0", tip).split()
    if any(git.try_text("merge-base", root, "HEAD") for root in roots):
        what = f"the branch {memory.branch} shares its history with your commits: it is none for memory"
        raise Trouble(what, "name another one in memory.branch of ralph.yml", usage=True)


def _charter(settings: Config, name: str) -> Charter:
    return Charter(
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


def _name(git: Git) -> str:
    folder = git.work_tree or git.git_dir
    return folder.name.removesuffix(".git") or "repository"


def _cache(git: Git, staged: bool) -> Path | None:
    return None if staged else git.state_dir / "cache"


def _observers(
    settings: Config, git: Git, ground: Ground, cache: Path | None, chat: TelegramInbox | None
) -> Iterator[Observer]:
    sources = Sources(
        git,
        cast("Forge", OneAtATime(ground.forge)),
        cache,
        bumper=Bumps(git, indexes.hosts(indexes.own_environment())),
        posted=partial(_posted, ground.store),
        overheard=(lambda: tuple(chat.overheard)) if chat else None,
        secrets=known_secrets(),
    )
    for name, kind in OBSERVERS.items():
        section = getattr(settings.observers, name)
        if section is None:  # a source that only works when it is asked for
            continue
        for item in section if isinstance(section, tuple) else (section,):
            yield Watched(kind.build(item, sources))
    for name in settings.hands.fixers:
        yield Watched(FixerObserver(git, FIXERS[name], cache))


def _posted(store: Store) -> tuple[Posted, ...]:
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
            clones.abandon(git, os.environ)
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

    @property
    def seconds(self) -> float:
        """How long it may take at least, where it knows that itself."""
        return float(getattr(self.observer, "seconds", 0))

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
