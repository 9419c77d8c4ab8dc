"""Makes foreign text fit to be carried in a signal: no control characters, never too long.

Meaning is not touched here; what may be *sent* is decided in wording.
"""

from __future__ import annotations

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


def count_noun(number: int, noun: str) -> str:
    """A count in words: 1 file, 1,200 files."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
