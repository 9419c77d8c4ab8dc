"""The stories of a task, written by planner sessions: until the list is one that a run can work through.

The first part of a run that has a task and no stories yet, or all of it (`ralph plan`). What it took is on the account
of the same run: numbers of sessions, cost and time go on in what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralph_mission.loop.model.items import LoopEvent
from ralph_mission.loop.model.order import PLANNING, RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import START, Hat, Prd, RunState
from ralph_mission.loop.ports import RunPorts
from ralph_mission.loop.rules import completion
from ralph_mission.loop.run import SIGNAL_ENDINGS, LoopRun, run_loop, session
from ralph_mission.loop.stories import lint
from ralph_mission.loop.teams.stage import with_own_settings

Read = Callable[[], tuple[Prd | None, str]]
"""What stands in the file now, and a complaint about it."""
ATTEMPTS = 3
KIND = PLANNING
AGREED = "plan.approved"
NOBODY = ("missing", "auth")
"""Failures that only a person can mend: no program, no key."""
PLANNER = Hat(
    "planner",
    publishes=("plan.complete",),
    default_publishes="plan.complete",
    description="turns a task into user stories that each fit into one session",
    instructions="""\
Write the user stories of this task, and build nothing of it: others do that, one story in each session.
Read the code that the task touches. Then write `prd.json` in the root of the work tree and nothing else:

    {"project": "NAME", "branchName": "ralph/SHORT-NAME", "description": "one sentence",
     "userStories": [{"id": "US-001", "title": "…", "description": "As a …, I want … so that …",
                      "acceptanceCriteria": ["…", "Typecheck passes"], "priority": 1, "passes": false, "notes": ""}]}

- A story is done in one session: what it does can be said in two or three sentences. Split what cannot.
- What others build on comes first: schema, then backend, then the user interface, then overviews. `priority` says so.
- A criterion can be checked: it names what is seen, returned or refused. Words such as "works well" do not count.
- Every story ends with "Typecheck passes"; one of the user interface also with "Verify in browser".""",
    write_allowed=("prd.json",),
)  # fmt: skip  # its text as it stands in the prompt


def planning_spec(usual: RunSpec) -> RunSpec:
    """The order of a planning: objective, model and limits of the run that it is the first part of, no gate yet."""
    return replace(usual, preset=replace(usual.preset, stories=False), persistent=False, kind=KIND)


def plan_stories(wanted: RunSpec, ports: RunPorts, read: Read, follows: str = "", replacing: bool = False) -> RunResult:
    """Let planners write the stories: "complete" when a run can work through them, "stuck" after three sessions.

    `follows`: the kind of the run that then goes on from the state that is left; "" when nothing does. `replacing`:
    stories that are there already are not those of this task. Raises UserError as `run` does.
    """
    before = read()[0] if replacing else None
    return run_loop(wanted, ports, lambda this: _until_written(this, lambda: _wrong(read, before), follows))


def state_after_agreement(state: RunState, text: str) -> RunState:
    """The state in which a planning goes on from a plan that was agreed on, `text`."""
    told = f"This plan was agreed on; the stories are its sections, in its order:\n\n{text}"
    return replace(_passed_on(state, KIND), pending=LoopEvent(AGREED, told))


def find_story_faults(prd: Prd | None) -> str:
    """What is wrong with the stories, one line each; "" when a run can work through them."""
    if prd is None or not prd.stories:
        return "prd.json is not there, or it holds no userStories"
    return "\n".join(f"- {finding.story or 'all'}: {finding.what}" for finding in lint.lint_prd(prd)[:20])


def _until_written(this: LoopRun, wrong: Callable[[], str], follows: str) -> RunEnding:
    begin = _beginning(this.state)
    hat = replace(
        with_own_settings(this.order, PLANNER), instructions=PLANNER.instructions
    )  # another planner's have another aim
    for attempt in range(ATTEMPTS + 1):
        if not (why := wrong()):
            return _finish_planning(this, follows)
        if attempt:
            _tell_planner(this, begin, why)
        if ending := _over(this):
            return ending
        if attempt < ATTEMPTS:
            session(this, this.ports.desk.board(), hat)
            if ending := _nobody(this):
                return ending
    return _given_up(why)


def _tell_planner(this: LoopRun, begin: LoopEvent, why: str) -> None:
    told = "\n".join(filter(None, (this.state.feedback, f"The stories cannot be run:\n{why}")))
    this.state = replace(this.state, pending=begin, feedback=told)
    this.ports.desk.keep(this.state, None)


def _beginning(state: RunState) -> LoopEvent:
    return state.pending if state.pending.topic == AGREED else LoopEvent(START)


def _over(this: LoopRun) -> RunEnding | None:
    asked = SIGNAL_ENDINGS.get(this.ports.desk.signal())
    return asked or completion.reached_limit(this.order.limits, this.state, this.elapsed)


def _nobody(this: LoopRun) -> RunEnding | None:
    """The end, when there is no planner: another session would find none either."""
    last = this.outputs[-1]
    return RunEnding("failures", last.reason, "mend that, then --continue") if last.failure in NOBODY else None


def _wrong(read: Read, before: Prd | None) -> str:
    prd, complaint = read()
    if prd is not None and prd == before:
        return "prd.json is as it was before; the stories of this task are to replace it"
    return complaint or find_story_faults(prd)


def _finish_planning(this: LoopRun, follows: str) -> RunEnding:
    """The end of the planning. Whoever asked to stop meanwhile meant what follows, which has not begun."""
    this.state = _passed_on(this.state, follows)
    this.ports.desk.keep(this.state, None)
    asked = SIGNAL_ENDINGS.get(this.ports.desk.signal()) if follows else None
    return asked or RunEnding("complete", "the stories are written")


def _given_up(wrong: str) -> RunEnding:
    what = f"no stories after {ATTEMPTS} sessions: {wrong.splitlines()[0].removeprefix('- ')}"
    return RunEnding(
        "stuck", what, "describe the task in more detail, write them yourself (docs/prd.md), or --continue"
    )


def _passed_on(state: RunState, kind: str) -> RunState:
    """The same run at the beginning of its next part: its account, and nothing of who was to play next."""
    return RunState(
        state.run_id, state.objective, state.started_at, state.iteration,
        usage=state.usage, by_hat=state.by_hat, by_item=state.by_item, elapsed=state.elapsed, kind=kind,
    )  # fmt: skip  # one value
