"""Several sessions at once (`ports.SessionPool`): threads, each session in a clone of its own, one merge at the end.

Whatever plays a session is handed in: this knows git's clones and the order of things, and no desk or agent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from pathlib import Path

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.workspace import parallel
from ralph_mission.adapters.workspace.land import Landing, meeting, uncommitted
from ralph_mission.adapters.workspace.objects import Objects
from ralph_mission.adapters.workspace.parallel import Built, Part, WorkspaceApart
from ralph_mission.adapters.workspace.user import User
from ralph_mission.errors import UserError
from ralph_mission.loop import session
from ralph_mission.loop.model.state import HatOutput, PathChange, SessionUsage
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, ParallelSession, RunPorts
from ralph_mission.values import dataclass

MOST = 4
"""Sessions at the same time: a person's machine and a provider's limits bear so many."""
HERE = "it is not committed in the checkout"
MEANWHILE = "it was committed in the checkout meanwhile"


@dataclass(frozen=True, slots=True)
class Kit:
    """What a session apart plays with, and the files below the `.ralph` of its clone."""

    ports: RunPorts
    papers: ArtifactStore
    workspace: WorkspaceApart


Equip = Callable[[Part, ParallelSession, Callable[[], bool]], Kit]
"""The kit for a clone and its job. The last tells whether the session has to end now."""


@dataclass(frozen=True, slots=True)
class ClonePool:
    """Clones of `git`'s last commit in `scratch`; `user` signs what was built."""

    git: Git
    scratch: Path
    equip: Equip
    user: User
    most: int = MOST

    def together(
        self, jobs: Sequence[ParallelSession], may_start: Callable[[SessionUsage], bool]
    ) -> tuple[ParallelResult, ...]:
        """As in `ports.SessionPool`."""
        base = self.git.resolve("HEAD")
        if not base:
            raise UserError("this repository has no commit to start from", "commit something first", usage=True)
        with parallel.parts(self.git, base, [job.name for job in jobs], self.scratch) as parts:
            made = self._played(tuple(zip(parts, jobs, strict=True)), may_start)
        return self._merged(base, made)

    # --- playing ---------------------------------------------------------------------

    def _played(
        self, pairs: Sequence[tuple[Part, ParallelSession]], may_start: Callable[[SessionUsage], bool]
    ) -> list[tuple[ParallelResult, Built]]:
        gate = _Gate(may_start)
        with ThreadPoolExecutor(max(1, min(self.most, len(pairs)))) as pool:
            try:
                return list(pool.map(lambda pair: self._one(pair[0], pair[1], gate), pairs))
            except BaseException:
                gate.ended.set()  # agents end their processes when they are asked, which the pool waits for
                raise

    def _one(self, part: Part, job: ParallelSession, gate: _Gate) -> tuple[ParallelResult, Built]:
        built = Built(part.name)
        if not gate.open():
            return ParallelResult(job.name), built
        output = HatOutput(job.hat.name, job.state.iteration + 1)
        papers: Mapping[str, str] = {}
        try:
            kit = self.equip(part, job, gate.ended.is_set)
            with kit.ports.desk.exclusive(job.order):
                for name, text in job.papers.items():
                    kit.papers.write(name, text)
                output = session.play_session(job.order, job.state, job.board, job.hat, kit.ports)
                papers = {name: kit.papers.read(name) for name in job.papers}
                built = Built(part.name, None if output.failure else kit.workspace.built)
        except (UserError, GitError, OSError) as error:
            output = _failed_output(output, error)
        gate.took(output.usage)
        return ParallelResult(job.name, output, papers), built

    # --- taking over -----------------------------------------------------------------

    def _merged(self, base: str, made: Sequence[tuple[ParallelResult, Built]]) -> tuple[ParallelResult, ...]:
        """The checkout with everything that met nothing; whoever met something is told what."""
        objects, head = Objects(self.git), self.git.resolve("HEAD")
        grown = objects.behind(base, head)
        others = {
            MEANWHILE: objects.paths_between(base, head) if grown and head != base else (),
            HERE: uncommitted(self.git) if any(one.judged for _, one in made) else (),
        }
        meets = {
            one.name: tuple(
                PathChange(path, "conflict", why) for why, paths in others.items() for path in meeting(one.paths, paths)
            )
            for _, one in made
        }
        wanted = [one for _, one in made if not meets[one.name]]
        merged = parallel.merge(self.git, head if grown else base, wanted, self.user.identity)
        if merged.applied:
            branch = self.git.try_text("symbolic-ref", "--quiet", "HEAD")
            Landing(self.git, self.user, self.scratch.parent / "aside").land(branch, merged.judged)
        return tuple(
            replace(done, conflicts=meets[done.name] or merged.left_out.get(done.name, ())) for done, _ in made
        )


@dataclass(slots=True)
class _Gate:
    """Asked before each start, with what those that have ended took."""

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
