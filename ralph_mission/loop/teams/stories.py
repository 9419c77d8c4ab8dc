"""Parallel stories: those that wait for no other are built at the same time, each in its own clone.

Changes without conflicts are merged in the order of the list; their stories pass together if the checks pass on the
whole. Each story has one such attempt. The rest (a conflict, a failed session, failed checks) continues one by one, as
in any run with stories, and may be claimed by the same event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import SIDE_BY_SIDE, RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import PLANNED, CheckResult, Hat, LoopEvent, RunSnapshot, SessionCommit, UserStory
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, RunPorts, SessionPool
from ralph_mission.loop.run import LoopRun, play_next, run_loop, until_ended
from ralph_mission.loop.stories import judge
from ralph_mission.loop.teams.stage import Orchestration, RunOver, SessionPart
from ralph_mission.loop.teams.ultrawork import BUILT, problem

BUILDER = Hat(
    "builder", (PLANNED,), (BUILT,), "", "builds one story, while others build theirs",
    "Build the story of the event, all of it and nothing else, with its tests. Others build other stories at this "
    "moment elsewhere: keep to the files that yours needs. The list of stories is not yours to change.",
)  # fmt: skip  # its text as it stands in the prompt


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
    parts = [_session_part(number, story) for number, story in enumerate(batch, 1)]
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


def _session_part(number: int, story: UserStory) -> SessionPart:
    lines = (
        f"{story.id}: {story.title}",
        story.description,
        *(f"- {criterion}" for criterion in story.criteria),
        story.notes,
    )
    event = LoopEvent(PLANNED, "\n".join(filter(None, lines)))
    return SessionPart(f"story-{number}", BUILDER, event, story.id)


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
