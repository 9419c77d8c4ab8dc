"""Text from the repository or from strangers: made fit for a signal, and told apart by content alone.

What goes into a signal has no control characters and a bounded length; what may be *sent* is decided in wording.
Which thing a line of code is follows from the line and its neighbours: it survives moves, renames and new
indentation, and changes when the line itself does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.safety.markdown import without_controls

TITLE = 120  # characters
DETAIL = 2_000


def plain(text: str) -> str:
    """`text` without escape sequences and control characters but newline and tab; always valid UTF-8."""
    return without_controls(text).replace("\r\n", "\n")


def one_line(text: str, limit: int = TITLE) -> str:
    """`plain`, on one line, at most `limit` characters."""
    return _clip(" ".join(plain(text).split()), limit)


def block(text: str, limit: int = DETAIL) -> str:
    """`plain`, lines kept, at most `limit` characters."""
    return _clip(plain(text).strip(), limit)


def quote(text: str) -> str:
    """Words of somebody else, marked line by line."""
    return "\n".join(f"> {line}" for line in text.split("\n"))


def age_days(since: datetime, now: datetime) -> float:
    """How many days ago something was; 0 for what a wrong clock dates into the future."""
    return max(0.0, (now - since).total_seconds() / 86_400)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def surroundings(lines: Sequence[str], number: int) -> tuple[str, str, str]:
    """The line `number` (1-based) and the nearest lines before and after that are not blank, normalised."""
    if not 1 <= number <= len(lines):
        return "", "", ""
    before = next((line for line in reversed(lines[: number - 1]) if line.strip()), "")
    after = next((line for line in lines[number:] if line.strip()), "")
    return normalise_line(lines[number - 1]), normalise_line(before), normalise_line(after)


def valid_path(path: str) -> str:
    """A path as git has it (surrogateescape), as valid text."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def split_lines(content: bytes) -> list[str]:
    """The lines of a file as git counts them; bytes that are no UTF-8 become U+FFFD."""
    return content.decode("utf-8", "replace").split("\n")
