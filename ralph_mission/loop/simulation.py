"""The default script of `ralph agent simulate`, and its output: how a pattern or a team converges.

In every pattern the reviewer finds two issues, then one, then none. Each team has a fault on its way, too; `RALPH_TASK`
tells builders of different tasks apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph_mission.loop.hats import HatPattern
from ralph_mission.loop.model.spec import RunResult
from ralph_mission.loop.model.state import PLANNED, VERDICT, HatOutput
from ralph_mission.values import dataclass

Steps = dict[str, list[dict[str, Any]]]

DRAFT = "# Greeting\n\n## Greet\nSay hello to a person by name.\n\n## Refuse\nRefuse what is no name.\n"
REVISED = DRAFT.replace("Refuse what is no name.", "Raise ValueError for an empty name and for one of blanks.")
GREETS = (
    'def greet(name):\n    if not name.strip():\n        raise ValueError("no name")\n    return "Hello, " + name\n'
)
TESTS = 'from greeting import greet\n\n\ndef test_greets():\n    assert greet("Ada") == "Hello, Ada"\n'
FORGETS = GREETS.replace(".strip()", "")
MISSING = {"file": "greeting.py", "line": 2, "severity": "critical", "message": "a name of blanks passes"}
BUILDS = f"""case "$RALPH_TASK" in
greeting) printf %s '{FORGETS}' > greeting.py;;
tests) mkdir -p tests && printf %s '{TESTS}' > tests/test_greeting.py;;
esac"""
AUTHORS = f"""case "$RALPH_TASK" in
greeting) printf %s '{FORGETS}' > greeting.py;;
*) printf %s '{GREETS}' > greeting.py;;
esac"""


def team_script(name: str) -> dict[str, Any]:
    """A script for `adapters/agents/scripted.py` that takes the team `name` to its end. Raises KeyError."""
    return {"hats": SCRIPTS[name]()}


def _ralplan_steps() -> Steps:
    """The Critic objects to one section; the Planner fixes it."""
    rows = [
        {"section": "Greet", "verdict": "approve"},
        {"section": "Refuse", "verdict": "reject", "objections": ["does not define an empty name"]},
    ]
    return {
        "planner": [
            _rehearsal_step("plan.complete", "the plan", {".ralph/plan.md": text}) for text in (DRAFT, REVISED)
        ],
        "critic": [
            _rehearsal_step("plan.verdict", {"sections": rows}),
            _rehearsal_step("plan.verdict", {"sections": [{"section": "Refuse", "verdict": "approve"}]}),
        ],
        "architect": [_rehearsal_step("plan.advice", "one function in greeting.py is enough")],
    }


def _ultrawork_steps() -> Steps:
    """The first plan gives two tasks the same file; the reviewer finds what a builder forgot."""
    shared = [_task("greeting", files=["*.py"]), _task("tests", files=["tests/**"])]
    apart = [_task("greeting", files=["greeting.py"]), _task("tests", files=["tests/**"])]
    return {
        "planner": [_rehearsal_step("plan.complete", {"tasks": tasks}) for tasks in (shared, apart)],
        "builder": [{**_rehearsal_step("build.complete", "built"), "run": [BUILDS]}],
        "reviewer": [_rehearsal_step("review.verdict", {"issues": issues}) for issues in ([MISSING], [])],
        "fixer": [_rehearsal_step("fix.complete", "fixed", {"greeting.py": GREETS})],
    }


def _team_steps() -> Steps:
    """A teammate writes into another one's file, which is undone and reported; the tester sends a fault to its
    owner."""
    members = [{"name": "author", "files": ["greeting.py"]}, {"name": "examiner", "files": ["tests/**"]}]
    tasks = [_task("greeting", owner="author"), _task("tests", owner="examiner")]
    return {
        "lead": [
            _rehearsal_step("plan.complete", {"members": members, "tasks": tasks}),
            _rehearsal_step("lead.decision", {"advice": "the examiner leaves greeting.py to its author"}),
        ],
        "author": [{**_rehearsal_step("build.complete", "built"), "run": [AUTHORS]}],
        "examiner": [
            _rehearsal_step("build.complete", "built", {"tests/test_greeting.py": TESTS, "greeting.py": GREETS})
        ],
        "tester": [
            _rehearsal_step("verification.failed", {"issues": [MISSING]}),
            _rehearsal_step("verification.passed", "greets, and refuses what is no name"),
        ],
    }


def _task(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "title": f"Write the {name}", **more}


def _rehearsal_step(topic: str, payload: object, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return {"write": dict(files or {}), "event": {"topic": topic, "payload": text}}


SCRIPTS: Mapping[str, Callable[[], Steps]] = {
    "ralplan": _ralplan_steps,
    "ultrawork": _ultrawork_steps,
    "team": _team_steps,
}


OBJECTIVE = "Greet a person by name; refuse a name that is empty."
SEED: Mapping[str, str] = {
    "greeting.py": 'def greet(name):\n    return "Hello"\n',
    "README.md": "# A small repository to simulate a loop in\n",
}
"""The files of the temporary repository."""
COMMIT = ("git add -A", "git commit -qm step")
WRONG = 'def greet(name):\n    return "Hello, " + nam\n'
BETTER = 'def greet(name):\n    return "Hello, " + name\n'
RIGHT = 'def greet(name):\n    if not name:\n        raise ValueError("no name")\n    return "Hello, " + name\n'
TYPO = {"file": "greeting.py", "line": 2, "kind": "bug", "severity": "critical", "message": "`nam` is no name here"}
EMPTY = {"file": "greeting.py", "line": 1, "kind": "missing", "severity": "critical", "message": "an empty name passes"}


@dataclass(frozen=True, slots=True)
class SimulationRow:
    """A session of a simulation. `issues`: None unless it was a review. `undone`: paths outside its globs."""

    iteration: int
    hat: str
    event: str
    issues: int | None
    files: tuple[str, ...]
    undone: tuple[str, ...]
    failure: str


def pattern_script(pattern: HatPattern) -> dict[str, Any]:
    """A script for `adapters/agents/scripted.py` that takes the pattern to its end."""
    return {"hats": {hat.name: _steps(hat.name, hat.publishes[0], PLANNED in hat.triggers) for hat in pattern.hats}}


def rows(outputs: Sequence[HatOutput]) -> tuple[SimulationRow, ...]:
    """The rows of a run's sessions."""
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
    """The rows as a table, and the ending."""
    lines = [_line(row) for row in rows(account.outputs)]
    reviews = [str(row.issues) for row in rows(account.outputs) if row.issues is not None]
    counts = f"; issues per review: {' -> '.join(reviews)}" if reviews else ""
    return "\n".join([*lines, f"{pattern}: {account.ending.reason}, {account.ending.detail}{counts}"])


def document(pattern: str, account: RunResult) -> dict[str, Any]:
    """The same as JSON data."""
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
    outcome = row.event or (f"failed: {row.failure}" if row.failure else "(no event)")
    issues = "" if row.issues is None else f"  {row.issues} issue{'s' if row.issues != 1 else ''}"
    files = f"  {', '.join(row.files)}" if row.files else ""
    undone = f"  undone: {', '.join(row.undone)}" if row.undone else ""
    return f"{row.iteration:>3}  {row.hat:<11} {outcome:<20}{issues}{files}{undone}".rstrip()


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
    "tester": {"tests/test_greeting.py": TESTS},
    "debugger": {"tests/test_greeting.py": TESTS},
    "refactorer": {"greeting.py": WRONG},
}
"""What the first hat, or a builder, writes."""
