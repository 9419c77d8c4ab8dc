"""The handoff: everything the next session's orchestrator needs, as one JSON document of at most 5 KB (seed 002 §7.1).

Key names and their order are the originals', so that either side reads the other's file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.loop.model.order import RunSpec
from ralph_mission.loop.model.state import HatOutput, RunSnapshot, RunState
from ralph_mission.loop.rules import completion, progress
from ralph_mission.safety.hidden import without_controls

LIMIT = 5_000
"""Bytes of the document as JSON with an indent of 2, counted with every character beyond ASCII escaped."""
SCALES = (1.0, 0.6, 0.4, 0.25)
"""How much room each text gets, until the whole fits: at the last one it always does."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Left:
    """What a handoff written by anyone says, as far as a run can go on from it. `started_at` None: it does not say."""

    objective: str
    iteration: int = 0
    iterations: int = 0
    promise: str = ""
    completed: bool = False
    started_at: datetime | None = None
    item: str = ""
    stale: int = 0
    feedback: str = ""


def handoff_document(order: RunSpec, state: RunState, board: RunSnapshot) -> Document:
    """The handoff at this moment: at most `LIMIT` bytes whatever there is to tell. Long texts end with an ellipsis."""
    made = (_document(order, state, board, scale) for scale in SCALES)
    return next(one for one in made if len(json.dumps(one, indent=2)) <= LIMIT)


def marker(state: RunState, active: bool) -> Document:
    """The light state file: whether the mode is on, since when, how far (seed 002 §7.4)."""
    return {"active": active, "started_at": _moment(state.started_at), "iteration": state.iteration}


def read_handoff(document: object) -> Left:
    """What a handoff says; what is missing or of a wrong type in it counts as not said.

    Raises UserError when it does not even name its task.
    """
    said = document if isinstance(document, Mapping) else {}
    objective = _string(said, "original_prompt")
    if not objective:
        raise UserError("the handoff names no task (original_prompt)", "start anew with a task: ralph run TASK")
    prd, stuck, error = (_part(said, key) for key in ("prd", "stuckDetection", "lastError"))
    return Left(
        objective,
        _number(said, "iteration"),
        _number(said, "max_iterations"),
        _string(said, "completion_promise"),
        said.get("completed") is True,
        _parse_moment(_string(said, "created_at")),
        _string(prd, "nextStoryId"),
        _number(stuck, "iterationsOnSameStory"),
        _string(error, "message"),
    )


# --- writing ------------------------------------------------------------------------


def _document(order: RunSpec, state: RunState, board: RunSnapshot, scale: float) -> Document:
    def cut(text: str, room: int) -> str:
        return _truncate(text, int(room * scale))

    def several(texts: Iterable[str], room: int) -> list[str]:
        return [cut(text, room) for text in texts]

    left = _open_stories(state, board)
    return {
        "version": "1.0",
        "created_at": _moment(state.started_at),
        "iteration": state.iteration,
        "max_iterations": order.limits.iterations,
        "original_prompt": cut(state.objective, 2_000),
        "completion_promise": _truncate(order.preset.promise, 150),
        **_completion(order, state, board),
        **({"prd": _prd(state, board, scale)} if board.prd else {}),
        "progress": {
            "patterns": several(board.notes.patterns[-10:], 160),
            "recentLearnings": several(board.notes.learnings[-5:], 240),
            **({"lastCompletedStory": cut(board.notes.last_completed, 100)} if board.notes.last_completed else {}),
        },
        "git": {
            "recentCommits": [
                {"hash": _truncate(commit.hash, 50), "message": cut(commit.message, 120)}
                for commit in board.tree.commits[:5]
            ],
            "branch": cut(board.tree.branch, 200),
            "hasUncommittedChanges": board.tree.dirty,
        },
        "stuckDetection": {
            "lastPrdStatus": _some(left, int(200 * scale)),
            "iterationsOnSameStory": state.stale,
            **({"lastActionAttempted": cut(_action(state.last), 240)} if state.last else {}),
        },
        **_error(order, state, scale),
    }


def _completion(order: RunSpec, state: RunState, board: RunSnapshot) -> Document:
    """Done, when files prove it and the last checks were not red; the run itself checks once more."""
    green = state.last is None or state.last.verification.green
    done = green and completion.looks_done(order, state, board) and not completion.remaining(order, board)
    return {"completed": done, **({"completion_message": f"{state.iteration} sessions"} if done else {})}


def _prd(state: RunState, board: RunSnapshot, scale: float) -> Document:
    assert board.prd is not None
    left = _open_stories(state, board)
    ahead = [story.id for story in board.prd.todo if story.id not in state.skipped]
    return {
        "project": _truncate(board.prd.project, int(160 * scale)),
        "branchName": _truncate(board.prd.branch, int(200 * scale)),
        "description": _truncate(board.prd.description, int(400 * scale)),
        "storiesTotal": len(board.prd.stories),
        "storiesCompleted": len(board.prd.stories) - len(left),
        "nextStoryId": _truncate(ahead[0], int(160 * scale)) if ahead else None,
        "incompleteIds": _some(left, int(600 * scale)),
    }


def _open_stories(state: RunState, board: RunSnapshot) -> list[str]:
    return [story.id for story in board.prd.todo] if board.prd else []


def _error(order: RunSpec, state: RunState, scale: float) -> Document:
    last = state.last
    if last is None or not (last.failure or last.reason or not last.verification.green):
        return {}
    message = last.reason or last.failure or last.verification.said
    recovery = {"": "the next session is told", "warn": "the next session is warned", "replan": "a new plan is made"}
    return {
        "lastError": {
            "iteration": last.iteration,
            "message": _truncate(message, int(400 * scale)),
            "recoveryAttempt": recovery.get(progress.patience(order, state), "the story is skipped"),
        }
    }


def _action(last: HatOutput) -> str:
    event = f" said {last.event.topic}" if last.event else ""
    return f"{last.hat}{event}: {last.summary}"


def _some(ids: Sequence[str], room: int) -> list[str]:
    """As many as fit, then how many more there are."""
    shown: list[str] = []
    for name in ids:
        short = _truncate(name, 60)
        room -= len(json.dumps(short)) + 8  # the indent and the comma
        if room < 0:
            return [*shown, f"… {len(ids) - len(shown)} more"]
        shown.append(short)
    return shown


def _truncate(text: str, room: int) -> str:
    """`text`, at most `room` bytes when escaped, an ellipsis for the rest."""
    plain = without_controls(text[: room + 1])
    if len(json.dumps(plain)) <= room and len(text) <= room:
        return plain
    while plain and len(json.dumps(plain)) > room - 6:
        plain = plain[: min(len(plain) - 1, len(plain) * (room - 6) // len(json.dumps(plain)) + 1)]
    return f"{plain}…"


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- reading ------------------------------------------------------------------------


def _part(said: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = said.get(key)
    return value if isinstance(value, Mapping) else {}


def _string(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""


def _number(said: Mapping[str, Any], key: str) -> int:
    value = said.get(key)
    return value if type(value) is int and value >= 0 else 0


def _parse_moment(moment: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
