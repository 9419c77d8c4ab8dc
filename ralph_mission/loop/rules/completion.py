"""When the work is done: what state files prove, never what an agent says alone.

When a run ends by a limit. Asked before each session, so that no limit is passed by starting one more.
"""

from __future__ import annotations

from ralph_mission.loop.model.items import LoopEvent
from ralph_mission.loop.model.order import RunEnding, RunLimits, RunSpec
from ralph_mission.loop.model.state import CONVERGED, RESUME, RunSnapshot, RunState
from ralph_mission.loop.rules.routing import has_reviewer


def looks_done(order: RunSpec, state: RunState, board: RunSnapshot) -> bool:
    """Whether the work looks done: stories, reviewer's verdict, or else the promise. Verification comes after.

    Where stories are reviewed both are asked for, unless all of them passed before anybody played.
    """
    agreed = state.pending.topic == CONVERGED
    if order.preset.stories:
        passed = board.prd is not None and bool(board.prd.stories) and not board.prd.todo
        return passed and (agreed or not has_reviewer(order.hats) or not state.iteration)
    if has_reviewer(order.hats):
        return agreed
    return bool(state.last and state.last.promised)


def remaining(order: RunSpec, board: RunSnapshot) -> str:
    """The boulder: why a claim is not enough yet, "" when nothing is open."""
    if order.open_tasks == "trust" or not board.open_tasks:
        return ""
    names = ", ".join(f"{task.id} ({task.status})" for task in board.open_tasks[:5])
    return f"{len(board.open_tasks)} tasks are open: {names}"


def find_dead_end(order: RunSpec, state: RunState, board: RunSnapshot) -> RunEnding | None:
    """The end when a person has to look: every story (in free form every open task) that is left was skipped, or
    nothing is listed and the reviewer goes on asking for no less.
    """
    if not state.item and has_reviewer(order.hats) and state.stale >= 2 * order.limits.stuck:
        standing = f"{len(state.pending.issues)} issues are left" if state.pending.issues else "the checks stay red"
        what = f"{state.stale} reviews in a row came no nearer: {standing}"
        return RunEnding("stuck", what, "say what is meant with ralph guidance, then --continue")
    left = _stories_left(board) if order.preset.stories else _tasks_left(order, board)
    skipped = [row for name, row in left.items() if name in state.skipped]
    if not skipped or len(skipped) < len(left):
        return None
    what = f"skipped after many attempts: {', '.join(skipped)}"
    return RunEnding("stuck", what, "split them or say how with ralph guidance")


def _stories_left(board: RunSnapshot) -> dict[str, str]:
    return {story.id: f"{story.id} {story.title}" for story in board.prd.todo} if board.prd else {}


def _tasks_left(order: RunSpec, board: RunSnapshot) -> dict[str, str]:
    """Those that somebody could work on: one that waits for a skipped one gives nobody anything to do."""
    if order.open_tasks == "trust":
        return {}
    return {task.id: f"{task.id} {task.title}" for task in board.open_tasks if task.status != "pending"}


def resume_event() -> LoopEvent:
    """What a persistent loop says instead of ending."""
    return LoopEvent(RESUME, "The last piece of work is complete. Look for the next, or wait for guidance.")


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
