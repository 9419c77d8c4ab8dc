"""The loop, as a story: look at the files, ask whether it is done, let one hat play, write down where it stands.

Everything it knows comes from files and goes back to files before the next session, so that a kill at any moment
loses at most the session that was running.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from ralph_mission.loop import completion, limits, playing, progress, routing
from ralph_mission.loop.model import CONVERGED, Board, Change, Hat, HatOutput, State
from ralph_mission.loop.order import Account, Ending, Order
from ralph_mission.loop.ports import Ports

ASKED = {
    "stop": Ending("stop", "asked to stop", "go on with --continue"),
    "cancel": Ending("cancel", "cancelled", "run again to start anew"),
    "restart": Ending("restart", "asked to restart"),
}


@dataclass(slots=True)
class Run:
    """One process's part of a run; `before` is what earlier ones took, in seconds."""

    order: Order
    ports: Ports
    state: State
    began: datetime
    before: float
    outputs: list[HatOutput] = field(default_factory=list)
    cut: tuple[Change, ...] = ()

    @property
    def elapsed(self) -> float:
        return self.before + (self.ports.clock.now() - self.began).total_seconds()


def run(order: Order, ports: Ports, story: Callable[[Run], Ending] | None = None) -> Account:
    """Run `order` to an ending, from where an earlier run of it was left or from the start.

    `story` says who is next; without one the events alone do.

    Raises Trouble before any session when the checkout is taken, and when files cannot be written.
    """
    with ports.desk.exclusive(order):
        this = _begin(order, ports)
        try:
            ending = (story or _until_ended)(this)
        except KeyboardInterrupt as interrupt:
            ending = Ending("interrupted", f"in session {this.state.iteration + 1}", "go on with --continue")
            if isinstance(interrupt, playing.CutOff):
                _cut_off(this, interrupt.changes)
        whole = Account(ending, this.state, tuple(this.outputs), this.cut)
        ports.desk.close(whole)
        ports.voice.ended(order, whole)
        return whole


def _begin(order: Order, ports: Ports) -> Run:
    now = ports.clock.now()
    left = ports.desk.resumed(order)
    state = left or ports.desk.open(order, now)
    this = Run(order, ports, state, now, state.elapsed)
    if state.mark:  # a session had begun and nobody wrote down how it ended
        _cut_off(this, playing.put_aside(ports, state.mark))
    ports.voice.began(order, this.state)
    return this


def _cut_off(this: Run, changes: tuple[Change, ...]) -> None:
    """Take note of what became of a session that was cut off; the next one hears of it too."""
    this.cut += changes
    told = _told(this.state.feedback, len({change.path for change in changes}))
    this.state = replace(this.state, mark="", feedback=told)
    this.ports.desk.keep(this.state, None)


def _until_ended(this: Run) -> Ending:
    while True:
        board = _look(this)
        if _proven(this, board):
            if not this.order.persistent:
                return _complete(this.state)
            board = _tidied(this)
        if ending := _asked(this) or _exhausted(this, board):
            return ending
        _session(this, board)
        if this.order.single_story and this.outputs[-1].passed:
            return Ending("complete", f"one story, {', '.join(this.outputs[-1].passed)}, as asked")
        _breathe(this)


def _look(this: Run) -> Board:
    board = this.ports.desk.board()
    this.state = progress.focus(this.order, this.state, board)
    return board


def _proven(this: Run, board: Board) -> bool:
    """Whether state files and green checks prove the end; else whoever has to hear why not is next."""
    if not completion.claimed(this.order, this.state, board):
        return False
    if why := completion.remaining(this.order, board):
        this.state = progress.unfinished(this.order, this.state, why)
        return False
    verification = this.ports.workplace.verify()
    if not verification.green:
        this.state = progress.reddened(this.order, this.state, verification.said)
    return verification.green


def _tidied(this: Run) -> Board:
    """What a persistent loop does instead of ending: nothing of this piece of work is seen by the next."""
    this.ports.desk.tidy()
    this.state = progress.resumed(this.state)
    return _look(this)


def _complete(state: State) -> Ending:
    """The end; where a reviewer let issues stand, a person is asked whether that was right."""
    left = state.pending.issues if state.pending.topic == CONVERGED else ()
    detail = f"{state.iteration} sessions" + (f", {len(left)} issues left" if left else "")
    return Ending("complete", detail, "say whether that is good enough: ralph verdict accept|reject" if left else "")


def _asked(this: Run) -> Ending | None:
    return ASKED.get(this.ports.desk.signal())


def _exhausted(this: Run, board: Board) -> Ending | None:
    found = completion.stuck(this.order, this.state, board)
    return found or limits.reached(this.order.limits, this.state, this.elapsed)


def _session(this: Run, board: Board) -> None:
    session(this, board, routing.wearer(this.order.hats, this.state.pending))


def session(this: Run, board: Board, hat: Hat | None) -> None:
    """Let `hat` play the next session, and write down where the run stands after it."""
    this.state = replace(this.state, elapsed=this.elapsed)
    this.ports.voice.session(this.order, this.state, hat.name if hat else "", board)
    account(this, playing.play(this.order, this.state, board, hat, this.ports))


def account(this: Run, output: HatOutput) -> None:
    """Write down where the run stands after a session."""
    this.state = progress.advance(this.order, this.state, output, this.elapsed)
    this.ports.desk.keep(this.state, output)
    this.outputs.append(output)
    this.ports.voice.output(this.order, this.state, output)


def _breathe(this: Run) -> None:
    """The pause between two sessions; a person's word ends it, and after the last one there is none."""
    pause = max(this.order.limits.pause, this.order.cooldown)
    if pause and not _over(this) and not this.ports.desk.heard():
        this.ports.clock.sleep(pause, this.ports.desk.heard)


def _over(this: Run) -> bool:
    """Whether no session may follow: the work looks done, or a limit is reached."""
    done = not this.order.persistent and completion.claimed(this.order, this.state, this.ports.desk.board())
    return done or limits.reached(this.order.limits, this.state, this.elapsed) is not None


def _told(feedback: str, aside: int) -> str:
    what = f"The last session was cut off; {aside} files it left unfinished were put aside." if aside else ""
    return "\n".join(filter(None, (feedback, what)))
