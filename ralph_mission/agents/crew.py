"""Several sessions at the same time (`ports.Crew`): threads, each session in a clone of its own, one merge at the end.

Whatever plays a session is handed in: this knows git's clones and the order of things, and no desk or agent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from ralph_mission.gateways import landing, worktrees
from ralph_mission.gateways.git import Git, GitError, Identity
from ralph_mission.gateways.worktrees import Collected, Part
from ralph_mission.loop import playing, scope
from ralph_mission.loop.model import Change, HatOutput, Usage
from ralph_mission.loop.ports import Done, Job, Papers, Ports
from ralph_mission.trouble import Trouble

MOST = 4
"""Sessions at the same time: a person's machine and a provider's limits bear so many."""
MESSAGE = "{name}: built apart"
HERE = "it is not committed in the checkout"
MEANWHILE = "it was committed in the checkout meanwhile"


@dataclass(frozen=True, slots=True)
class Kit:
    """What a session apart plays with, and the files below the `.ralph` of its clone."""

    ports: Ports
    papers: Papers


Equip = Callable[[Part, Job, Callable[[], bool]], Kit]
"""The kit for a clone and its job. The last tells whether the session has to end now."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Clones of `git`'s last commit in `scratch`; `who` signs what was built."""

    git: Git
    scratch: Path
    equip: Equip
    who: Identity = Identity()
    most: int = MOST

    def together(self, jobs: Sequence[Job], may_start: Callable[[Usage], bool]) -> tuple[Done, ...]:
        """As in `ports.Crew`."""
        base = self.git.resolve("HEAD")
        if not base:
            raise Trouble("this repository has no commit to start from", "commit something first", usage=True)
        with worktrees.parts(self.git, base, [job.name for job in jobs], self.scratch) as parts:
            dones = self._played(tuple(zip(parts, jobs, strict=True)), may_start)
            made = [self._collected(*one) for one in zip(parts, jobs, dones, strict=True)]
        return self._merged(base, made)

    # --- playing ---------------------------------------------------------------------

    def _played(self, pairs: Sequence[tuple[Part, Job]], may_start: Callable[[Usage], bool]) -> list[Done]:
        gate = _Gate(may_start)
        with ThreadPoolExecutor(max(1, min(self.most, len(pairs)))) as pool:
            try:
                return list(pool.map(lambda pair: self._one(pair[0], pair[1], gate), pairs))
            except BaseException:
                gate.ended.set()  # agents end their processes when they are asked, which the pool waits for
                raise

    def _one(self, part: Part, job: Job, gate: _Gate) -> Done:
        if not gate.open():
            return Done(job.name)
        output = HatOutput(job.hat.name, job.state.iteration + 1)
        papers: Mapping[str, str] = {}
        try:
            kit = self.equip(part, job, gate.ended.is_set)
            with kit.ports.desk.exclusive(job.order):
                for name, text in job.papers.items():
                    kit.papers.write(name, text)
                output = playing.play(job.order, job.state, job.board, job.hat, kit.ports)
                papers = {name: kit.papers.read(name) for name in job.papers}
        except (Trouble, GitError, OSError) as error:
            output = _failed(output, error)
        gate.took(output.usage)
        return Done(job.name, output, papers)

    # --- taking over -----------------------------------------------------------------

    def _collected(self, part: Part, job: Job, done: Done) -> tuple[Done, Collected]:
        """What is to be taken over. The hat's globs are asked once more: a session may have destroyed the repository
        by which its own check was made."""
        nothing = Collected(part.name, "", ())
        if done.output is None or done.output.failure:
            return done, nothing
        try:
            found = worktrees.collect(self.git, part, MESSAGE.format(name=part.name), self.who)
        except Trouble as trouble:
            return replace(done, output=_failed(done.output, trouble)), nothing
        if outside := [path for path in found.paths if scope.why_outside(job.hat, path)]:
            what = f"{outside[0]} was written and hidden; {scope.why_outside(job.hat, outside[0])}"
            return replace(done, output=_failed(done.output, Trouble(what, "see the session's record"))), nothing
        return done, found

    def _merged(self, base: str, made: Sequence[tuple[Done, Collected]]) -> tuple[Done, ...]:
        """The checkout with everything that met nothing; whoever met something is told what."""
        building = any(one.commit for _, one in made)
        head, meanwhile = landing.grown(self.git, base)
        others = {MEANWHILE: meanwhile, HERE: landing.uncommitted(self.git) if building else frozenset()}
        meets = {
            one.name: tuple(
                Change(path, "conflict", why) for why, paths in others.items() for path in landing.met(one.paths, paths)
            )
            for _, one in made
        }
        merged = worktrees.merge(self.git, head, [one for _, one in made if not meets[one.name]], MESSAGE, self.who)
        landing.land(self.git, head, merged.commit)
        return tuple(
            replace(done, conflicts=meets[done.name] or merged.left_out.get(done.name, ())) for done, _ in made
        )


@dataclass(slots=True)
class _Gate:
    """Asked before each start, with what those that have ended took."""

    may_start: Callable[[Usage], bool]
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: Usage = field(default_factory=Usage)

    def open(self) -> bool:
        with self.lock:
            return not self.ended.is_set() and self.may_start(self.taken)

    def took(self, usage: Usage) -> None:
        with self.lock:
            self.taken = self.taken + usage


def _failed(output: HatOutput, error: Exception) -> HatOutput:
    why = error.what if isinstance(error, Trouble) else str(error)
    return replace(output, failure=output.failure or "exit", reason=output.reason or why, event=None)
