"""Which thing a line of code is, without saying where it stands: the line and its neighbours.

Survives moves, renames and new indentation; changes when the line itself does.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.mission.findings.identity import normalise_line


def surroundings(lines: Sequence[str], number: int) -> tuple[str, str, str]:
    """The line `number` (1-based) and the nearest lines before and after that are not blank, normalised."""
    if not 1 <= number <= len(lines):
        return "", "", ""
    before = next((line for line in reversed(lines[: number - 1]) if line.strip()), "")
    after = next((line for line in lines[number:] if line.strip()), "")
    return normalise_line(lines[number - 1]), normalise_line(before), normalise_line(after)


def split_lines(content: bytes) -> list[str]:
    """The lines of a file as git counts them; bytes that are no UTF-8 become U+FFFD."""
    return content.decode("utf-8", "replace").split("\n")
