"""Reads results from lines of text by a regular expression with named groups.

Bounded: at most `LINES` lines of at most `LONGEST` characters are looked at, in another process
that is ended after `SECONDS`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from ralph_mission.gateways.process import run_foreign
from ralph_mission.observers import matching
from ralph_mission.observers.result import GarbledOutput, Result, inside, level, whole_number
from ralph_mission.observers.text import plain

GROUPS = frozenset({"path", "line", "code", "message", "level"})
LINES = 50_000
LONGEST = 2_000  # characters
SECONDS = 10.0


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    if unknown := set(groups) - GROUPS:
        raise ValueError(f"named groups among {', '.join(sorted(GROUPS))}, not {', '.join(sorted(unknown))}")
    return text


Pattern = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_pattern)]


def read(raw: bytes, pattern: str, root: Path, home: Path, most: int) -> list[Result]:
    """The first `most` lines that match. Raises Garbled when matching takes too long."""
    lines = [line for line in plain(raw.decode("utf-8", "replace")).split("\n") if line.strip()]
    short = [line for line in lines[:LINES] if len(line) <= LONGEST]
    asked = {"pattern": pattern, "most": most, "lines": short, "seconds": math.ceil(SECONDS) + 1}
    program = (sys.executable, "-I", "-S", matching.__file__)
    question = json.dumps(asked).encode()
    done = run_foreign(program, cwd=root, home=home, timeout=SECONDS, output_cap=20_000_000, stdin=question)
    if done.timed_out:
        raise GarbledOutput(f"the regex took longer than {SECONDS:g} s; make it simpler")
    if done.code != 0:
        raise GarbledOutput("the regex could not be matched")
    return [_result(groups, root) for groups in json.loads(done.stdout)]


def _result(groups: dict[str, str], root: Path) -> Result:
    path, line = inside(groups.get("path", ""), root), whole_number(groups.get("line", ""))
    return Result(path, line, groups.get("code", ""), groups["message"], level(groups.get("level", "")))
