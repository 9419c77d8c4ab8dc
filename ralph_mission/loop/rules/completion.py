"""When a run ends: the work is done, a limit is reached, or it is stuck. Pure folds over `RunState`.

State files prove that work is done; an agent's word alone does not. Limits are checked before each session, so none is
exceeded by starting one more.

Progress is measured in two ways: is this *item* getting done (`stale`), and does anything move at all (`idle`)? A
commit answers only the second: a story can take many honest sessions. For hats that take turns over an item, a round
counts as one session, and with a reviewer only verdicts with no fewer issues than before count as stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ralph_mission.loop.model.spec import RunEnding, RunLimits, RunSpec
from ralph_mission.loop.model.state import (
    CONVERGED,
    PLANNED,
    RESUME,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    CheckResult,
    Hat,
    HatOutput,
    LoopEvent,
    RunSnapshot,
    RunState,
    SessionUsage,
)
from ralph_mission.loop.rules import routing
from ralph_mission.loop.rules.routing import find_hat, has_reviewer, next_event


def looks_done(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> bool:
    """Whether the work looks done: by stories, the reviewer's verdict, or else the promise. Checks come after.

    Reviewed stories need both, unless all of them passed before the first session.
    """
    agreed = state.pending.topic == CONVERGED
    if spec.preset.stories:
        passed = snapshot.prd is not None and bool(snapshot.prd.stories) and not snapshot.prd.todo
        return passed and (agreed or not has_reviewer(spec.hats) or not state.iteration)
    if has_reviewer(spec.hats):
        return agreed
    return bool(state.last and state.last.promised)


def remaining(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> str:
    """Why a claim is not enough yet, or "".

    Checks that passed before say nothing about work that was not done: without a review or a list, at least one file
    must differ from the start of the run.
    """
    empty = "it was declared done, and no file has changed since the run began"
    found = (describe_missing(spec, state), empty if _is_empty_claim(spec, state) else "", open_tasks(spec, snapshot))
    return "; ".join(filter(None, found))


def describe_missing(spec: RunSpec, state: RunState) -> str:
    """The required events that are missing, or ""."""
    missing = [topic for topic in spec.required_events if topic not in state.said]
    return f"still to be emitted: {', '.join(missing)}" if missing else ""


def describe_unfinished(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> str:
    """Why the work does not count as done after the last session, or "": checks are red, tasks are open, or it never
    said so."""
    last = state.last
    if not last or last.promised:
        return ""
    if not last.verification.green:
        return f"the checks are still red: {last.verification.failing}"
    if why := open_tasks(spec, snapshot):
        return why
    if spec.preset.stories or has_reviewer(spec.hats):
        return ""
    if state.claims:
        return f"it ended with {spec.preset.promise}, but no file has changed"
    checks = "the checks are green, but " if last.verification.ran else ""
    return f"{checks}the agent never ended with {spec.preset.promise}, which says that it is done"


def _is_empty_claim(spec: RunSpec, state: RunState) -> bool:
    unproven = not spec.preset.stories and not has_reviewer(spec.hats)
    return spec.require_change and not spec.persistent and unproven and not state.changed


def open_tasks(spec: RunSpec, snapshot: RunSnapshot) -> str:
    """The open tasks, or "" (also in a persistent loop, which hands them over)."""
    if spec.open_tasks == "trust" or spec.persistent or not snapshot.open_tasks:
        return ""
    names = ", ".join(f"{task.id} ({task.status})" for task in snapshot.open_tasks[:5])
    count = len(snapshot.open_tasks)
    return f"{f'{count} tasks are' if count > 1 else '1 task is'} open: {names}"


def find_dead_end(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> RunEnding | None:
    """The ending if a person has to look: declared done again without a change, all remaining stories (without stories:
    open tasks) skipped, or, without a list, a reviewer whose issues do not get fewer.
    """
    if not state.item and has_reviewer(spec.hats) and state.stale >= 2 * spec.limits.stuck:
        reason = f"{len(state.pending.issues)} issues are left" if state.pending.issues else "the checks stay red"
        what = f"{state.stale} reviews in a row came no nearer: {reason}"
        return RunEnding("stuck", what, "say what is meant with ralph agent guidance, then --continue")
    if state.red_claims >= RED_CLAIMS and not spec.persistent:
        what = f"it called itself done {state.red_claims} times in a row, each time at the same red check: {state.red}"
        return RunEnding("stuck", what, "fix the check, or say how with ralph agent guidance, then --continue")
    if _is_empty_claim(spec, state) and state.claims >= CLAIMS:
        what = f"it called itself done {state.claims} times, and no file has changed{_describe_undone(state)}"
        return RunEnding("idle", what, IDLE_ADVICE)
    open_items = _stories_left(snapshot) if spec.preset.stories else _tasks_left(spec, snapshot)
    skipped = [row for name, row in open_items.items() if name in state.skipped]
    if not skipped or len(skipped) < len(open_items):
        return None
    waiting = len(snapshot.prd.todo) - len(open_items) if spec.preset.stories and snapshot.prd else 0
    what = f"skipped after many attempts: {', '.join(skipped)}" + (f"; {waiting} wait for them" if waiting else "")
    return RunEnding("stuck", what, "split them or say how with ralph agent guidance")


def _describe_undone(state: RunState) -> str:
    """What was undone of the last session, and why."""
    undone = state.last.reverted[:3] if state.last else ()
    return "".join(f"; undone: {change.path} ({change.reverted})" for change in undone)


def _stories_left(snapshot: RunSnapshot) -> dict[str, str]:
    """Stories that can be worked on, without those that wait for others."""
    return {story.id: f"{story.id} {story.title}" for story in snapshot.prd.ready} if snapshot.prd else {}


def _tasks_left(spec: RunSpec, snapshot: RunSnapshot) -> dict[str, str]:
    """Tasks that can be worked on, without those that wait for a skipped one."""
    if spec.open_tasks == "trust" or spec.persistent:
        return {}
    return {task.id: f"{task.id} {task.title}" for task in snapshot.open_tasks if task.status != "pending"}


NO_EVENT = "The last session called nobody. Look for the next piece of work; if there is none, emit nothing."
"""What the next session of a persistent loop reads then."""


def resume_event(snapshot: RunSnapshot) -> LoopEvent:
    """The event of a persistent loop instead of ending, with what the last piece of work left open."""
    unfinished = ", ".join(f"{task.id} {task.title}" for task in snapshot.open_tasks[:5])
    handed = f" These tasks were left open, take them up or close them: {unfinished}." if unfinished else ""
    payload = f"The last piece of work is complete.{handed} Look for the next, or wait for guidance."
    return LoopEvent(RESUME, payload)


def is_out_of_work(spec: RunSpec, state: RunState) -> bool:
    """Whether the last session changed nothing and called no hat, or all hats were called in vain."""
    if not state.idle or state.failures:
        return False
    done = bool(state.last and state.last.promised) or state.pending.topic in (START, RESUME, CONVERGED)
    return done or state.idle > len(spec.hats)


NOBODY = ("missing", "auth")
"""Failures only a person can fix: no program, no key."""


def is_failing(spec: RunSpec, state: RunState) -> bool:
    """Whether a persistent loop waits because too many sessions in a row failed, for a reason that may pass."""
    passing = state.last is not None and state.last.failure not in NOBODY
    return spec.persistent and passing and state.failures >= spec.limits.failures


def reached_limit(limits: RunLimits, state: RunState, elapsed: float) -> RunEnding | None:
    """The first limit reached; `elapsed`: seconds over all processes of the run."""
    if state.last and state.last.failure == "auth" and state.failures and not state.last.progressed:
        return RunEnding("failures", state.last.reason.partition("\n")[0], "log in, or check the key, then --continue")
    if state.last and state.last.failure == "rate_limit" and state.failures:  # else the session would have waited
        what = f"its time is over before the provider's limit is: {state.last.reason.partition(chr(10))[0]}"
        return RunEnding("runtime", what, "resume with --continue later, or with a higher --max-runtime")
    checks = (_failure_ending, _thrash_ending, _idle_ending, _cost_ending)
    return _counted_limit(limits, state, elapsed) or next(
        (ending for check in checks if (ending := check(limits, state))), None
    )


def seconds(limits: RunLimits, state: RunState) -> float:
    """Seconds for the next session: at most what is left of the run, at least one."""
    return max(1.0, min(limits.session, limits.runtime - state.elapsed))


def _counted_limit(limits: RunLimits, state: RunState, elapsed: float) -> RunEnding | None:
    if state.iteration >= limits.iterations:
        why = "fix what made the last session fail, then resume" if state.failures else "resume"
        played = f"{state.iteration} session{'s'[: state.iteration != 1]}"
        return RunEnding("iterations", played, f"{why} with --continue and a higher --max-iterations")
    if elapsed >= limits.runtime:
        return RunEnding("runtime", f"{elapsed:.0f} s", "resume with --continue and a higher --max-runtime")
    return None


def _failure_ending(limits: RunLimits, state: RunState) -> RunEnding | None:
    if state.failures < limits.failures:
        return None
    last = state.last.reason if state.last else ""
    return RunEnding("failures", f"{state.failures} sessions in a row failed: {last}", "fix that, then --continue")


def _thrash_ending(limits: RunLimits, state: RunState) -> RunEnding | None:
    if state.redispatches < limits.redispatches:
        return None
    what = f"{state.pending.topic} was handed out {state.redispatches + 1} times without a result"
    return RunEnding("thrash", what, "say what is meant with ralph agent guidance, then --continue")


def _idle_ending(limits: RunLimits, state: RunState) -> RunEnding | None:
    if state.idle < limits.idle:
        return None
    what = f"{state.idle} sessions in a row changed no file, commit, story or task"
    return RunEnding("idle", what, "look at the last session (ralph logs), then --continue")


def _cost_ending(limits: RunLimits, state: RunState) -> RunEnding | None:
    if limits.usd is None or not state.usage.sessions:
        return None
    known, untold = state.usage.cost_usd or 0.0, state.usage.untold
    if known >= limits.usd:
        spent = f"${known:.2f} of ${limits.usd:.2f}"
        return RunEnding("cost", spent, "resume with --continue and a higher --max-cost")
    if not untold or limits.unpriced:
        return None
    what = f"the cost is unknown: {untold} of {state.usage.sessions} sessions did not report it"
    return RunEnding(
        "cost", what, "set prices in ralph.yml (cost: prices:) for agents that report tokens, or drop --max-cost"
    )


CLAIMS = 2
"""Declarations of done without a change until a run ends: the first brings feedback, the second ends it."""
RED_CLAIMS = 8
"""Declarations of done in a row, at the same failure of the same check, until a run ends: more sessions cost more and
tell no more."""
IDLE_ADVICE = (
    "look at the last session (ralph logs), say what is missing with ralph agent guidance, then --continue; "
    "where nothing has to change, a reviewer's verdict ends it: ralph run --pattern plan-build-review"
)
REFUSALS = 20
"""Refused commands that the next session reads about."""
StuckAdvice = Literal["", "warn", "replan", "skip"]


def item_of(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> str:
    """The item of the next session: the first remaining story, else the first ready task, else ""."""
    if spec.preset.stories and snapshot.prd:
        return next((story.id for story in snapshot.prd.ready if story.id not in state.skipped), "")
    ready = (task for task in snapshot.tasks if task.status in ("ready", "active") and task.id not in state.skipped)
    return next((task.id for task in sorted(ready, key=lambda task: task.priority)), "")


def advise_stuck(spec: RunSpec, state: RunState) -> StuckAdvice:
    """The advice for the next session on the same item: a warning, to make a new plan, or that it is skipped."""
    threshold, stuck = spec.limits.stuck, count_stuck(spec, state)
    if stuck >= 2 * threshold:
        return "skip"
    if stuck > threshold:
        return "replan"
    return "warn" if stuck == threshold else ""


def count_stuck(spec: RunSpec, state: RunState) -> int:
    """The number of sessions without progress; without an item or a reviewer, without any change."""
    if has_reviewer(spec.hats):
        return state.stale
    return state.stale // max(1, len(spec.hats)) if state.item else state.idle


def focus(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> RunState:
    """The state with the next session's item; one that took too long is skipped."""
    if _under_review(spec, state):
        return _passed_over(spec, state, snapshot)
    if state.pending.topic == CONVERGED and spec.preset.stories and snapshot.prd and snapshot.prd.todo:
        state = _call_next(spec, state, "the review is over, go on")
    item = item_of(spec, state, snapshot)
    if item != state.item:
        return replace(state, item=item, stale=0, left=None, taken="")
    return _passed_over(spec, state, snapshot)


def _under_review(spec: RunSpec, state: RunState) -> bool:
    """Whether an item is still under review, until a reviewer has no issues left."""
    begins = (START, RESUME, PLANNED, CONVERGED)
    return bool(state.item) and has_reviewer(spec.hats) and state.pending.topic not in begins


def _passed_over(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> RunState:
    item = state.item
    if item and advise_stuck(spec, state) == "skip":
        passed_over = replace(state, skipped=state.skipped | {item}, stale=0, left=None)
        following = item_of(spec, passed_over, snapshot)
        return replace(_call_next(spec, passed_over, f"{item} was skipped, go on"), item=following)
    return state


def take_up(state: RunState, mark: str) -> RunState:
    """The state for a session that starts at `mark`; run and item start there too, unless they had before."""
    return replace(state, taken=state.taken or mark, begun=state.begun or ("" if state.iteration else mark))


def advance_state(spec: RunSpec, state: RunState, output: HatOutput, elapsed: float) -> RunState:
    """The state after a session: the next hat, its feedback, and the counters."""
    stale = _count_stale(spec, state, output)
    pending = _next_state(spec, replace(state, stale=stale), output)
    again = _is_same(state.pending, pending) and not output.progressed and pending.topic not in (RESUME, START)
    settled = replace(
        take_up(state, output.mark),
        iteration=output.iteration,
        pending=pending,
        feedback=_collect_feedback(output),
        stale=stale,
        left=_issues_left(state, output, pending),
        idle=_count_idle(spec, state, output),
        failures=state.failures + 1 if output.failure else 0,
        redispatches=state.redispatches + 1 if again else 0,
        last=output,
        elapsed=elapsed,
        mark="",
        changed=output.changed if output.mark else state.changed,
        built=state.built.union(output.built).difference(output.passed),
        said=state.said | ({output.event.topic} if output.event and _is_said(output.event) else set()),
    )
    return _add_usage(settled, state.item, output)


def _is_said(event: LoopEvent) -> bool:
    """Whether a session emitted it: a hat's default event counts for no required one."""
    return event.payload != routing.NOTHING_EMITTED


def state_after_red_checks(spec: RunSpec, state: RunState, checks: CheckResult) -> RunState:
    """The work looked done but checks fail: the builder gets feedback."""
    failure, last = checks.said, replace(state.last, verification=checks) if state.last else None
    event = LoopEvent(VERIFICATION_FAILED, failure)
    if find_hat(spec.hats, event) is None and builder(spec.hats):
        event = LoopEvent(PLANNED, failure)
    again = state.red_claims + 1 if checks.failing == state.red else 1
    return replace(state, pending=event if spec.hats else state.pending, feedback=f"The checks are red:\n{failure}",
                   stale=_add_stuck(spec, state), last=_without_promise(last), red=checks.failing, red_claims=again,
                   )  # fmt: skip  # one sentence


def state_after_open_tasks(spec: RunSpec, state: RunState, why: str) -> RunState:
    """The work looked done but tasks are open: back to the hat that takes the next one."""
    return replace(_call_next(spec, state, why), feedback=f"Not done yet: {why}.", stale=_add_stuck(spec, state),
                   last=_without_promise(state.last),
                   claims=state.claims + (not describe_missing(spec, state) and _is_empty_claim(spec, state)),
                   )  # fmt: skip  # one sentence


def _add_stuck(spec: RunSpec, state: RunState) -> int:
    """With a reviewer, a clean verdict that proves nothing counts as no progress, like one with as many issues."""
    return state.stale + 1 if has_reviewer(spec.hats) else state.stale


def _without_promise(last: HatOutput | None) -> HatOutput | None:
    return replace(last, promised=False) if last else None


def state_after_resume(state: RunState, snapshot: RunSnapshot) -> RunState:
    """The state between two pieces of work of a persistent loop."""
    last = _without_promise(state.last)
    return replace(state, pending=resume_event(snapshot), feedback="", item="", stale=0, left=None, last=last)


def _call_next(spec: RunSpec, state: RunState, why: str) -> RunState:
    """Call the hat that takes the next piece of work."""
    return replace(state, pending=LoopEvent(PLANNED if builder(spec.hats) else START, why))


def builder(hats: Sequence[Hat]) -> Hat | None:
    """The hat that gets failing checks by default: the first that listens to a plan."""
    return next((hat for hat in hats if PLANNED in hat.triggers), None)


def _next_state(spec: RunSpec, state: RunState, output: HatOutput) -> LoopEvent:
    if output.event is None:
        again = LoopEvent(RESUME, NO_EVENT) if spec.persistent else LoopEvent(START)
        return again if spec.hats and not output.failure else state.pending
    event = next_event(output.event, spec.threshold)
    planner = routing.planner(spec.hats)
    if event.topic == VERDICT and planner and state.stale == spec.limits.stuck + 1:
        return replace(event, topic=_call_hat(planner))
    return event


def _call_hat(hat: Hat) -> str:
    return next((topic for topic in hat.triggers if "*" not in topic), START)


def _count_stale(spec: RunSpec, state: RunState, output: HatOutput) -> int:
    """The number of sessions without progress; review rounds count as progress while each leaves fewer issues."""
    if state.item and state.item in output.passed:
        return 0
    if not has_reviewer(spec.hats):
        return state.stale + 1
    if state.left is None or output.event is None or output.event.topic != VERDICT:
        return state.stale
    return 0 if len(output.issues) < state.left else state.stale + 1


def _count_idle(spec: RunSpec, state: RunState, output: HatOutput) -> int:
    """The number of sessions that changed nothing; a persistent loop's failed ones do not tell that work is lacking."""
    if output.progressed:
        return 0
    return state.idle if spec.persistent and output.failure else state.idle + 1


def _issues_left(state: RunState, output: HatOutput, pending: LoopEvent) -> int | None:
    if pending.topic == CONVERGED:
        return None
    return len(output.issues) if output.event and output.event.topic == VERDICT else state.left


def _is_same(before: LoopEvent, after: LoopEvent) -> bool:
    return (before.topic, before.payload) == (after.topic, after.payload)


def _collect_feedback(output: HatOutput) -> str:
    undone = [f"- {change.path}: {change.how}; undone, because {change.reverted}" for change in output.reverted]
    refused = [f"- {why}" for why in output.refused[:REFUSALS]]
    reasons = ([output.reason] if output.reason else []) + (["What was undone:", *undone] if undone else [])
    return "\n".join((*reasons, *(["Commands that were refused:", *refused] if refused else [])))


def _add_usage(state: RunState, item: str, output: HatOutput) -> RunState:
    return replace(
        state,
        usage=state.usage + output.usage,
        by_hat=_add_to_table(state.by_hat, output.hat, output.usage),
        by_item=_add_to_table(state.by_item, item, output.usage) if item else state.by_item,
    )


def _add_to_table(
    table: tuple[tuple[str, SessionUsage], ...], name: str, usage: SessionUsage
) -> tuple[tuple[str, SessionUsage], ...]:
    known = dict(table)
    return tuple({**known, name: known.get(name, SessionUsage()) + usage}.items())
