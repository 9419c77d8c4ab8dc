"""When a run ends by a limit. Asked before each session, so that no limit is passed by starting one more."""

from __future__ import annotations

from ralph_mission.loop.model import RunState
from ralph_mission.loop.order import RunEnding, RunLimits


def reached_limit(limits: RunLimits, state: RunState, elapsed: float) -> RunEnding | None:
    """The first limit that is reached; `elapsed` in seconds over all processes of the run."""
    checks = (_failures, _thrash, _idle, _cost)
    return _counted_limit(limits, state, elapsed) or next(
        (ending for check in checks if (ending := check(limits, state))), None
    )


def seconds(limits: RunLimits, state: RunState) -> float:
    """What the next session may take: no more than is left of the run. At least one second."""
    return max(1.0, min(limits.session, limits.runtime - state.elapsed))


def _counted_limit(limits: RunLimits, state: RunState, elapsed: float) -> RunEnding | None:
    if state.iteration >= limits.iterations:
        return RunEnding(
            "iterations", f"{state.iteration} sessions", "go on with --continue and a higher --max-iterations"
        )
    if elapsed >= limits.runtime:
        return RunEnding("runtime", f"{elapsed:.0f} s", "go on with --continue and a higher --max-runtime")
    return None


def _failures(limits: RunLimits, state: RunState) -> RunEnding | None:
    if state.failures < limits.failures:
        return None
    last = state.last.reason if state.last else ""
    return RunEnding("failures", f"{state.failures} sessions in a row failed: {last}", "mend that, then --continue")


def _thrash(limits: RunLimits, state: RunState) -> RunEnding | None:
    if state.redispatches < limits.redispatches:
        return None
    what = f"{state.pending.topic} was handed out {state.redispatches + 1} times and nothing came of it"
    return RunEnding("thrash", what, "say what is meant with ralph guidance, then --continue")


def _idle(limits: RunLimits, state: RunState) -> RunEnding | None:
    if state.idle < limits.idle:
        return None
    what = f"{state.idle} sessions in a row changed no file, commit, story or task"
    return RunEnding("idle", what, "read the last session's words, then --continue")


def _cost(limits: RunLimits, state: RunState) -> RunEnding | None:
    if limits.usd is None or not state.usage.sessions:
        return None
    known, untold = state.usage.cost_usd or 0.0, state.usage.untold
    if known >= limits.usd:
        spent = f"${known:.2f} of ${limits.usd:.2f}"
        return RunEnding("cost", spent, "go on with --continue and a higher --max-cost")
    if not untold or limits.unpriced:
        return None
    what = f"the cost is unknown: {untold} of {state.usage.sessions} sessions did not tell it"
    return RunEnding(
        "cost", what, "set prices in ralph.yml (cost: prices:) for agents that tell tokens, or drop --max-cost"
    )
