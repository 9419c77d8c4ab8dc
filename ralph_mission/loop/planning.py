"""Sessions whose answer counts: a planner's stories, and a reviewer's findings about a change.

Planners write the stories of a task until a run can work through them: the first part of a run with a task but no
stories, or all of it (`ralph plan`). It counts for the same run: session numbers, cost and time continue in what
follows.

A reviewer is asked once, and again with what was wrong if the answer was malformed. Files it writes are ignored; only
its answer is read, and only in the requested form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from ralph_mission.loop import session as waiting
from ralph_mission.loop.hats import REVIEWER
from ralph_mission.loop.model.spec import PLANNING, RunEnding, RunLimits, RunResult, RunSpec
from ralph_mission.loop.model.state import (
    START,
    VERDICT,
    AgentTurn,
    Hat,
    LoopEvent,
    Prd,
    ReviewIssue,
    RunState,
    Session,
    SessionUsage,
)
from ralph_mission.loop.ports import Agent, LoopClock, RunPorts
from ralph_mission.loop.prompt import line, section
from ralph_mission.loop.prompt import session as contract
from ralph_mission.loop.rules import completion, routing, verdicts
from ralph_mission.loop.rules.verdicts import UnclearVerdict
from ralph_mission.loop.run import SIGNAL_ENDINGS, LoopRun, run_loop, session
from ralph_mission.loop.stories import lint
from ralph_mission.loop.teams import with_own_settings
from ralph_mission.values import dataclass

Read = Callable[[], tuple[Prd | None, str]]
"""The current content of the file, and a complaint about it."""
ATTEMPTS = 3
KIND = PLANNING
AGREED = "plan.approved"
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

- A story is done in one session: two or three sentences describe what it does. Split what cannot.
- What others build on comes first: schema, then backend, then the user interface, then overviews. `priority` says so.
- A criterion can be checked: it names what is seen, returned or refused. Words such as "works well" do not count.
- Every story ends with "Typecheck passes"; one of the user interface also with "Verify in browser".""",
    write_allowed=("prd.json",),
)  # fmt: skip  # its text as it stands in the prompt


def planning_spec(usual: RunSpec) -> RunSpec:
    """The spec of planning: objective, model and limits of its run, without gates yet."""
    return replace(usual, preset=replace(usual.preset, stories=False), persistent=False, kind=KIND,
                   require_change=False, required_events=())  # fmt: skip  # as one reads it


def plan_stories(spec: RunSpec, ports: RunPorts, read: Read, follows: str = "", replacing: bool = False) -> RunResult:
    """Have planners write the stories: "complete" once a run can work through them, "stuck" after three sessions.

    `follows`: the kind of run that then continues from the resulting state, or "". `replacing`: existing stories are
    not of this task. Raises UserError as `run_loop` does.
    """
    before = read()[0] if replacing else None
    return run_loop(spec, ports, lambda this: _until_written(this, lambda: _describe_wrong(read, before), follows))


def state_after_agreement(state: RunState, text: str) -> RunState:
    """The state in which planning continues from an agreed plan, `text`."""
    payload = f"This plan was agreed on; the stories are its sections, in its order:\n\n{text}"
    return replace(_passed_on(state, KIND), pending=LoopEvent(AGREED, payload))


def find_story_faults(prd: Prd | None) -> str:
    """The problems of the stories, one line each; "" if a run can work through them."""
    if prd is None or not prd.stories:
        return "prd.json is not there, or it holds no userStories"
    return "\n".join(f"- {finding.story or 'all'}: {finding.what}" for finding in lint.review_prd(prd)[:20])


def _until_written(this: LoopRun, wrong: Callable[[], str], follows: str) -> RunEnding:
    begin = this.state.pending if this.state.pending.topic == AGREED else LoopEvent(START)
    hat = replace(
        with_own_settings(this.spec, PLANNER), instructions=PLANNER.instructions
    )  # another planner's stories are for another task
    for attempt in range(ATTEMPTS + 1):
        if not (why := wrong()):
            return _finish_planning(this, follows)
        if attempt:
            _tell_planner(this, begin, why)
        if ending := _ending_before(this):
            return ending
        if attempt < ATTEMPTS:
            session(this, this.ports.store.snapshot(), hat)
            if ending := _no_planner(this):
                return ending
    return _given_up(why)


def _tell_planner(this: LoopRun, begin: LoopEvent, why: str) -> None:
    feedback = "\n".join(filter(None, (this.state.feedback, f"The stories cannot be run:\n{why}")))
    this.state = replace(this.state, pending=begin, feedback=feedback)
    this.ports.store.keep(this.state, None)


def _ending_before(this: LoopRun) -> RunEnding | None:
    stop = SIGNAL_ENDINGS.get(this.ports.store.signal())
    return stop or completion.reached_limit(this.spec.limits, this.state, this.elapsed)


def _no_planner(this: LoopRun) -> RunEnding | None:
    """The ending if there is no planner, as another session would find none either."""
    last = this.outputs[-1]
    return (
        RunEnding("failures", last.reason, "fix that, then --continue") if last.failure in completion.NOBODY else None
    )


def _describe_wrong(read: Read, before: Prd | None) -> str:
    prd, complaint = read()
    if prd is not None and prd == before:
        return "prd.json is as it was before; the stories of this task are to replace it"
    return complaint or find_story_faults(prd)


def _finish_planning(this: LoopRun, follows: str) -> RunEnding:
    """End planning. A stop requested meanwhile applies to what follows, which has not begun."""
    this.state = _passed_on(this.state, follows)
    this.ports.store.keep(this.state, None)
    stop = SIGNAL_ENDINGS.get(this.ports.store.signal()) if follows else None
    return stop or RunEnding("complete", "the stories are written")


def _given_up(wrong: str) -> RunEnding:
    what = f"no stories after {ATTEMPTS} sessions: {wrong.splitlines()[0].removeprefix('- ')}"
    return RunEnding(
        "stuck",
        what,
        "describe the task in more detail, write them yourself (docs/loop.md#stories-and-tasks), or --continue",
    )


def _passed_on(state: RunState, kind: str) -> RunState:
    """The run's state for its next part: the cost and counts, without pending events."""
    return RunState(
        state.run_id, state.objective, state.started_at, state.iteration,
        usage=state.usage, by_hat=state.by_hat, by_item=state.by_item, elapsed=state.elapsed, kind=kind,
    )  # fmt: skip  # one value


HAT = replace(REVIEWER, triggers=(), publishes=(), payload=())
ANSWERS = 2
LONGEST, MOST = 200_000, 200
"""Limits of an answer: characters, and issues."""
FIELDS: Mapping[str, type] = {
    "file": str, "line": int, "quote": str, "kind": str, "severity": str, "message": str, "suggestion": str,
}  # fmt: skip  # one table
SEVERITIES = ("critical", "major", "minor")
SCHEMA = json.dumps(
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["issues"],
        "properties": {
            "issues": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": list(FIELDS),
                    "properties": {
                        name: {"type": "integer" if kind is int else "string"}
                        | ({"enum": list(SEVERITIES)} if name == "severity" else {})
                        for name, kind in FIELDS.items()
                    },
                },
            }
        },
    }
)
"""The form of an answer, as a JSON Schema."""
ANSWER_FORMAT = section(
    "HOW TO END",
    "Your last message is one JSON document and nothing else:",
    '`{"issues": [{"file": "src/a.py", "line": 12, "quote": "that line", "kind": "race", "severity": '
    '"critical|major|minor", '
    '"message": "what is wrong and when", "suggestion": "what would fix it"}]}`',
    '`{"issues": []}` when you found none. `file` and `line` are of the changed side of the diff; "" and 0 where there '
    "is no such place. There are no other fields: whether it is approved or merged is for a person to say.",
)


@dataclass(frozen=True, slots=True)
class ReviewFinding:
    """An issue, with the reviewer's suggestion."""

    issue: ReviewIssue
    suggestion: str = ""
    quote: str = ""


Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class SessionAnswer(Generic[Parsed]):
    """An answer of some form. `found` None: no answer, see `why`."""

    found: Parsed | None
    why: str = ""
    usage: SessionUsage = SessionUsage()
    seconds: float = 0.0


ReviewerAnswer = SessionAnswer[tuple[ReviewFinding, ...]]


def reviewer_prompt(material: str, why: str = "") -> str:
    """The prompt of a session; `why`: what was wrong with the previous answer."""
    before = f"A reviewer before you did not answer as asked: {line(why, 300)}." if why else ""
    return "\n\n".join(filter(None, (contract.render_hat(HAT), material.strip(), before, ANSWER_FORMAT))) + "\n"


def ask_reviewer(agent: Agent, material: str, first: Session, limits: RunLimits, clock: LoopClock) -> ReviewerAnswer:
    """Ask a reviewer, in at most two sessions. `first`: where, with which model, and how long."""
    return ask_session(agent, partial(reviewer_prompt, material), parse_findings, first, limits, clock)


def ask_session(
    agent: Agent,
    prompt: Callable[[str], str],
    parse: Callable[[str], Parsed],
    first: Session,
    limits: RunLimits,
    clock: LoopClock,
) -> SessionAnswer[Parsed]:
    """Ask for an answer that `parse` accepts (else it raises UnclearVerdict), in at most two sessions.

    `prompt` gets what was wrong with the previous answer, "" at first.
    """
    began, usage, why = clock.now(), SessionUsage(), ""
    end = began + timedelta(seconds=limits.runtime)
    for attempt in range(1, ANSWERS + 1):
        session = replace(first, iteration=attempt, prompt=prompt(why), usd=contract.money_left(limits, usage))
        turn = waiting.play_patiently(agent, session, limits, clock, end)
        usage += turn.usage
        found, why = _parse_answer(turn, parse)
        if found is not None or turn.failure:
            break
        if over := _why_no_other(limits, usage, end - clock.now()):
            why = f"{why}, {over}"
            break
    return SessionAnswer(found, why, usage, (clock.now() - began).total_seconds())


def _parse_answer(turn: AgentTurn, parse: Callable[[str], Parsed]) -> tuple[Parsed | None, str]:
    if turn.failure:
        return None, f"{turn.failure}: {turn.detail}" if turn.detail else turn.failure
    try:
        return parse(turn.text), ""
    except UnclearVerdict as unclear:
        return None, f"no answer that can be used ({unclear})"


def _why_no_other(limits: RunLimits, usage: SessionUsage, time_left: timedelta) -> str:
    """Why there is no other session, or ""."""
    if time_left <= timedelta(0):
        return "and its time is up"
    if limits.usd is not None and (usage.cost_usd or 0.0) >= limits.usd:
        return f"and it cost ${usage.cost_usd or 0.0:.2f} of ${limits.usd:.2f}"
    return "and what it cost is unknown" if usage.untold and limits.usd is not None and not limits.unpriced else ""


# --- the answer -----------------------------------------------------------------------


def parse_findings(text: str) -> tuple[ReviewFinding, ...]:
    """Parse an answer: JSON alone, in a fence, or in a `review.verdict`. Raises UnclearVerdict for any other form."""
    if len(text) > LONGEST:
        raise UnclearVerdict(f"it has {len(text):,} characters")
    payloads = [event.payload for event in routing.events_in_text(text) if event.topic == VERDICT]
    rows = _rows(verdicts.parse_json(payloads[-1] if payloads else text))
    issues = verdicts.parse_issues(LoopEvent(VERDICT, json.dumps({"issues": rows})))
    return tuple(
        ReviewFinding(issue, row.get("suggestion") or "", row.get("quote") or "")
        for issue, row in zip(issues, rows, strict=True)
    )


def _rows(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, dict) or set(value) != {"issues"} or not isinstance(value["issues"], list):
        raise UnclearVerdict('it is not {"issues": […]} and nothing else')
    if len(value["issues"]) > MOST:
        raise UnclearVerdict(f"it names {len(value['issues'])} issues")
    return [_row(row) for row in value["issues"]]


def _row(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, dict) or not set(row) <= set(FIELDS):
        raise UnclearVerdict(f"an issue has other fields than {', '.join(FIELDS)}")
    fields = {name: value for name, value in row.items() if value is not None}
    if mistyped := [name for name, value in fields.items() if type(value) is not FIELDS[name]]:
        raise UnclearVerdict(
            f"the {mistyped[0]} of an issue is not a {'number' if FIELDS[mistyped[0]] is int else 'text'}"
        )
    if not fields.get("message", "").strip() or fields.get("severity") not in SEVERITIES or fields.get("line", 0) < 0:
        raise UnclearVerdict(
            f"an issue has no message, or none of the severities {', '.join(SEVERITIES)}, or an odd line"
        )
    return fields
