"""A run in which a story says who is next, here or apart. Limits and a person's word are asked before each session.

Whoever has nothing to say in time ends the story: `Over` carries how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ralph_mission.loop import completion, limits, situation
from ralph_mission.loop.model import Board, Event, Hat, HatOutput, Usage
from ralph_mission.loop.order import Account, Ending, Order
from ralph_mission.loop.patterns import DENIED
from ralph_mission.loop.ports import Crew, Done, Job, Papers, Ports
from ralph_mission.loop.run import ASKED, Run, account, run, session


class Over(Exception):
    """The run is over, whatever the story was about to do."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.reason)
        self.ending = ending


@dataclass(frozen=True, slots=True)
class Part:
    """What one session is for. `item` is the task that it is counted for; `papers` are laid before a session apart."""

    name: str
    hat: Hat
    event: Event
    item: str = ""
    feedback: str = ""
    papers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Stage:
    """One run of a story, with who plays apart and what is written down."""

    this: Run
    crew: Crew
    papers: Papers

    @property
    def order(self) -> Order:
        """What was asked."""
        return self.this.order

    @property
    def ports(self) -> Ports:
        """The run's own."""
        return self.this.ports

    @property
    def fresh(self) -> bool:
        """Whether no session was played yet, by this process or an earlier one."""
        return self.this.state.iteration == 0

    def play(self, part: Part) -> HatOutput:
        """The session in this checkout; one that fails is played again. Raises Over."""
        feedback = part.feedback
        while True:
            self._check()
            self.this.state = replace(self.this.state, pending=part.event, item=part.item, stale=0, feedback=feedback)
            session(self.this, self.ports.desk.board(), worn(self.order, part.hat))
            output = self.this.outputs[-1]
            if not output.failure:
                return output
            feedback = "\n".join(filter(None, (part.feedback, f"The last attempt failed: {output.reason}")))

    def together(self, parts: Sequence[Part], last: HatOutput | None = None) -> tuple[Done, ...]:
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
        self.ports.desk.acknowledge(situation.guided(board))
        for part, job, done in zip(parts, jobs, dones, strict=False):
            self._account(part, job, done)
        self._count(failures, dones)
        return (*dones, *(Done(part.name) for part in parts[room:]))

    def insist(self, parts: Sequence[Part]) -> dict[str, Done]:
        """The sessions, apart; those that fail are played again until each has said its event. Raises Over.

        Whoever plays again is told what the first attempt was told, and nothing of those that got through.
        """
        found: dict[str, Done] = {}
        last = self.this.state.last
        while left := [part for part in parts if part.name not in found]:
            dones = self.together(left, last)
            found |= {done.name: done for done in dones if done.output and not done.output.failure}
        return found

    def say(self, topic: str, payload: str = "") -> None:
        """An event of the story itself."""
        self.ports.desk.record(Event(topic, payload, at=self.ports.clock.now()))

    def finished(self, detail: str) -> Ending:
        """The end, unless tasks that anybody put on the list are open."""
        why = completion.remaining(self.order, self.ports.desk.board())
        if why:
            return Ending("stuck", f"{detail}, but {why}", "work them off with ralph run, or close them: ralph task")
        return Ending("complete", detail)

    def _check(self) -> None:
        if ending := ASKED.get(self.ports.desk.signal()) or self._reached(Usage()):
            raise Over(ending)

    def _reached(self, more: Usage) -> Ending | None:
        """A story has its own bounds for what leads nowhere; what runs out is everybody's."""
        state = replace(self.this.state, idle=0, redispatches=0, usage=self.this.state.usage + more)
        return limits.reached(self.order.limits, state, self.this.elapsed)

    def _may_start(self, more: Usage) -> bool:
        return not self.ports.desk.signal() and self._reached(more) is None

    def _job(self, part: Part, number: int, board: Board, last: HatOutput | None) -> Job:
        state = replace(
            self.this.state, iteration=self.this.state.iteration + number, pending=part.event, item=part.item, stale=0,
            feedback=part.feedback, last=last, elapsed=self.this.elapsed,
        )  # fmt: skip  # one value
        shown = replace(board, prd=None, tasks=())  # the list is in this checkout, where the session is not
        return Job(part.name, self.order, state, shown, self.order.bound(worn(self.order, part.hat)), part.papers)

    def _account(self, part: Part, job: Job, done: Done) -> None:
        if done.output is None:
            return
        self.this.state = replace(self.this.state, pending=part.event, item=part.item, stale=0)
        if done.output.event:
            self.ports.desk.record(done.output.event)
        account(self.this, done.output)

    def _count(self, before: int, dones: Sequence[Done]) -> None:
        """Sessions side by side are one step: it failed when nobody got through."""
        failed = [bool(done.output.failure) for done in dones if done.output]
        count = before + 1 if failed and all(failed) else 0
        self.this.state = replace(self.this.state, failures=count if failed else before)


def staged(order: Order, ports: Ports, crew: Crew, papers: Papers, story: Callable[[Stage], Ending]) -> Account:
    """Run `order` as `story` tells it. Raises Trouble as `run` does."""

    def told(this: Run) -> Ending:
        try:
            return story(Stage(this, crew, papers))
        except Over as over:
            return over.ending

    return run(replace(order, preset=replace(order.preset, stories=False)), ports, told)


def worn(order: Order, hat: Hat) -> Hat:
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
