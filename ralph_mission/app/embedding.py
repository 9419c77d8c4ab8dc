"""The loop for other programs: it says who is next and what to tell them; they run the agent.

    loop = RalphLoop("Refuse an empty name", pattern="plan-build-review")
    while not loop.converged:
        words = my_agent(loop.get_hat_prompt(loop.hat))     # a fresh session each time
        loop.record(loop.read(words))

Nothing is written and no clock is asked. `ralph_mission.run` (`app/library.py`) is the
same with files, checks and scope around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ralph_mission.errors import UserError
from ralph_mission.loop import hats as hats_hats
from ralph_mission.loop import hats as patterns
from ralph_mission.loop.model.spec import LoopPreset, RunEnding, RunSpec
from ralph_mission.loop.model.state import START, Hat, HatOutput, LoopEvent, RunSnapshot, RunState
from ralph_mission.loop.prompt import session
from ralph_mission.loop.rules import completion, routing, verdicts

__all__ = ["Hat", "HatOutput", "LoopEvent", "RalphLoop", "get_hat_prompt"]

EPOCH = datetime.fromtimestamp(0, UTC)
HOME = ".ralph/loop"
"""Where prompts tell sessions that the loop's files are."""


class RalphLoop:
    """Hat rotation, convergence and the prompts between, over immutable records.

    Give the name of a `pattern` or `hats` of your own. `threshold` is how many issues short of critical the last
    review may leave. Raises UserError for a pattern that is not known and for hats that cannot work together.
    """

    def __init__(
        self, task: str, pattern: str = "", hats: Sequence[Hat] = (), *, threshold: int = 0, max_iterations: int = 100
    ) -> None:
        worn = tuple(hats) or patterns.find_pattern(pattern or "plan-build-review").hats
        _check_hats(worn)
        preset = patterns.PRESETS["hats"]
        preset = replace(preset, hats=worn, limits=replace(preset.limits, iterations=max_iterations))
        self._order = RunSpec(task, preset, threshold=threshold)
        self._state = RunState("embedded", task, EPOCH)
        self._outputs: tuple[HatOutput, ...] = ()

    @property
    def hats(self) -> tuple[Hat, ...]:
        """Who takes turns."""
        return self._order.hats

    @property
    def hat(self) -> Hat:
        """Who is next; `ralph`, nobody in particular, when no hat listens to what was said last."""
        return routing.find_hat(self.hats, self._state.pending) or routing.COORDINATOR

    @property
    def iteration(self) -> int:
        """How many sessions were recorded."""
        return self._state.iteration

    @property
    def outputs(self) -> tuple[HatOutput, ...]:
        """All records, oldest first. None of them can be changed."""
        return self._outputs

    @property
    def converged(self) -> bool:
        """Whether the reviewer has nothing critical left to say; without a reviewer: whether the promise was given."""
        return completion.looks_done(self._order, self._state, RunSnapshot())

    @property
    def ending(self) -> RunEnding | None:
        """Why to stop, None to go on: converged, or a limit on sessions, failures or equal dispatches."""
        if self.converged:
            return RunEnding("complete", f"{self.iteration} sessions")
        ending = completion.reached_limit(self._order.limits, self._state, 0.0)
        return ending and replace(ending, next_step="")  # its steps are options of `ralph run`

    def get_hat_prompt(self, hat: Hat | None = None) -> str:
        """What to tell a session that wears `hat` (default: who is next): task, last output, event and its issues."""
        worn = hat or self.hat
        known = None if worn == routing.COORDINATOR else worn
        return session.session_prompt(self._order, self._state, RunSnapshot(), known, HOME).prompt

    def read(self, text: str) -> HatOutput:
        """The record of a session of `hat` whose last message is `text`; not one valid event is a failed session."""
        worn = None if self.hat == routing.COORDINATOR else self.hat
        promise = self._order.preset.promise
        event, wrong = routing.single_event(worn, routing.events_in_text(text, promise), promise)
        event = event and replace(event, issues=event.issues or verdicts.parse_issues(event))
        promised = not wrong and (routing.is_promised(text, promise) or (event is not None and event.topic == promise))
        return HatOutput(
            self.hat.name, self.iteration + 1, event, session.summary(text),
            failure="event" if wrong else "", reason=wrong, progressed=not wrong, promised=promised,
        )  # fmt: skip  # one record

    def record(self, output: HatOutput) -> Hat:
        """Take the record of the session that was due, and say who is next.

        Raises ValueError for a record of another hat or session, and when the loop has converged.
        """
        if self.converged:
            raise ValueError("the loop has converged")
        due = (self.hat.name, self.iteration + 1)
        if (output.hat, output.iteration) != due:
            raise ValueError(f"session {due[1]} is due, of {due[0]}; not {output.iteration}, of {output.hat}")
        whole = replace(output, event=output.event and _full(output.event, output))
        self._state = completion.advance_state(self._order, self._state, whole, 0.0)
        self._outputs = (*self._outputs, whole)
        return self.hat


def get_hat_prompt(hat: Hat, task: str, previous: HatOutput | None = None) -> str:
    """What to tell a session that wears `hat`, after `previous`, without a loop around it."""
    spec = RunSpec(task, LoopPreset("hats", hats=(hat,)))
    said = _full(previous.event, previous) if previous and previous.event else LoopEvent(START)
    state = RunState("embedded", task, EPOCH, previous.iteration if previous else 0, pending=said, last=previous)
    return session.session_prompt(spec, state, RunSnapshot(), hat, HOME).prompt


def _full(event: LoopEvent, output: HatOutput) -> LoopEvent:
    """The event with who said it, and with the issues that a verdict's words list."""
    return replace(
        event, issues=event.issues or verdicts.parse_issues(event), hat=output.hat, iteration=output.iteration
    )


def _check_hats(worn: Sequence[Hat]) -> None:
    wrong = hats_hats.complaints(worn, persistent=False)
    if wrong:
        raise UserError(wrong[0], "fix the hats: see docs/hats.md", usage=True)
