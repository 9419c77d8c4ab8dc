"""The entry point of `ralph`. Imports next to nothing, so that what is called often costs next to nothing."""

from __future__ import annotations

import gc
import os
import sys

from ralph_mission.cli.errors import run_guarded

GARBAGE = 100_000
"""New objects between two garbage collections: the default 700 would cause hundreds of useless ones at a start."""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(GARBAGE)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # which it else looks for in every package
    code = run_guarded(_run, sys.argv[1:])
    gc.freeze()  # else the interpreter looks through everything once more before it ends
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["due"]:
        from ralph_mission.cli.gate import answer, parse_question

        due = parse_question(arguments[1:])
        if due is not None:
            return answer(due)
    if arguments[:2] == ["fleet", "due"]:
        from ralph_mission.cli.fleet import answer_fleet, parse_fleet_question

        question = parse_fleet_question(arguments[2:])
        if question is not None:
            return answer_fleet(question)
    from ralph_mission.cli.app import run

    return run(arguments)
