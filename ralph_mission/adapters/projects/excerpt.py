"""The first lines of a failed command's output that say why: not the last ones, which often name a log that is gone."""

from __future__ import annotations

import re
from pathlib import Path

from ralph_mission.safety.markdown import without_controls, without_invisible
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex

LINES, LONGEST = 5, 300
READ = 200_000  # bytes, from both ends of each stream
NOISE = compile_regex(
    r"^\W*$|complete log of this run|debug-\d+\.log|^npm (?:error|ERR!)(?: code)?\s*$|^npm (?:warn|notice)\b"
    r"|^(?:warning|warn|notice|info)\b|^\[?(?:\d+/\d+)\]|^➤ YN0000|^\$ |^> |deprecat|^\s*at .+\(node:internal",
    re.IGNORECASE,
)
TELLING = compile_regex(
    r"\berror\b|\bERR_?|^E[A-Z]{4,}|\bfail|\bfatal\b|cannot|can't|could not|couldn't|not found|no such|missing|denied"
    r"|exception|traceback|unable|unsupported|requires?\b|incompatible|✖|✕|^E\s",
    re.IGNORECASE,
)


def excerpt(stdout: bytes, stderr: bytes, root: Path | None = None) -> str:
    """At most five lines: from the first that says what went wrong on; the last ones where none does."""
    lines = [line for stream in (stderr, stdout) for line in _lines(stream, root)]
    useful = [line for line in lines if not NOISE.search(line)] or lines
    start = next((number for number, line in enumerate(useful) if TELLING.search(line)), max(0, len(useful) - LINES))
    return "\n".join(useful[start : start + LINES])


def _lines(stream: bytes, root: Path | None) -> list[str]:
    cut = stream if len(stream) <= 2 * READ else stream[:READ] + b"\n" + stream[-READ:]
    plain = without_invisible(without_controls(cut.decode(errors="replace")))
    if root is not None:
        plain = plain.replace(f"{root}/", "")
    return [truncate(line.rstrip(), LONGEST) for line in plain.splitlines() if line.strip()]
