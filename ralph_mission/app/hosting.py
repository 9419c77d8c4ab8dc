"""The host of a repository's issues, pull requests and memory: this machine or GitHub. And minimal implementations of
some ports: time, and parts that a command does not need.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters import files
from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import Remote, RepositoryPlace, acts_on_github, place, read_shared
from ralph_mission.adapters.report.progress import begin_phase
from ralph_mission.adapters.storage.memory import provenance
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.adapters.wakers import DispatchAnswer, DispatchWaker, Post
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.reading import NAME, read
from ralph_mission.config.settings import Config, MemoryPlace
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import UNWATCHED, RunWatch
from ralph_mission.mission.ports import CycleClock, CycleProgress, Forge, Waker
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.github import GitHubForge
    from ralph_mission.mission.model.effects import Receipt

PATIENCE = 30.0  # seconds that a dispatch may take


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """One command line: the repository, its settings, and the host of its issues."""

    repo: Path = Path()
    config: Path | None = None
    forge: str = "auto"


@dataclass(frozen=True, slots=True)
class AgentServiceOptions(ServiceOptions):
    """One that runs an agent; empty texts and None mean: as in the settings."""

    agent: str = ""
    command: str = ""
    model: str = ""
    runtime: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Hosting:
    """The differences between a repository on this machine and one on GitHub."""

    name: str
    settings: Config
    forge: Forge
    store: RecoverableStore
    waker: Waker
    how: Callable[[str, int], str]  # as `Forge.how`, for any reader
    link: Callable[[int], str]  # the URL of an issue or pull request, or ""
    github: GitHubForge | None = None
    head: str = ""  # the settings' commit, if they are not from the work tree
    page: str = ""  # the URL of the repository's page, or ""


def choose_hosting(
    git: Git,
    config: Path | None,
    forge: str,
    clock: CycleClock,
    progress: CycleProgress,
    *,
    staged: bool = False,
    spell: Callable[[str], str] = str,
    extends: str = "",
) -> Hosting:
    """The hosting, by `--forge`, the settings and the environment. `extends`: the settings of a repository that has
    none of its own. Raises UserError."""
    if forge == "auto" and acts_on_github(os.environ):  # the checkout does not count: it may be a pull request's
        return _on_github(git, config, forge, clock, progress, staged, spell, extends)
    settings = read(git, read_shared, config, otherwise=extends)
    if forge == "github" or (forge == "auto" and settings.forge.kind == "github"):
        return _on_github(git, config, forge, clock, progress, staged, spell, extends)
    if settings.extensions and acts_on_github(os.environ):
        what = "extensions are taken from the default branch alone, and this ralph.yml is that of a checkout"
        raise UserError(what, "let forge.kind be auto or github there, or take extensions out", usage=True)
    return on_this_machine(git, settings, clock, spell)


def _of_default_branch(git: Git, config: Path | None, head: str, extends: str) -> Config:
    """The settings of the commit `head`, or of the file that `--config` names."""
    name = committed_name(git, config)
    if config and name:
        return read(git, read_shared, commit=head, name=name)
    return read(git, read_shared, config, head, otherwise=extends)


def committed_name(git: Git, config: Path | None) -> str:
    """The settings' path in the default branch; "" for a file that is read in place.

    In a workflow, a file of the checkout that `--config` names is read from that branch: the checkout may be a pull
    request's.
    """
    if config is None:
        return NAME
    top, place = git.work_tree, Path(os.path.abspath(config))
    if top is None or not acts_on_github(os.environ):
        return ""
    for file, folder in ((place, Path(os.path.abspath(top))), (place.resolve(), top.resolve())):
        if file.is_relative_to(folder):
            return file.relative_to(folder).as_posix()
    return ""


def on_this_machine(git: Git, settings: Config, clock: CycleClock, spell: Callable[[str], str]) -> Hosting:
    """Issues and pull requests as files, memory on a local branch, no waker. Raises UserError."""
    memory = settings.memory
    _apart(git, memory, git.resolve(f"refs/heads/{memory.branch}"))
    store = RecoverableStore(git, clock, branch=memory.branch, path=memory.path, secrets=environment_secrets())
    if any(one.kind == "forge" for one in settings.extensions):
        from ralph_mission.app.extensions import build_extensions

        (other,) = build_extensions(settings, "forge", git.work_tree, git, clock.now)
        return Hosting(_name(git), settings, other, store, NobodyToWake(), other.how, lambda number: "")
    forge, anywhere = LocalForge(git, now=clock.now, spell=spell), LocalForge(git)
    return Hosting(_name(git), settings, forge, store, NobodyToWake(), anywhere.how, lambda number: "")


def _on_github(
    git: Git,
    config: Path | None,
    forge: str,
    clock: CycleClock,
    progress: CycleProgress,
    staged: bool,
    spell: Callable[[str], str],
    extends: str,
) -> Hosting:
    """Settings come from the default branch: neither a work tree nor a pull request's head decides what is allowed."""
    from ralph_mission.adapters.forges.github import connect

    where = place(os.environ)
    remote = Remote(git, where.git_url, where.credential, keep=not staged)
    name, head = remote.default()
    remote.fetch({f"refs/heads/{name}": head})
    settings = _of_default_branch(git, config, head, extends)
    if forge == "auto" and settings.forge.kind == "local":
        return replace(on_this_machine(git, settings, clock, spell), head=head)
    _apart(git, settings.memory, _memory_tip(git, remote, settings.memory))
    memory = settings.memory
    github = connect(
        git,
        where,
        now=clock.now,
        note=progress.note,
        staged=staged,
        required_checks_only=settings.merge.checks == "required",
    )
    store = RecoverableStore(
        git,
        clock,
        branch=memory.branch,
        path=memory.path,
        remote=github.remote,
        author=github.people.author,
        holder=_run(where),
        run_is_over=_runs(where, github),
        vouched=github.anchor,
        secrets=environment_secrets(),
    )
    waker = DispatchWaker(where.repository, poster(where))
    link = f"{where.page}/issues/{{}}".format  # of a pull as well: GitHub leads on
    return Hosting(where.repository, settings, github, store, waker, github.how, link, github, head, where.page)


def poster(where: RepositoryPlace) -> Post:
    """A function that sends a JSON document to a server's API, once. It raises OSError without an answer."""
    from ralph_mission.adapters.forges.github.limits import GitHubRequester

    def post(path: str, body: dict[str, Any]) -> DispatchAnswer:
        status, _, text = GitHubRequester(where, PATIENCE).request("POST", path, body, {})
        with suppress(ValueError, AttributeError):
            return DispatchAnswer(status, str(json.loads(text or "{}").get("message", "")))
        return DispatchAnswer(status)

    return post


def _memory_tip(git: Git, remote: Remote, memory: MemoryPlace) -> str:
    if memory.branch == MemoryPlace.model_construct().branch:
        return ""
    tip = remote.head(memory.branch)
    remote.fetch({f"refs/heads/{memory.branch}": tip} if tip else {})
    return tip


def _control() -> tuple[str, str]:
    """The repository of this workflow, if it maintains another one, and the token of its jobs."""
    return os.environ.get("RALPH_CONTROL_REPOSITORY", ""), os.environ.get("RALPH_CONTROL_TOKEN", "")


def _runs(where: RepositoryPlace, github: GitHubForge) -> Callable[[str], bool]:
    """Whether a run that a claim names is over; a fleet's runs are in its control repository, with its own token."""
    from ralph_mission.adapters.forges.github import is_run_over
    from ralph_mission.adapters.forges.github.api import Api, ReadCache

    control, token = _control()
    if not (control and token):
        return github.run_is_over
    api = Api(replace(where, repository=control, credential=token), ReadCache(None, ""))
    page = f"{api.place.page}/actions/runs/".lower()
    return lambda holder: is_run_over(api, holder) if holder.lower().startswith(page) else github.run_is_over(holder)


def _run(where: RepositoryPlace) -> str:
    """This workflow run, in the form of a claim; "" outside one."""
    parts = [os.environ.get(f"GITHUB_{name}", "") for name in ("RUN_ID", "RUN_ATTEMPT", "JOB")]
    if not acts_on_github(os.environ) or not parts[0]:
        return ""
    runner = os.environ.get("RUNNER_NAME", "")
    page = replace(where, repository=_control()[0] or where.repository).page
    return f"{page}/actions/runs/{parts[0]}/attempts/{parts[1] or 1} ({parts[2]}, {runner})"


def _apart(git: Git, memory: MemoryPlace, tip: str) -> None:
    # A configured name may be taken: nothing of ours, especially `recover`, may change people's commits.
    if memory.branch == MemoryPlace.model_construct().branch or not tip or git.try_text("ls-tree", tip, memory.path):
        return
    roots = git.text("rev-list", "--max-parents=0", tip).split()
    if any(git.try_text("merge-base", root, "HEAD") for root in roots):
        what = f"the branch {memory.branch} shares its history with your commits: it is none for memory"
        raise UserError(what, "name another one in memory.branch of ralph.yml", usage=True)


def _name(git: Git) -> str:
    folder = git.work_tree or git.git_dir
    return folder.name.removesuffix(".git") or "repository"


def clones(git: Git, environment: Mapping[str, str], name: str = "missions") -> Path:
    """The folder of missions' clones: below `.ralph/`, or, if a runner clears that before each job, in a folder that
    outlives it. Clones for issues are in `work`.

    There they are named by the checkout, whose objects they borrow: two runners may share it.
    """
    folder = provenance.cache_folder(environment)
    beside = hashlib.sha256(os.fsencode(git.common_dir)).hexdigest()[:12]
    return folder / f"{name}-{beside}" if folder else git.state_dir / name


def abandon_clones(git: Git, environment: Mapping[str, str]) -> None:
    """Remove all of them: the settings name no agent. Leftovers do no harm."""
    folder = clones(git, environment)
    with suppress(OSError):
        if files.own(folder).is_dir():
            from ralph_mission.adapters.workspace.snapshot import remove_folder

            remove_folder(os.fsencode(folder))


def switched_off() -> bool:
    """Whether the environment stops every effect."""
    return os.environ.get("RALPH_PAUSED") == "1"


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """`--now`: a fixed time."""

    moment: datetime

    def now(self) -> datetime:
        """That time, in UTC."""
        return self.moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class QuietProgress:
    """Progress that is only passed to the watcher."""

    watch: RunWatch = UNWATCHED

    def phase(self, name: str, note: str = "") -> None:
        """A phase to pause at."""
        begin_phase(self.watch, name, note)

    def note(self, text: str) -> None:
        """Nothing."""


class NobodyToWake:
    """A waker that does nothing: the person who runs `ralph cycle` decides when."""

    def wake(self, due: datetime, generation: int) -> Receipt | None:
        """None."""
        return None


class Nowhere:
    """A recorder that stores nothing: a staged cycle leaves no trace."""

    def record(self, name: str, value: object) -> None:
        """Nothing."""
