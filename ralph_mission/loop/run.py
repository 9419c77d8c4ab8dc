"""The loop, as a story: read the files, check whether it is done, run a session with one hat, store the state.

All its knowledge comes from files and is written back before the next session, so a kill at any moment loses at most
the running session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from ralph_mission.loop import session as playing
from ralph_mission.loop.model.spec import RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import CONVERGED, Hat, HatOutput, PathChange, RunSnapshot, RunState
from ralph_mission.loop.ports import RunPorts
from ralph_mission.loop.rules import completion, routing

FIRST_IDLE, LONGEST_IDLE, IDLE_DAY = 60.0, 900.0, 86_400.0
"""Seconds that a persistent loop without work waits: at first, doubling each time, up to the second; and the seconds
after which a session looks for work itself."""
PAUSE_SECONDS = 3600.0  # seconds of a wait while paused; a request ends it at once
SIGNAL_ENDINGS = {
    "stop": RunEnding("stop", "asked to stop", "resume with --continue"),
    "cancel": RunEnding("cancel", "cancelled", "run again to start over"),
    "restart": RunEnding("restart", "asked to restart"),
}


@dataclass(slots=True)
class LoopRun:
    """A process's part of a run; `before`: seconds that earlier ones took."""

    spec: RunSpec
    ports: RunPorts
    state: RunState
    began: datetime
    before: float
    outputs: list[HatOutput] = field(default_factory=list)
    cut: tuple[PathChange, ...] = ()
    standing: tuple[str, ...] = ()

    @property
    def elapsed(self) -> float:
        return self.before + (self.ports.clock.now() - self.began).total_seconds()

    def hold(self) -> None:
        """Wait while a person pauses the run; this counts neither as a session nor as time."""
        watch, since = self.ports.progress.watch, self.ports.clock.now()
        if watch.current_order() != "pause" or self.ports.store.signal():
            return
        self.ports.progress.paused(since)
        while watch.current_order() == "pause" and not self.ports.store.signal():
            self.ports.clock.sleep(
                PAUSE_SECONDS, lambda: watch.current_order() != "pause" or bool(self.ports.store.signal())
            )
        self.ports.progress.paused(None)
        self.began += self.ports.clock.now() - since


def run_loop(spec: RunSpec, ports: RunPorts, story: Callable[[LoopRun], RunEnding] | None = None) -> RunResult:
    """Run `spec` to an ending, continuing an earlier run of it or from the start.

    `story` decides who is next; without one, events do.

    Raises UserError before any session if the checkout is taken, and if files cannot be written.
    """
    with ports.store.exclusive(spec):
        this = _begin(spec, ports)
        try:
            ending = (story or until_ended)(this)
        except KeyboardInterrupt as interrupt:
            ending = RunEnding("interrupted", f"in session {this.state.iteration + 1}", "resume with --continue")
            if isinstance(interrupt, playing.CutOff):
                _cut_off(this, interrupt.changes)
        whole = RunResult(ending, this.state, tuple(this.outputs), this.cut, this.standing)
        ports.store.close(whole)
        ports.progress.ended(spec, whole)
        return whole


def _begin(spec: RunSpec, ports: RunPorts) -> LoopRun:
    now = ports.clock.now()
    resumed = ports.store.resumed(spec)
    again = replace(resumed, claims=0, red_claims=0) if resumed else None  # who resumes it has done something about it
    state = again or ports.store.open(spec, now)
    this = LoopRun(spec, ports, state, now, state.elapsed)
    if state.mark:  # a session had begun and its end was not recorded
        _cut_off(this, playing.put_aside(ports, state.mark))
    ports.progress.began(spec, this.state)
    return this


def _cut_off(this: LoopRun, changes: tuple[PathChange, ...]) -> None:
    """Record how a session was cut off; the next one reads it too."""
    this.cut += changes
    feedback = _resume_feedback(this.state.feedback, len({change.path for change in changes}))
    this.state = replace(this.state, mark="", feedback=feedback)
    this.ports.store.keep(this.state, None)


def play_next(this: LoopRun, snapshot: RunSnapshot) -> None:
    """Run the next session, with the hat that hears the pending event."""
    session(this, snapshot, routing.find_hat(this.spec.hats, this.state.pending))


def until_ended(this: LoopRun, play: Callable[[LoopRun, RunSnapshot], None] = play_next) -> RunEnding:
    """One session after another, or what `play` does instead, until files prove the end or a limit is reached."""
    while True:
        this.hold()
        snapshot = _read_snapshot(this)
        if _is_proven(this, snapshot):
            if not this.spec.persistent:
                return _complete_ending(this.state)
            snapshot = _tidy_issue(this)
        if ending := SIGNAL_ENDINGS.get(this.ports.store.signal()) or _find_limit(this, snapshot):
            return ending
        play(this, snapshot)
        if this.spec.single_story and this.outputs[-1].passed:
            return RunEnding("complete", f"one story, {', '.join(this.outputs[-1].passed)}, as asked")
        _pause(this)


def _read_snapshot(this: LoopRun) -> RunSnapshot:
    snapshot = this.ports.store.snapshot()
    this.state = completion.focus(this.spec, this.state, snapshot)
    return snapshot


def _is_proven(this: LoopRun, snapshot: RunSnapshot) -> bool:
    """Whether state files and passing checks prove the end; else the hat that must know why not is next."""
    if not completion.looks_done(this.spec, this.state, snapshot):
        return False
    if why := completion.remaining(this.spec, this.state, snapshot):
        this.state = completion.state_after_open_tasks(this.spec, this.state, why)
        return False
    verification = this.ports.workplace.verify()
    this.standing = verification.standing
    if not verification.green:
        this.state = completion.state_after_red_checks(this.spec, this.state, verification)
    return verification.green


def _tidy_issue(this: LoopRun) -> RunSnapshot:
    """What a persistent loop does instead of ending: the next piece of work starts fresh."""
    this.ports.store.tidy()
    this.state = completion.state_after_resume(this.state, this.ports.store.snapshot())
    return _read_snapshot(this)


def _complete_ending(state: RunState) -> RunEnding:
    """The ending; if the reviewer left issues open, a person is asked about them."""
    open_issues = state.pending.issues if state.pending.topic == CONVERGED else ()
    detail = f"{state.iteration} session{'s'[: state.iteration != 1]}" + (
        f", {len(open_issues)} issues left" if open_issues else ""
    )
    return RunEnding(
        "complete", detail, "say whether that is good enough: ralph agent verdict accept|reject" if open_issues else ""
    )


def _find_limit(this: LoopRun, snapshot: RunSnapshot) -> RunEnding | None:
    ending = completion.find_dead_end(this.spec, this.state, snapshot) or _reached_limit(this)
    if not ending or not this.state.iteration:
        return ending
    missing = completion.describe_missing(this.spec, this.state)
    if ending.reason == "iterations" and not missing:
        missing = completion.describe_unfinished(this.spec, this.state, snapshot)
    return replace(ending, detail=f"{ending.detail}; {missing}") if missing else ending


def _reached_limit(this: LoopRun) -> RunEnding | None:
    """A persistent loop waits instead of ending, without work or while sessions fail."""
    state = this.state
    if this.spec.persistent:
        failures = 0 if completion.is_failing(this.spec, state) else state.failures
        state = replace(state, idle=0, redispatches=0, failures=failures)
    return completion.reached_limit(this.spec.limits, state, this.elapsed)


def session(this: LoopRun, snapshot: RunSnapshot, hat: Hat | None) -> None:
    """Run the next session with `hat`, and store the state after it."""
    this.state = replace(this.state, elapsed=this.elapsed)
    this.ports.progress.session(this.spec, this.state, hat.name if hat else "", snapshot)
    account(this, playing.play_session(this.spec, this.state, snapshot, hat, this.ports))


def account(this: LoopRun, output: HatOutput) -> None:
    """Store the state after a session."""
    this.state = completion.advance_state(this.spec, this.state, output, this.elapsed)
    this.ports.store.keep(this.state, output)
    this.outputs.append(output)
    this.ports.progress.output(this.spec, this.state, output)


def _pause(this: LoopRun) -> None:
    """The pause between sessions; a person's request ends it, and there is none after the last."""
    if this.spec.persistent and completion.is_out_of_work(this.spec, this.state):
        return _await_work(this)
    if completion.is_failing(this.spec, this.state):
        return _sit_out(this)
    pause = this.spec.limits.pause if this.spec.cooldown is None else this.spec.cooldown
    if pause and not _is_over(this) and not this.ports.store.heard():
        this.ports.clock.sleep(pause, this.ports.store.heard)


def _await_work(this: LoopRun) -> None:
    """Wait, longer each time, until something changes or a person says something. Calls no model."""
    ports, look = this.ports, this.ports.store.look()
    pause, waited, announced = FIRST_IDLE, 0.0, 0.0
    while waited < IDLE_DAY and not ports.store.heard() and not _reached_limit(this):
        pause = min(pause, this.spec.limits.runtime - this.elapsed)
        if pause != announced:
            ports.progress.waiting(pause, "nothing to do; it continues when files, issues or guidance change")
        this.hold()
        ports.clock.sleep(pause, lambda: ports.store.heard() or ports.progress.watch.current_order() != "")
        waited, announced, pause = waited + pause, pause, min(2 * pause, LONGEST_IDLE)
        if ports.store.look() != look:
            return


def _sit_out(this: LoopRun) -> None:
    """Wait before the next session of a persistent loop whose sessions fail, longer after each."""
    ports, state, limits = this.ports, this.state, this.spec.limits
    if _is_over(this) or ports.store.heard():
        return
    pause = min(
        FIRST_IDLE * 2 ** min(state.failures - limits.failures, 10), LONGEST_IDLE, limits.runtime - this.elapsed
    )
    reason = state.last.reason.partition("\n")[0] if state.last else ""
    ports.progress.waiting(pause, f"{reason}; {state.failures} sessions in a row failed, it tries again")
    ports.clock.sleep(pause, lambda: ports.store.heard() or ports.progress.watch.current_order() != "")


def _is_over(this: LoopRun) -> bool:
    """Whether no session may follow: the work looks done, or a limit is reached."""
    done = not this.spec.persistent and completion.looks_done(this.spec, this.state, this.ports.store.snapshot())
    return done or _reached_limit(this) is not None


def _resume_feedback(feedback: str, aside: int) -> str:
    what = f"The last session was cut off; {aside} files it left unfinished were put aside." if aside else ""
    return "\n".join(filter(None, (feedback, what)))
