"""What `ralph simulate` plays when it is given no script, and what it shows: how a pattern converges.

Every pattern has the same fault twice: the reviewer finds two issues, then one, then none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ralph_mission.loop.model import PLANNED, VERDICT, HatOutput
from ralph_mission.loop.order import RunResult
from ralph_mission.loop.patterns import HatPattern

OBJECTIVE = "Greet a person by name; refuse a name that is empty."
SEED: Mapping[str, str] = {
    "greeting.py": 'def greet(name):\n    return "Hello"\n',
    "README.md": "# A small repository to simulate a loop in\n",
}
"""The files of the throw-away repository."""
COMMIT = ("git add -A", "git commit -qm step")
WRONG = 'def greet(name):\n    return "Hello, " + nam\n'
BETTER = 'def greet(name):\n    return "Hello, " + name\n'
RIGHT = 'def greet(name):\n    if not name:\n        raise ValueError("no name")\n    return "Hello, " + name\n'
TEST = 'from greeting import greet\n\n\ndef test_greets():\n    assert greet("Ada") == "Hello, Ada"\n'
TYPO = {"file": "greeting.py", "line": 2, "kind": "bug", "severity": "critical", "message": "`nam` is no name here"}
EMPTY = {"file": "greeting.py", "line": 1, "kind": "missing", "severity": "critical", "message": "an empty name passes"}


@dataclass(frozen=True, slots=True)
class SimulationRow:
    """One session of a simulation. `issues` is None when it was no review; `undone` are paths outside of its globs."""

    iteration: int
    hat: str
    event: str
    issues: int | None
    files: tuple[str, ...]
    undone: tuple[str, ...]
    failure: str


def pattern_script(pattern: HatPattern) -> dict[str, Any]:
    """A script that plays the pattern to its end, as `agents/scripted.py` reads it."""
    return {"hats": {hat.name: _steps(hat.name, hat.publishes[0], PLANNED in hat.triggers) for hat in pattern.hats}}


def rows(outputs: Sequence[HatOutput]) -> tuple[SimulationRow, ...]:
    """What to show of each session."""
    return tuple(
        SimulationRow(
            output.iteration,
            output.hat,
            output.event.topic if output.event else "",
            len(output.issues) if output.event and output.event.topic == VERDICT else None,
            tuple(change.path for change in output.changes if not change.reverted),
            tuple(change.path for change in output.reverted),
            output.failure,
        )
        for output in outputs
    )


def summary_text(pattern: str, account: RunResult) -> str:
    """The rows as a table, and how it ended."""
    lines = [_line(row) for row in rows(account.outputs)]
    reviews = [str(row.issues) for row in rows(account.outputs) if row.issues is not None]
    shown = f"; issues per review: {' -> '.join(reviews)}" if reviews else ""
    return "\n".join([*lines, f"{pattern}: {account.ending.reason}, {account.ending.detail}{shown}"])


def document(pattern: str, account: RunResult) -> dict[str, Any]:
    """The same for programs."""
    sessions = [
        {"iteration": row.iteration, "hat": row.hat, "event": row.event or None, "issues": row.issues,
         "files": list(row.files), "undone": list(row.undone), "failure": row.failure or None}
        for row in rows(account.outputs)
    ]  # fmt: skip  # one row
    ending = account.ending
    return {
        "pattern": pattern,
        "converged": ending.reason == "complete",
        "ending": {"reason": ending.reason, "detail": ending.detail, "next": ending.next_step},
        "sessions": sessions,
        "issues_per_review": [row["issues"] for row in sessions if row["issues"] is not None],
    }


def _line(row: SimulationRow) -> str:
    said = row.event or (f"failed: {row.failure}" if row.failure else "(no event)")
    issues = "" if row.issues is None else f"  {row.issues} issue{'s' if row.issues != 1 else ''}"
    files = f"  {', '.join(row.files)}" if row.files else ""
    undone = f"  undone: {', '.join(row.undone)}" if row.undone else ""
    return f"{row.iteration:>3}  {row.hat:<11} {said:<20}{issues}{files}{undone}".rstrip()


def _steps(hat: str, topic: str, builds: bool) -> list[dict[str, Any]]:
    if hat == "reviewer":
        return [_verdict(TYPO, EMPTY), _verdict(EMPTY), _verdict()]
    if hat == "fixer":
        first = (WRONG,) if builds else ()
        return [_step(topic, {"greeting.py": text}) for text in (*first, BETTER, RIGHT)]
    return [_step(topic, FIRST[hat])]


def _step(topic: str, files: Mapping[str, str]) -> dict[str, Any]:
    return {"write": dict(files), "run": list(COMMIT), "event": {"topic": topic, "payload": "one step done"}}


def _verdict(*issues: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": {"topic": VERDICT, "payload": json.dumps({"issues": list(issues)})}}


FIRST: Mapping[str, Mapping[str, str]] = {
    "planner": {"PLAN.md": "1. greet by name\n2. refuse an empty name\n"},
    "builder": {"greeting.py": WRONG},
    "tester": {"tests/test_greeting.py": TEST},
    "debugger": {"tests/test_greeting.py": TEST},
    "refactorer": {"greeting.py": WRONG},
}
"""What whoever begins or builds writes."""
