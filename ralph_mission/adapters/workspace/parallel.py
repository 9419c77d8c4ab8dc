"""Several sessions at once (`ports.SessionPool`): each in its own clone, their changes merged in a fixed order.

A clone borrows the objects and is temporary; leftovers of a dead process are removed by the next one. The tools that
run a session are passed in: this module knows clones and their order, but no store or agent.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git, GitError, Identity
from ralph_mission.adapters.workspace.clone import clone
from ralph_mission.adapters.workspace.land import Judged, Landing, Objects, User, meeting, uncommitted
from ralph_mission.adapters.workspace.snapshot import File, remove_folder
from ralph_mission.adapters.workspace.workplace import Workspace
from ralph_mission.errors import UserError
from ralph_mission.loop import session
from ralph_mission.loop.model.state import HatOutput, PathChange, SessionCommit, SessionUsage
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, ParallelSession, RunPorts
from ralph_mission.values import dataclass

PREFIX = "ultrawork-"
BRANCH = "refs/heads/work"
ENGINE_FOLDER = ".ralph"


@dataclass(frozen=True, slots=True)
class Part:
    """A builder's clone: its folder, and the commit it starts from."""

    name: str
    folder: Path
    base: str

    @property
    def git(self) -> Git:
        """Its own repository, with separate refs, index and configuration."""
        return Git.at(self.folder)


@dataclass(frozen=True, slots=True)
class Built:
    """A builder's judged change; None for nothing."""

    name: str
    judged: Judged | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths it touches."""
        return tuple(sorted(self.judged.paths)) if self.judged else ()


@dataclass(frozen=True, slots=True)
class Merged:
    """Builders' changes as a chain of commits, by builder; `left_out`: paths that conflicted with an earlier one."""

    judged: Judged
    commits: Mapping[str, SessionCommit]
    left_out: Mapping[str, tuple[PathChange, ...]]


class WorkspaceApart(Workspace):
    """A clone whose work is merged and landed elsewhere; `built`: the last judged change."""

    built: Judged | None = None

    def land(self, message: str, lists: bool, announce: Callable[[str], None] = lambda _: None) -> str:
        """Store the judged change as a commit without moving a branch; returns its id, or "" if there is nothing."""
        judged = self.build(message, lists)
        self.built = judged if judged.paths else None
        return judged.commit


@contextmanager
def make_parts(git: Git, commit: str, names: Sequence[str], scratch: Path) -> Iterator[tuple[Part, ...]]:
    """A temporary clone of `commit` for each name, on a branch `work`. Raises UserError."""
    base = git.resolve(commit)
    files.own(scratch).mkdir(parents=True, exist_ok=True)
    with ExitStack() as open_ones:
        with files.hold_folder(scratch):  # or another process could treat the new folder as abandoned
            prune(scratch)
            place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=scratch))
            place.chmod(0o711)  # a builder that runs as another user must reach its clone
            open_ones.callback(_remove, place)
            open_ones.enter_context(files.hold_folder(place))
        yield tuple(Part(name, _make_clone(git, base, place, open_ones), base) for name in names)


def prune(scratch: Path) -> tuple[Path, ...]:
    """Remove leftovers of dead processes; returns what was removed."""
    leftovers = tuple(
        place for place in sorted(scratch.glob(f"{PREFIX}*")) if place.is_dir() and not files.is_held(place)
    )
    for place in leftovers:
        _remove(place)
    return leftovers


def merge(git: Git, base: str, built: Sequence[Built], who: Identity = Identity()) -> Merged:
    """Apply builders' changes to `base` in the given order, a commit for each.

    A builder that touched a path of an earlier one (or a folder above or below it) is left out entirely, as nobody
    built half of its change. Deterministic.
    """
    objects, head = Objects(git), base
    owners: dict[str, str] = {}
    paths: dict[str, File | None] = {}
    commits, left_out, message = dict[str, SessionCommit](), dict[str, tuple[PathChange, ...]](), ""
    for one in built:
        if one.judged is None:
            continue
        if met := [(path, other) for path in one.paths if (other := _find_conflict(path, owners))]:
            left_out[one.name] = tuple(PathChange(path, "conflict", f"{other} had it first") for path, other in met)
            continue
        message = one.judged.message
        head = objects.commit(head, one.judged.paths, message, datetime.now(UTC), who)
        owners |= dict.fromkeys(one.paths, one.name)
        paths |= one.judged.paths
        commits[one.name] = SessionCommit(head, message.partition("\n")[0])
    return Merged(Judged(base, paths, message, head), commits, left_out)


def _make_clone(git: Git, commit: str, place: Path, open_ones: ExitStack) -> Path:
    folder = open_ones.enter_context(clone(git, commit, place))
    fresh = Git.at(folder)
    fresh.run("update-ref", BRANCH, commit)
    fresh.run("symbolic-ref", "HEAD", BRANCH)
    return folder


def _find_conflict(path: str, owners: Mapping[str, str]) -> str:
    """The earlier builder with this path, a file where it needs a folder, or files below it; or ""."""
    return next((name for other, name in owners.items() if meeting([path], [other])), "")


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError):
        remove_folder(os.fsencode(place))


MOST = 4
"""Concurrent sessions: as many as an ordinary machine and a provider's limits can take."""
HERE = "it is not committed in the checkout"
MEANWHILE = "it was committed in the checkout meanwhile"


@dataclass(frozen=True, slots=True)
class SessionTools:
    """The tools of a parallel session, and the files below the `.ralph` of its clone."""

    ports: RunPorts
    artifacts: ArtifactStore
    workspace: WorkspaceApart


Equip = Callable[[Part, ParallelSession, Callable[[], bool]], SessionTools]
"""Makes the tools for a clone and its job; the last argument says whether the session has to end now."""


@dataclass(frozen=True, slots=True)
class ClonePool:
    """Clones of `git`'s last commit in `scratch`; `user`: the author of the result."""

    git: Git
    scratch: Path
    equip: Equip
    user: User
    most: int = MOST

    def together(
        self, jobs: Sequence[ParallelSession], may_start: Callable[[SessionUsage], bool]
    ) -> tuple[ParallelResult, ...]:
        """Run `jobs`, and take over each one's changes, committed or not, in order: one `ParallelResult` for each."""
        base = self.git.resolve("HEAD")
        if not base:
            raise UserError("this repository has no commit to start from", "commit something first", usage=True)
        with make_parts(self.git, base, [job.name for job in jobs], self.scratch) as parts:
            results = self._play_sessions(tuple(zip(parts, jobs, strict=True)), may_start)
        return self._merge_results(base, results)

    # --- playing ---------------------------------------------------------------------

    def _play_sessions(
        self, pairs: Sequence[tuple[Part, ParallelSession]], may_start: Callable[[SessionUsage], bool]
    ) -> list[tuple[ParallelResult, Built]]:
        gate = _Gate(may_start)
        with ThreadPoolExecutor(max(1, min(self.most, len(pairs)))) as pool:
            try:
                return list(pool.map(lambda pair: self._one(pair[0], pair[1], gate), pairs))
            except BaseException:
                gate.ended.set()  # agents end their processes on request, which the pool waits for
                raise

    def _one(self, part: Part, job: ParallelSession, gate: _Gate) -> tuple[ParallelResult, Built]:
        built = Built(part.name)
        if not gate.open():
            return ParallelResult(job.name), built
        output = HatOutput(job.hat.name, job.state.iteration + 1)
        artifacts: Mapping[str, str] = {}
        try:
            tools = self.equip(part, job, gate.ended.is_set)
            with tools.ports.store.exclusive(job.spec):
                for name, text in job.artifacts.items():
                    tools.artifacts.write(name, text)
                output = session.play_session(job.spec, job.state, job.snapshot, job.hat, tools.ports)
                artifacts = {name: tools.artifacts.read(name) for name in job.artifacts}
                built = Built(part.name, None if output.failure else tools.workspace.built)
        except (UserError, GitError, OSError) as error:
            output = _failed_output(output, error)
        gate.took(output.usage)
        return ParallelResult(job.name, output, artifacts), built

    # --- taking over -----------------------------------------------------------------

    def _merge_results(self, base: str, results: Sequence[tuple[ParallelResult, Built]]) -> tuple[ParallelResult, ...]:
        """Merge everything without conflicts into the checkout; jobs with conflicts get to know them."""
        objects, head = Objects(self.git), self.git.resolve("HEAD")
        grown = objects.behind(base, head)
        others = {
            MEANWHILE: objects.paths_between(base, head) if grown and head != base else (),
            HERE: uncommitted(self.git) if any(one.judged for _, one in results) else (),
        }
        meets = {
            one.name: tuple(
                PathChange(path, "conflict", why) for why, paths in others.items() for path in meeting(one.paths, paths)
            )
            for _, one in results
        }
        mergeable = [one for _, one in results if not meets[one.name]]
        merged = merge(self.git, head if grown else base, mergeable, self.user.identity)
        commits = merged.commits
        if commits:
            branch = self.git.try_text("symbolic-ref", "--quiet", "HEAD")
            landed = Landing(self.git, self.user, self.scratch.parent / "aside").land(branch, merged.judged)
            if landed != merged.judged.commit:  # one commit on top of what a person committed meanwhile
                last, commit = list(commits.items())[-1]
                commits = {last: replace(commit, hash=landed)}
        return tuple(
            replace(
                done,
                output=done.output and replace(done.output, commits=tuple(filter(None, (commits.get(done.name),)))),
                conflicts=meets[done.name] or merged.left_out.get(done.name, ()),
            )
            for done, _ in results
        )


@dataclass(slots=True)
class _Gate:
    """Called before each start, with the cost of finished sessions."""

    may_start: Callable[[SessionUsage], bool]
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: SessionUsage = field(default_factory=SessionUsage)

    def open(self) -> bool:
        with self.lock:
            return not self.ended.is_set() and self.may_start(self.taken)

    def took(self, usage: SessionUsage) -> None:
        with self.lock:
            self.taken = self.taken + usage


def _failed_output(output: HatOutput, error: Exception) -> HatOutput:
    why = error.what if isinstance(error, UserError) else str(error)
    return replace(output, failure=output.failure or "exit", reason=output.reason or why, event=None)
