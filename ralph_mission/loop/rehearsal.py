"""What `ralph simulate` plays of the stories of several hats when it is given no script: each with a fault on its way.

The repository is that of `simulation`. Who builds for which task is told apart by `RALPH_TASK`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

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
    """A script that plays the story `name` to its end, as `agents/scripted.py` reads it. Raises KeyError."""
    return {"hats": SCRIPTS[name]()}


def _ralplan() -> Steps:
    """The Critic objects to one section; the Planner mends it."""
    rows = [
        {"section": "Greet", "verdict": "approve"},
        {"section": "Refuse", "verdict": "reject", "objections": ["not said which names are none"]},
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


def _ultrawork() -> Steps:
    """The first plan gives two tasks the same file; the reviewer finds what a builder forgot."""
    shared = [_task("greeting", files=["*.py"]), _task("tests", files=["tests/**"])]
    apart = [_task("greeting", files=["greeting.py"]), _task("tests", files=["tests/**"])]
    return {
        "planner": [_rehearsal_step("plan.complete", {"tasks": tasks}) for tasks in (shared, apart)],
        "builder": [{**_rehearsal_step("build.complete", "built"), "run": [BUILDS]}],
        "reviewer": [_rehearsal_step("review.verdict", {"issues": issues}) for issues in ([MISSING], [])],
        "fixer": [_rehearsal_step("fix.complete", "mended", {"greeting.py": GREETS})],
    }


def _team() -> Steps:
    """A teammate writes into another one's file, which is undone and told; the tester sends one fault to its owner."""
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
    said = payload if isinstance(payload, str) else json.dumps(payload)
    return {"write": dict(files or {}), "event": {"topic": topic, "payload": said}}


SCRIPTS: Mapping[str, Callable[[], Steps]] = {"ralplan": _ralplan, "ultrawork": _ultrawork, "team": _team}
