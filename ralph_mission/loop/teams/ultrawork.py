"""Many builders at the same time, each in its own clone: Ultrawork, and parallel stories.

Ultrawork: Planner → tasks with disjoint files → builders in separate clones, merged in the order of the tasks → one
Reviewer on the whole → Fixer, a bounded number of times. A builder that crashes, leaves its files or conflicts with
another does not affect others: its task is retried once, alone, on the merged state; then it fails, and the run reports
it.

Parallel stories: those that wait for no other are built at the same time. Changes without conflicts are merged in the
order of the list; their stories pass together if the checks pass on the whole. Each story has one such attempt. The
rest (a conflict, a failed session, failed checks) continues one by one, as in any run with stories, and may be claimed
by the same event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from ralph_mission.errors import UserError
from ralph_mission.loop import hats
from ralph_mission.loop.model.spec import SIDE_BY_SIDE, RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import (
    PLANNED,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    CheckResult,
    Hat,
    HatOutput,
    LoopEvent,
    RunSnapshot,
    SessionCommit,
    UserStory,
)
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, RunPorts, SessionPool
from ralph_mission.loop.rules import routing
from ralph_mission.loop.run import LoopRun, play_next, run_loop, until_ended
from ralph_mission.loop.stories import judge
from ralph_mission.loop.teams import Orchestration, RunOver, SessionPart, assignments, run_orchestration
from ralph_mission.loop.teams.assignments import AssignedTask, UnclearAssignment
from ralph_mission.values import dataclass

FIXES, TRIES, PLANS = 3, 2, 2
"""Sessions of the Fixer, of the Builder for one task, of the Planner for a plan that can be divided."""
LIST = "ultrawork.json"
REFUSED, MERGED, FIXED, BUILT = "plan.refused", "build.merged", "fix.complete", "build.complete"
Status = Literal["todo", "done", "failed"]

PLANNER = Hat(
    "planner", (START, REFUSED), (PLANNED,), "", "divides the work among builders who never meet",
    "Divide the work into tasks that can be built at the same time: none needs another one's result, and no two write "
    "the same files. The text of your event is JSON: "
    '{"tasks": [{"id": "api-users", "title": "…", "description": "what to build, and how it is proven", '
    '"files": ["src/users/**", "tests/test_users.py"]}]}. `files` are globs: all that the task may write.',
    write_allowed=(),
)  # fmt: skip  # its text as it stands in the prompt
BUILDER = Hat(
    "builder", (PLANNED,), (BUILT,), BUILT, "builds one task, within its files",
    "Build the task of the event. Others build theirs at this moment elsewhere; you see nothing of it, and you do not "
    "need it. Write only the files that are yours.",
)  # fmt: skip  # as above
REVIEWER = replace(
    hats.REVIEWER,
    triggers=(MERGED, FIXED),
    instructions="Several builders worked apart, and their work was put together. Judge the whole: does each task do "
    f"what it should, and do the parts fit? {hats.REVIEWER.instructions}",
)
FIXER = replace(hats.FIXER, triggers=(VERDICT, VERIFICATION_FAILED), default_publishes=FIXED)
STORY_BUILDER = Hat(
    "builder", (PLANNED,), (BUILT,), "", "builds one story, while others build theirs",
    "Build the story of the event, all of it and nothing else, with its tests. Others build other stories at this "
    "moment elsewhere: keep to the files that yours needs. The list of stories is not yours to change.",
)  # fmt: skip  # as above


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """A task in progress. `why`: the last attempt's problem."""

    piece: AssignedTask
    status: Status = "todo"
    tries: int = 0
    why: str = ""


def run_ultrawork(
    spec: RunSpec, ports: RunPorts, pool: SessionPool, artifacts: ArtifactStore, fixes: int = FIXES
) -> RunResult:
    """Do `spec.objective` with parallel builders.

    "complete"; "rounds" if the reviewer still objects after `fixes`; "stuck" if the plan cannot be divided, or if tasks
    failed (the others are built, merged and reviewed).
    """
    return run_orchestration(spec, ports, pool, artifacts, lambda stage: _run_ultrawork(stage, fixes))


def _run_ultrawork(stage: Orchestration, fixes: int) -> RunEnding:
    works = _build(stage, _load(stage) or _divide(stage))
    if not any(work.status == "done" for work in works):
        return _unbuilt_ending(works)
    _review(stage, works, fixes)
    return (
        _unbuilt_ending(works)
        if _failed_works(works)
        else stage.finished(f"{len(works)} tasks built, merged and reviewed")
    )


# --- dividing ------------------------------------------------------------------------


def _divide(stage: Orchestration) -> tuple[TaskProgress, ...]:
    event, wrong = LoopEvent(START), ""
    for _ in range(PLANS):
        output = stage.play(SessionPart("plan", PLANNER, event))
        try:
            pieces = assignments.parse_independent_tasks(output.event.payload if output.event else "")
        except UnclearAssignment as unclear:
            wrong = str(unclear)
            event = LoopEvent(REFUSED, f"Nothing was built, because {wrong}. Divide the work again.")
            continue
        return _save(stage, tuple(map(TaskProgress, pieces)))
    raise RunOver(
        RunEnding("stuck", f"the work could not be divided: {wrong}", "divide it yourself, or run it without")
    )


# --- building ------------------------------------------------------------------------


def _build(stage: Orchestration, works: tuple[TaskProgress, ...]) -> tuple[TaskProgress, ...]:
    """First all in parallel; then the remaining ones alone, one after the other."""
    while todo := [work for work in works if work.status == "todo"]:
        batch = [work for work in todo if not work.tries] or todo[:1]
        dones = {done.name: done for done in stage.together([_session_part(work) for work in batch])}
        works = tuple(after(work, dones[work.piece.id]) if work in batch else work for work in works)
        _save(stage, works)
    return works


def _session_part(work: TaskProgress) -> SessionPart:
    piece = work.piece
    return SessionPart(piece.id, replace(BUILDER, write_allowed=piece.files), task_event(piece), piece.id, work.why)


def task_event(piece: AssignedTask) -> LoopEvent:
    """The event that hands a task to its builder."""
    return LoopEvent(PLANNED, "\n".join(filter(None, (f"{piece.id}: {piece.title}", piece.description))))


def after(work: TaskProgress, done: ParallelResult) -> TaskProgress:
    """The task after its session: done without a problem, else to be retried or failed."""
    if done.output is None:
        return work
    if not (why := problem(done)):
        return replace(work, status="done", tries=work.tries + 1, why="")
    tries = work.tries + 1
    return replace(work, status="failed" if tries >= TRIES else "todo", tries=tries, why=why)


def problem(done: ParallelResult) -> str:
    """A separate session's problem, for the next attempt, or ""."""
    output = done.output or HatOutput("", 0)
    if output.failure:
        return f"The last attempt failed ({output.failure}): {output.reason}. Nothing of it was taken over."
    if done.conflicts:
        rows = "\n".join(f"- {change.path}: {change.reverted}" for change in done.conflicts[:20])
        return f"The last attempt met the work of others, and nothing of it was taken over:\n{rows}"
    if output.reverted:
        rows = "\n".join(f"- {change.path}: undone, because {change.reverted}" for change in output.reverted[:20])
        return f"The last attempt left its files; the rest of it was taken over:\n{rows}"
    return ""


# --- reviewing -----------------------------------------------------------------------


def _review(stage: Orchestration, works: Sequence[TaskProgress], fixes: int) -> None:
    """Repeat until the reviewer has no critical issues and the checks pass. Raises RunOver after `fixes`."""
    event = LoopEvent(MERGED, "\n".join(f"- {work.piece.id} ({work.status}): {work.piece.title}" for work in works))
    for fixed in range(fixes + 1):
        checks = stage.verify()
        output = stage.play(SessionPart("review", REVIEWER, event, feedback=describe_red(checks)))
        if checks.green and output.event and routing.is_converged(output.event, stage.spec.threshold):
            return
        if fixed == fixes:
            raise RunOver(_not_fixed(output, checks, fixes))
        event = (
            stage.play(
                SessionPart("fix", FIXER, _fix_event(stage, output, checks), feedback=describe_red(checks))
            ).event
            or event
        )


def _fix_event(stage: Orchestration, output: HatOutput, checks: CheckResult) -> LoopEvent:
    event = output.event
    if event and not routing.is_converged(event, stage.spec.threshold):
        return event
    return LoopEvent(VERIFICATION_FAILED, checks.said)


def describe_red(checks: CheckResult) -> str:
    """What the next session is told of red checks."""
    return "" if checks.green else f"The checks are red:\n{checks.said}"


def _not_fixed(output: HatOutput, checks: CheckResult, fixes: int) -> RunEnding:
    found = "; ".join(issue.message for issue in output.issues[:10]) or checks.said[-500:]
    return RunEnding(
        "rounds",
        f"not fixed in {fixes} fixes: {found}",
        "fix it, or say how with ralph agent guidance, then --continue",
    )


def _unbuilt_ending(works: Sequence[TaskProgress]) -> RunEnding:
    listed = "; ".join(f"{work.piece.id}: {work.why.splitlines()[0]}" for work in _failed_works(works))
    return RunEnding("stuck", f"tasks failed: {listed}", "--continue tries them again; the others are built")


def _failed_works(works: Sequence[TaskProgress]) -> list[TaskProgress]:
    return [work for work in works if work.status == "failed"]


# --- between two processes -----------------------------------------------------------


def _save(stage: Orchestration, works: tuple[TaskProgress, ...]) -> tuple[TaskProgress, ...]:
    stage.artifacts.write(LIST, json.dumps({"tasks": task_rows(works)}, indent=2, ensure_ascii=False) + "\n")
    return works


def task_rows(works: Sequence[TaskProgress]) -> list[dict[str, Any]]:
    """The tasks as a list of JSON objects."""
    return [asdict(work.piece) | {"status": work.status, "tries": work.tries, "why": work.why} for work in works]


def tasks_again(pieces: Sequence[AssignedTask], rows: Sequence[Mapping[str, Any]]) -> tuple[TaskProgress, ...]:
    """An earlier process's tasks, with failed ones reset."""
    status: tuple[Status, ...] = tuple("done" if row.get("status") == "done" else "todo" for row in rows)
    return tuple(map(TaskProgress, pieces, status))


def _load(stage: Orchestration) -> tuple[TaskProgress, ...]:
    """An earlier process's tasks, with failed ones reset, or () if unreadable."""
    if stage.fresh:
        return ()
    text = stage.artifacts.read(LIST)
    try:
        pieces = assignments.parse_independent_tasks(text)
        rows = assignments.parse_document(text)["tasks"]
    except UnclearAssignment:
        return ()
    return tasks_again(pieces, rows)


def run_stories(spec: RunSpec, ports: RunPorts, pool: SessionPool, artifacts: ArtifactStore, most: int) -> RunResult:
    """Run the stories of `spec`, at most `most` at the same time. Raises UserError (usage) for custom hats."""
    if spec.hats or spec.require_checks or spec.single_story:
        what = "stories side by side have no hats, no --require-tests and no --single-story-per-run"
        raise UserError(what, "leave --parallel out, or the others", usage=True)
    tried: set[str] = set()

    def orchestrate(this: LoopRun) -> RunEnding:
        apart = replace(spec, objective=f"Build one story of this: {spec.objective}", kind=SIDE_BY_SIDE)
        stage = Orchestration(this, pool, artifacts, replace(apart, preset=replace(spec.preset, stories=False)))

        def play(this: LoopRun, snapshot: RunSnapshot) -> None:
            batch = _find_batch(this, snapshot, tried)[:most]
            if len(batch) < 2:
                return play_next(this, snapshot)
            tried.update(story.id for story in batch)
            _build_together(stage, batch)

        try:
            return until_ended(this, play)
        except RunOver as over:
            return over.ending

    return run_loop(replace(spec, claim=BUILT), ports, orchestrate)


def _find_batch(this: LoopRun, snapshot: RunSnapshot, tried: set[str]) -> list[UserStory]:
    ready = snapshot.prd.ready if snapshot.prd else ()
    return [story for story in ready if story.id not in this.state.skipped and story.id not in tried]


def _build_together(stage: Orchestration, batch: Sequence[UserStory]) -> None:
    this = stage.this
    before, first = this.state, len(this.outputs)
    parts = [_story_part(number, story) for number, story in enumerate(batch, 1)]
    dones = stage.together(parts)
    merged = [story for story, done in zip(batch, dones, strict=True) if _is_built(done)]
    built = this.state.built.union(story.id for story in merged)  # they need no change of their own after that
    this.state = replace(this.state, pending=before.pending, item=before.item, stale=0, feedback="", built=built)
    stage.ports.store.keep(this.state, None)
    if not merged:
        return
    stage.ports.workplace.begin_session()
    checks = stage.verify()
    if not checks.green:
        feedback = f"Stories were built side by side and merged, and the checks are red on the whole:\n{checks.said}"
        this.state = replace(this.state, feedback=feedback)
        stage.ports.store.keep(this.state, None)
        return
    stories = {part.name: story.id for part, story in zip(parts, batch, strict=True)}
    ran = [stories[done.name] for done in dones if done.output]
    _let_pass(stage, merged, {id: place for place, id in enumerate(ran, first)}, checks)


def _story_part(number: int, story: UserStory) -> SessionPart:
    lines = (
        f"{story.id}: {story.title}",
        story.description,
        *(f"- {criterion}" for criterion in story.criteria),
        story.notes,
    )
    event = LoopEvent(PLANNED, "\n".join(filter(None, lines)))
    return SessionPart(f"story-{number}", STORY_BUILDER, event, story.id)


def _is_built(done: ParallelResult) -> bool:
    """Whether a session reported its story as built, and changes beside the list were merged."""
    return done.output is not None and not problem(done) and bool(done.output.commits)


def _let_pass(
    stage: Orchestration, stories: Sequence[UserStory], places: Mapping[str, int], checks: CheckResult
) -> None:
    """Mark the stories, and complete the record of each one's session, which is at `places` of the outputs."""
    this, ports = stage.this, stage.ports
    snapshot = ports.store.snapshot()
    assert snapshot.prd is not None
    passed = {story.id for story in stories}
    listed = tuple(replace(story, passes=story.passes or story.id in passed) for story in snapshot.prd.stories)
    ports.store.stories(replace(snapshot.prd, stories=listed))
    named = ", ".join(judge.one_line(story.id, 40) for story in stories)
    message = f"feat: {named} pass, built side by side"
    landed = ports.workplace.land(message, True, ports.store.judged)
    this.state = replace(this.state, built=this.state.built - passed)
    for story in stories:
        output = replace(this.outputs[places[story.id]], passed=(story.id,), verification=checks)
        if landed and story is stories[-1]:
            output = replace(output, commits=(*output.commits, SessionCommit(landed, message)))
        if entry := judge.log_entry(stage.spec, story.id, output, snapshot.notes, ports.clock.now()):
            ports.store.note(entry)
        this.outputs[places[story.id]] = output
        ports.store.keep(this.state, output)  # which also brings the lists to the checkout
