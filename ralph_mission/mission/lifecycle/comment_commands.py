"""What a person asks for in a comment: `/ralph WORD`, at its start and indented less than a block of code.

The gate reads it in a workflow before anything is installed: the standard library is enough.
"""

from __future__ import annotations

import re

from ralph_mission.values import compile_regex

DECIDING = ("approve", "reject", "park", "retry", "revise")
"""Commands that decide about a mission: only those who may decide are heard."""
WORDS = (*DECIDING, "review", "guidance")
COMMAND = compile_regex(r"\A(?:[ \t]*\r?\n)* {0,3}/ralph[ \t]+([a-z]+)(?![\w-])[ \t]*", re.IGNORECASE)


def read_command(comment: str) -> tuple[str, str]:
    """The word of a command and what follows it; two empty texts where the comment is none."""
    found = COMMAND.match(comment)
    word = found[1].lower() if found else ""
    return (word, comment[found.end() :]) if found and word in WORDS else ("", "")


def addresses_us(comment: str) -> bool:
    """Whether it begins like a command, known or not: then it is no part of a task."""
    return comment.lstrip().lower().startswith("/ralph")
