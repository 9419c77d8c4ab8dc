"""The prompt of one session, and the handoff to the next. Sessions share no other memory.

The prompt has our sections around all contents of files. The objective is complete and constant; everything else is
bounded, so that the thousandth session reads as much as the third. Foreign text is quoted (`quote_text`). DONE only
appears without a hat: a hat emits its one event and stops, while a session without one decides when to end.

The handoff is one JSON document of at most 5 KB with everything that the next session's orchestrator needs. Key names
and their order are the originals', so that both tools read each other's files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunLimits, RunSpec
from ralph_mission.loop.model.state import (
    RESUME,
    START,
    VERDICT,
    Hat,
    HatOutput,
    RunPaths,
    RunSnapshot,
    RunState,
    Session,
    SessionUsage,
)
from ralph_mission.loop.prompt import indent_text, line, quote_text, section, situation, whole_text
from ralph_mission.loop.rules import completion, scope
from ralph_mission.loop.rules.routing import PROMISE, coordinator
from ralph_mission.safety.markdown import without_controls
from ralph_mission.safety.text import sanitise
from ralph_mission.values import dataclass

STORIES = (  # {set}: how to mark one as passing, {prd} and {progress}: their paths
    "Work on the current story and no other. When every criterion is true and the project's checks are green, {set} "
    "in {prd}, leave the other stories as they are, and append to {progress} what you did "
    "and learned; what helps everywhere goes to the patterns at its top. A story that passes without green checks, or "
    "without a file that changed, is set back."
)
LASTING = (
    "A pattern that will hold for whoever works here later, in other runs too, also goes below `## Codebase Patterns` "
    "in AGENTS.md, or in CLAUDE.md where only that one is there."
)
STEP = "Take one step that can be finished in this session, and finish it."
COMMIT = "Run the project's checks before you end. Commit finished steps, small and whole."
VERDICTS = (
    f"The text of {VERDICT} is JSON: "
    '{"issues": [{"file": "src/a.py", "line": 12, "kind": "race", "severity": "critical|major|minor", '
    '"message": "what is wrong and when"}]}, and {"issues": []} when you found none. '
    "Anything else counts as a critical issue."
)


def render_hat(hat: Hat) -> str:
    """This session's hat, what it may write and what it may not run."""
    return section(
        f"YOUR HAT: {line(hat.name, 60)}",
        f"You are {line(hat.name, 60)} for this one session and nobody else. {line(hat.description, 300)}".strip(),
        indent_text(hat.instructions, 30_000),
        f"Read these files first: {_join_names(hat.context)}." if hat.context else "",
        _may_write(hat),
        f"You may not use these tools: {_join_names(hat.tools_denied)}." if hat.tools_denied else "",
        f"You may not run these, in any spelling: {_join_names(hat.commands_denied)}." if hat.commands_denied else "",
        f"Keep within {hat.max_tokens} tokens." if hat.max_tokens else "",
    )  # fmt: skip  # one sentence to a line


def _may_write(hat: Hat) -> str:
    allowed = hat.write_allowed
    sentence = "You may write no file: read and judge." if allowed == () else ""
    if allowed:
        sentence = f"You may write only {_join_names(allowed)}."
    if hat.write_denied:
        sentence = f"{sentence} You may not write {_join_names(hat.write_denied)}.".strip()
    if hat.no_agent_settings:
        sentence = f"{sentence} You may not write what configures agents (.claude/, .mcp.json and the like).".strip()
    return f"{sentence} A change of what you may not write is undone, committed or not." if sentence else ""


def callable_hats(spec: RunSpec) -> str:
    """Without a hat: the hats that can be called, and their events."""
    rows = [f"- {line(hat.name, 40)}, called by {_join_names(hat.triggers)}: {line(hat.description, 120)}".rstrip(": ")
            for hat in spec.hats[:30]]  # fmt: skip  # one list
    return section("HATS", "Others can do a part of the work in a session of their own:" if rows else "", *rows)


def rules(spec: RunSpec, hat: Hat | None, paths: RunPaths, notes: str) -> str:
    """How to work: one step or one story, checked and committed, and the file `notes` for the next session."""
    how = "tick its own box (`[x]`)" if paths.prd.lower().endswith((".md", ".markdown")) else "set its `passes` to true"
    stories = STORIES.format(set=how, prd=line(paths.prd, 300), progress=line(paths.progress, 300))
    lasting = "" if scope.why_outside(hat or spec.bound(coordinator(spec.hats)), "AGENTS.md") else LASTING
    work = (f"{stories} {lasting}".strip() if spec.preset.stories else STEP, COMMIT)
    return section(
        "HOW TO WORK",
        *(() if hat and hat.write_allowed == () else work),
        "" if hat else _may_write(spec.bound(coordinator(spec.hats))),
        f"What the next session must know goes at the end of {notes}: it remembers nothing else of yours.",
        "Tasks, memories and events are also reached through the `ralph` MCP server, or `ralph agent task` and "
        "`ralph agent emit`.",
    )


def ending(spec: RunSpec, hat: Hat | None) -> str:
    """The exit contract: one event with a hat, at most one without."""
    topics = tuple(dict.fromkeys((*hat.publishes, hat.default_publishes) if hat else _called_topics(spec)))
    topics = tuple(topic for topic in topics if topic)
    if not topics:
        return section("HOW TO END", "Say in a few lines what you did and what is left, then stop.")
    request = "End with exactly one event" if hat else "Call someone with one event when that helps"
    return section(
        "HOW TO END",
        f"{request}, whose topic is one of: {_join_names(topics)}. Then stop: it decides who is next.",
        "In your last message it is an element whose end is `</event>`, whose start is "
        f'`<event topic="{line(topics[0], 100)}">` and whose text says what the next one must know. '
        "Or use `ralph agent emit TOPIC PAYLOAD` or the MCP server instead; say it in one way and once.",
        f"If you say none, {line(hat.default_publishes, 100)} counts as emitted."
        if hat and hat.default_publishes
        else "",
        "If you find no work, change nothing and say none: the run waits until something changes."
        if hat and spec.persistent
        else "",
        f"Its text names {_join_names(hat.payload)}." if hat and hat.payload else "",
        VERDICTS if VERDICT in topics else "",
    )


def _called_topics(spec: RunSpec) -> tuple[str, ...]:
    return tuple(
        topic for hat in spec.hats for topic in hat.triggers if "*" not in topic and topic not in (START, RESUME)
    )


def render_done(spec: RunSpec) -> str:
    """When the run ends, with the objective repeated. Only for a session without a hat."""
    gate = "" if spec.open_tasks == "trust" else ", no task is open"
    stays = "The run stays alive after it and looks for the next piece of work. " if spec.persistent else ""
    return section(
        "DONE",
        f"When the objective is reached{gate} and the checks are green, let the final line of your last "
        f"message be `{line(spec.preset.promise, 80)}` and nothing else. {stays}Anywhere else in your message it "
        "means nothing, and the claim is checked: files must have changed. Never say it before all of this is true:",
        whole_text(spec.objective),
    )


def _join_names(names: tuple[str, ...]) -> str:
    """Up to thirty names as code."""
    text = ", ".join(f"`{line(name, 120).replace('`', '')}`" for name in names[:30])
    return f"{text} and {len(names) - 30} more" if len(names) > 30 else text


SUMMARY = 500
"""Characters kept of a session's last message."""
OBJECTIVE = "Everything you do serves this. It was set once and nobody may change it:"


def session_prompt(spec: RunSpec, state: RunState, snapshot: RunSnapshot, hat: Hat | None, run_dir: str) -> Session:
    """The prompt of a run's next session, with or without a `hat`."""
    worn = spec.bound(hat or coordinator(spec.hats))
    return Session(
        worn,
        state.iteration + 1,
        _text(spec, state, snapshot, worn if hat else None, run_dir.rpartition("/")[0] or "."),
        run_dir,
        worn.model or spec.model,
        completion.seconds(spec.limits, state),
        spec.limits.turns,
        money_left(spec.limits, state.usage),
    )


def money_left(limits: RunLimits, usage: SessionUsage) -> float | None:
    """The remaining money, None without a limit."""
    return None if limits.usd is None else max(0.0, limits.usd - (usage.cost_usd or 0.0))


def summary(text: str) -> str:
    """An agent's last message in one line of at most 500 characters, without its event's and promise's marks."""
    words = re.sub(r"<promise>.*?</promise>|</?(?:promise|event)\b[^>]{0,200}>", " ", _without_promise(text[-8_000:]))
    words = " ".join(sanitise(words, "log").split())
    return words if len(words) <= SUMMARY else f"…{words[-SUMMARY + 1 :]}"


def _without_promise(text: str) -> str:
    """`text` without a separate promise at its end."""
    rest, _, last = text.rstrip().rpartition("\n")
    return rest if PROMISE.fullmatch(last.strip()) else text


def _text(spec: RunSpec, state: RunState, snapshot: RunSnapshot, hat: Hat | None, home: str) -> str:
    sections = (
        situation.scratchpad(snapshot, home),
        section("OBJECTIVE", OBJECTIVE, whole_text(spec.objective)),
        situation.begin(spec, state, snapshot),
        situation.item(spec, state, snapshot),
        situation.standing(spec, state, snapshot),
        situation.memories_section(spec, snapshot, home),
        situation.last(state),
        situation.event(state.pending),
        situation.guidance(snapshot, home),
        section(
            "FEEDBACK", "About the session before yours:" if state.feedback else "", quote_text(state.feedback, 4_000)
        ),
        situation.stuck_advice(spec, state),
        render_hat(hat) if hat else callable_hats(spec),
        rules(spec, hat, snapshot.paths, f"{home}/{situation.SCRATCHPAD_FILE}"),
        ending(spec, hat),
        "" if hat else render_done(spec),
    )
    return "\n\n".join(filter(None, sections)) + "\n"


LIMIT = 5_000
"""Bytes of the document as JSON with an indent of 2, counted with every character beyond ASCII escaped."""
SCALES = (1.0, 0.6, 0.4, 0.25)
"""Limits per text, tried until the whole fits: with the last one it always does."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Left:
    """The parts of any handoff that a run can resume from. `started_at` None: unknown."""

    objective: str
    iteration: int = 0
    iterations: int = 0
    promise: str = ""
    completed: bool = False
    started_at: datetime | None = None
    item: str = ""
    stale: int = 0
    feedback: str = ""


def handoff_document(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> Document:
    """The present handoff, always at most `LIMIT` bytes. Long texts end with an ellipsis."""
    documents = (_build_document(spec, state, snapshot, scale) for scale in SCALES)
    return next(document for document in documents if len(json.dumps(document, indent=2)) <= LIMIT)


def marker(state: RunState, active: bool) -> Document:
    """The small state file: whether the mode is on, since when, and its progress."""
    return {"active": active, "started_at": _format_moment(state.started_at), "iteration": state.iteration}


def read_handoff(document: object) -> Left:
    """A handoff's contents; missing fields and wrong types are ignored.

    Raises UserError if it does not name its task.
    """
    fields = document if isinstance(document, Mapping) else {}
    objective = _string(fields, "original_prompt")
    if not objective:
        raise UserError("the handoff names no task (original_prompt)", "start with a task: ralph run TASK")
    prd, stuck, error = (_part(fields, key) for key in ("prd", "stuckDetection", "lastError"))
    return Left(
        objective,
        _number(fields, "iteration"),
        _number(fields, "max_iterations"),
        _string(fields, "completion_promise"),
        fields.get("completed") is True,
        _parse_moment(_string(fields, "created_at")),
        _string(prd, "nextStoryId"),
        _number(stuck, "iterationsOnSameStory"),
        _string(error, "message"),
    )


# --- writing ------------------------------------------------------------------------


def _build_document(spec: RunSpec, state: RunState, snapshot: RunSnapshot, scale: float) -> Document:
    def cut(text: str, limit: int) -> str:
        return _truncate(text, int(limit * scale))

    def several(texts: Iterable[str], limit: int) -> list[str]:
        return [cut(text, limit) for text in texts]

    open_stories = _open_stories(state, snapshot)
    return {
        "version": "1.0",
        "created_at": _format_moment(state.started_at),
        "iteration": state.iteration,
        "max_iterations": spec.limits.iterations,
        "original_prompt": cut(state.objective, 2_000),
        "completion_promise": _truncate(spec.preset.promise, 150),
        **_completion_part(spec, state, snapshot),
        **({"prd": _prd_part(state, snapshot, scale)} if snapshot.prd else {}),
        "progress": {
            "patterns": several(snapshot.notes.patterns[-10:], 160),
            "recentLearnings": several(snapshot.notes.learnings[-5:], 240),
            **(
                {"lastCompletedStory": cut(snapshot.notes.last_completed, 100)} if snapshot.notes.last_completed else {}
            ),
        },
        "git": {
            "recentCommits": [
                {"hash": _truncate(commit.hash, 50), "message": cut(commit.message, 120)}
                for commit in snapshot.tree.commits[:5]
            ],
            "branch": cut(snapshot.tree.branch, 200),
            "hasUncommittedChanges": snapshot.tree.dirty,
        },
        "stuckDetection": {
            "lastPrdStatus": _list_some(open_stories, int(200 * scale)),
            "iterationsOnSameStory": state.stale,
            **({"lastActionAttempted": cut(_describe_action(state.last), 240)} if state.last else {}),
        },
        **_error_part(spec, state, scale),
    }


def _completion_part(spec: RunSpec, state: RunState, snapshot: RunSnapshot) -> Document:
    """The condition for DONE: files prove it and the last checks did not fail; the run itself checks again."""
    green = state.last is None or state.last.verification.green
    done = green and completion.looks_done(spec, state, snapshot) and not completion.remaining(spec, state, snapshot)
    return {"completed": done, **({"completion_message": f"{state.iteration} sessions"} if done else {})}


def _prd_part(state: RunState, snapshot: RunSnapshot, scale: float) -> Document:
    assert snapshot.prd is not None
    open_stories = _open_stories(state, snapshot)
    ahead = [story.id for story in snapshot.prd.ready if story.id not in state.skipped]
    return {
        "project": _truncate(snapshot.prd.project, int(160 * scale)),
        "branchName": _truncate(snapshot.prd.branch, int(200 * scale)),
        "description": _truncate(snapshot.prd.description, int(400 * scale)),
        "storiesTotal": len(snapshot.prd.stories),
        "storiesCompleted": len(snapshot.prd.stories) - len(open_stories),
        "nextStoryId": _truncate(ahead[0], int(160 * scale)) if ahead else None,
        "incompleteIds": _list_some(open_stories, int(600 * scale)),
    }


def _open_stories(state: RunState, snapshot: RunSnapshot) -> list[str]:
    return [story.id for story in snapshot.prd.todo] if snapshot.prd else []


def _error_part(spec: RunSpec, state: RunState, scale: float) -> Document:
    last = state.last
    if last is None or not (last.failure or last.reason or not last.verification.green):
        return {}
    message = last.reason or last.failure or last.verification.said
    recovery = {"": "the next session gets it", "warn": "the next session is warned", "replan": "a new plan is made"}
    return {
        "lastError": {
            "iteration": last.iteration,
            "message": _truncate(message, int(400 * scale)),
            "recoveryAttempt": recovery.get(completion.advise_stuck(spec, state), "the story is skipped"),
        }
    }


def _describe_action(last: HatOutput) -> str:
    event = f" emitted {last.event.topic}" if last.event else ""
    return f"{last.hat}{event}: {last.summary}"


def _list_some(ids: Sequence[str], space: int) -> list[str]:
    """As many as fit, then the number of others."""
    names: list[str] = []
    for name in ids:
        short = _truncate(name, 60)
        space -= len(json.dumps(short)) + 8  # the indent and the comma
        if space < 0:
            return [*names, f"… {len(ids) - len(names)} more"]
        names.append(short)
    return names


def _truncate(text: str, limit: int) -> str:
    """`text`, at most `limit` bytes when escaped, an ellipsis for the rest."""
    plain = without_controls(text[: limit + 1])
    if len(json.dumps(plain)) <= limit and len(text) <= limit:
        return plain
    while plain and len(json.dumps(plain)) > limit - 6:
        plain = plain[: min(len(plain) - 1, len(plain) * (limit - 6) // len(json.dumps(plain)) + 1)]
    return f"{plain}…"


def _format_moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- reading ------------------------------------------------------------------------


def _part(fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def _string(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _number(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key)
    return value if type(value) is int and value >= 0 else 0


def _parse_moment(moment: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
