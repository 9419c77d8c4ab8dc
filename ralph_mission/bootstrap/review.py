"""The composition root of the review: memory and forge as in a cycle, a reviewer in a clone that is thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ralph_mission.agents.registry import PRICED
from ralph_mission.bootstrap import cages
from ralph_mission.bootstrap.asked import Asked
from ralph_mission.bootstrap.cycle import Household
from ralph_mission.bootstrap.loop import SystemClock, agent_of
from ralph_mission.bootstrap.wanted import AgentWanted, Doors
from ralph_mission.flows.review import Job, Reviewer, View
from ralph_mission.forges import history
from ralph_mission.gateways.git import EMPTY_TREE, Git, GitError
from ralph_mission.gateways.isolation import describe_level
from ralph_mission.gateways.steering import unsteered
from ralph_mission.gateways.workspace.parallel import parts
from ralph_mission.hands import conventions
from ralph_mission.loop import reviewing
from ralph_mission.loop.metering import Meter, Metered
from ralph_mission.loop.model import Session, Usage
from ralph_mission.loop.order import Limits
from ralph_mission.loop.ports import Agent
from ralph_mission.loop.reviewing import Answer
from ralph_mission.report.loop_voice import PlainLoopVoice
from ralph_mission.stores.loop import place
from ralph_mission.trouble import Trouble

USD, RUNTIME = 2.0, 2700.0
"""What one review may cost and how many seconds it may take, unless the command line says otherwise."""
SESSION, TURNS = 1800.0, 60


def reviewer(wanted: AgentWanted, voice: PlainLoopVoice, spell: Callable[[str], str] = str) -> Reviewer:
    """Everything the review needs. Raises Trouble for settings that cannot be, an agent that is not named."""
    doors = Doors(wanted, voice, spell)
    first = doors.first()
    reader = AgentReader(wanted, first)
    reader.check()
    voice.note(f"isolation: {describe_level(cages.found(first.config))}")
    return Reviewer(doors.house, reader, time.sleep, voice.note, wanted.usd if wanted.usd is not None else USD)


@dataclass(frozen=True, slots=True)
class AgentReader:
    """`flows.review.Reader`: git for looking, and a coding agent for reading."""

    wanted: AgentWanted
    first: Household

    def check(self) -> None:
        """Raises Trouble when no session could be played: before money is set aside for it."""
        if self.first.git.work_tree is not None:
            self._agent(self.first.git, self.first.git.work_tree)

    def look(self, base: str, head: str) -> View:
        """As in `flows.review.Reader`."""
        git = self.first.git
        if (fork := history.fork(git, base, head)) == EMPTY_TREE:
            what = f"{head[:12]} shares no history with its base here"
            raise Trouble(what, "see whether both branches are there; check out the whole history (fetch-depth: 0)")
        try:
            shown = history.shown(git, base, head)
            return View(fork, history.diff(git, base, head), shown, conventions.read(git, base))
        except GitError as error:
            what = f"{head[:12]} cannot be compared with its base: {error.detail.strip()}"
            raise Trouble(what, "fetch both; see whether the branch is still there") from None

    def read(self, job: Job) -> Answer:
        """As in `flows.review.Reader`; whatever the agent changes is gone with its clone."""
        meter = Meter(job.usd, PRICED)
        try:
            answer = self._read(job, meter)
        except Trouble as trouble:
            if not meter.begun:
                raise
            answer = Answer(None, f"{trouble.what}; {trouble.next_step}", Usage(meter.begun))
        return replace(answer, usage=replace(answer.usage, cost_usd=meter.usd or answer.usage.cost_usd))

    def _read(self, job: Job, meter: Meter) -> Answer:
        git, runtime = self.first.git, self.wanted.runtime or RUNTIME
        limits = Limits(runtime=runtime, usd=job.usd, unpriced=self.wanted.usd is None)
        with parts(git, unsteered(git, job.fork, job.head), [f"review-{job.pull}"], git.state_dir / "review") as (
            part,
        ):
            place.prepare(part.folder / ".ralph")
            run_dir = part.folder / ".ralph" / "loop"
            run_dir.mkdir(exist_ok=True)
            session = Session(
                reviewing.HAT, 1, "", str(run_dir), self._model(), min(SESSION, runtime), TURNS,
                schema=reviewing.SCHEMA,
            )  # fmt: skip  # one value
            agent = Metered(self._agent(part.git, part.folder), meter)
            return reviewing.ask(agent, job.material, session, limits, SystemClock())

    def _agent(self, git: Git, root: Path) -> Agent:
        wanted, settings = self.wanted, self.first.config
        asked = Asked(root, agent=wanted.agent, command=wanted.command, model=wanted.model)
        return agent_of(asked, settings, git, root, self._model(), cages.found(settings))

    def _model(self) -> str:
        choice = self.first.config.hands.agent
        return self.wanted.model or (choice.model if choice else "")
