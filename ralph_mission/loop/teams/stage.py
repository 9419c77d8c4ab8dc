"""A run in which a story says who is next, here or apart. Limits and a person's word are asked before each session.

Whoever has nothing to say in time ends the story: `Over` carries how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ralph_mission.loop.hats.patterns import DENIED
from ralph_mission.loop.model.items import LoopEvent
from ralph_mission.loop.model.order import RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import Hat, HatOutput, RunSnapshot, SessionUsage
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, ParallelSession, RunPorts, SessionPool
from ralph_mission.loop.prompt import situation
from ralph_mission.loop.rules import completion
from ralph_mission.loop.run import SIGNAL_ENDINGS, LoopRun, account, run_loop, session


class RunOver(Exception):
    """The run is over, whatever the story was about to do."""

    def __init__(self, ending: RunEnding) -> None:
        super().__init__(ending.reason)
        self.ending = ending


@dataclass(frozen=True, slots=True)
class SessionPart:
    """What one session is for. `item` is the task that it is counted for; `papers` are laid before a session apart."""

    name: str
    hat: Hat
    event: LoopEvent
    item: str = ""
    feedback: str = ""
    papers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Orchestration:
    """One run of a story, with who plays apart and what is written down."""

    this: LoopRun
    crew: SessionPool
    papers: ArtifactStore

    @property
    def order(self) -> RunSpec:
        """What was asked."""
        return self.this.order

    @property
    def ports(self) -> RunPorts:
        """The run's own."""
        return self.this.ports

    @property
    def fresh(self) -> bool:
        """Whether no session was played yet, by this process or an earlier one."""
        return self.this.state.iteration == 0

    def play(self, part: SessionPart) -> HatOutput:
        """The session in this checkout; one that fails is played again. Raises Over."""
        feedback = part.feedback
        while True:
            self._check()
            self.this.state = replace(self.this.state, pending=part.event, item=part.item, stale=0, feedback=feedback)
            session(self.this, self.ports.desk.board(), with_own_settings(self.order, part.hat))
            output = self.this.outputs[-1]
            if not output.failure:
                return output
            feedback = "\n".join(filter(None, (part.feedback, f"The last attempt failed: {output.reason}")))

    def together(self, parts: Sequence[SessionPart], last: HatOutput | None = None) -> tuple[ParallelResult, ...]:
        """The sessions, each apart: one `Done` for each, in order. Those that no limit has room for do not start.

        They are told of the session `last`, usually the one before.
        """
        self._check()
        last = last or self.this.state.last
        board = self.ports.desk.board()
        failures = self.this.state.failures
        room = self.order.limits.iterations - self.this.state.iteration
        jobs = [self._job(part, number, board, last) for number, part in enumerate(parts[:room])]
        for job in jobs:
            self.ports.voice.session(self.order, job.state, job.hat.name, board)
        self.ports.desk.keep(self.this.state, None)
        dones = self.crew.together(jobs, self._may_start)
        self.ports.desk.acknowledge(situation.pending_guidance(board))
        for part, job, done in zip(parts, jobs, dones, strict=False):
            self._account(part, job, done)
        self._count(failures, dones)
        return (*dones, *(ParallelResult(part.name) for part in parts[room:]))

    def insist(self, parts: Sequence[SessionPart]) -> dict[str, ParallelResult]:
        """The sessions, apart; those that fail are played again until each has said its event. Raises Over.

        Whoever plays again is told what the first attempt was told, and nothing of those that got through.
        """
        found: dict[str, ParallelResult] = {}
        last = self.this.state.last
        while left := [part for part in parts if part.name not in found]:
            dones = self.together(left, last)
            found |= {done.name: done for done in dones if done.output and not done.output.failure}
        return found

    def say(self, topic: str, payload: str = "") -> None:
        """An event of the story itself."""
        self.ports.desk.record(LoopEvent(topic, payload, at=self.ports.clock.now()))

    def finished(self, detail: str) -> RunEnding:
        """The end, unless tasks that anybody put on the list are open."""
        why = completion.remaining(self.order, self.ports.desk.board())
        if why:
            return RunEnding("stuck", f"{detail}, but {why}", "work them off with ralph run, or close them: ralph task")
        return RunEnding("complete", detail)

    def _check(self) -> None:
        if ending := SIGNAL_ENDINGS.get(self.ports.desk.signal()) or self._reached(SessionUsage()):
            raise RunOver(ending)

    def _reached(self, more: SessionUsage) -> RunEnding | None:
        """A story has its own bounds for what leads nowhere; what runs out is everybody's."""
        state = replace(self.this.state, idle=0, redispatches=0, usage=self.this.state.usage + more)
        return completion.reached_limit(self.order.limits, state, self.this.elapsed)

    def _may_start(self, more: SessionUsage) -> bool:
        return not self.ports.desk.signal() and self._reached(more) is None

    def _job(self, part: SessionPart, number: int, board: RunSnapshot, last: HatOutput | None) -> ParallelSession:
        state = replace(
            self.this.state, iteration=self.this.state.iteration + number, pending=part.event, item=part.item, stale=0,
            feedback=part.feedback, last=last, elapsed=self.this.elapsed,
        )  # fmt: skip  # one value
        shown = replace(board, prd=None, tasks=())  # the list is in this checkout, where the session is not
        return ParallelSession(
            part.name, self.order, state, shown, self.order.bound(with_own_settings(self.order, part.hat)), part.papers
        )

    def _account(self, part: SessionPart, job: ParallelSession, done: ParallelResult) -> None:
        if done.output is None:
            return
        self.this.state = replace(self.this.state, pending=part.event, item=part.item, stale=0)
        if done.output.event:
            self.ports.desk.record(done.output.event)
        account(self.this, done.output)

    def _count(self, before: int, dones: Sequence[ParallelResult]) -> None:
        """Sessions side by side are one step: it failed when nobody got through."""
        failed = [bool(done.output.failure) for done in dones if done.output]
        count = before + 1 if failed and all(failed) else 0
        self.this.state = replace(self.this.state, failures=count if failed else before)


def run_orchestration(
    order: RunSpec,
    ports: RunPorts,
    crew: SessionPool,
    papers: ArtifactStore,
    story: Callable[[Orchestration], RunEnding],
) -> RunResult:
    """Run `order` as `story` tells it. Raises UserError as `run` does."""

    def told(this: LoopRun) -> RunEnding:
        try:
            return story(Orchestration(this, crew, papers))
        except RunOver as over:
            return over.ending

    return run_loop(replace(order, preset=replace(order.preset, stories=False)), ports, told)


def with_own_settings(order: RunSpec, hat: Hat) -> Hat:
    """The hat, with what the user's own of that name says of its model, budget, denials and habits."""
    denied = tuple(dict.fromkeys((*hat.commands_denied, *DENIED)))
    own = next((one for one in order.hats if one.name == hat.name), None)
    if own is None:
        return replace(hat, commands_denied=denied)
    return replace(
        hat,
        instructions="\n\n".join(filter(None, (hat.instructions, own.instructions))),
        write_denied=(*hat.write_denied, *own.write_denied),
        tools_denied=(*hat.tools_denied, *own.tools_denied),
        commands_denied=(*denied, *own.commands_denied),
        context=own.context,
        model=own.model,
        max_tokens=own.max_tokens,
    )
