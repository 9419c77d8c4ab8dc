"""Makes foreign text fit to be carried in a signal: no control characters, never too long.

Meaning is not touched here; what may be *sent* is decided in wording.
"""

from __future__ import annotations

import re

TITLE = 120  # characters
DETAIL = 2_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` without escape sequences and control characters (newline and tab stay); always valid UTF-8."""
    return _CONTROLS.sub("", _ESCAPES.sub("", _SURROGATES.sub("\ufffd", text)))


def one_line(text: str, limit: int = TITLE) -> str:
    """`plain`, on one line, at most `limit` characters."""
    return _clip(" ".join(plain(text.replace("\r", " ")).split()), limit)


def block(text: str, limit: int = DETAIL) -> str:
    """`plain`, lines kept, at most `limit` characters."""
    return _clip(plain(text.replace("\r\n", "\n").replace("\r", "\n")).strip(), limit)


def counted(number: int, noun: str) -> str:
    """A count in words: 1 file, 1,200 files."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
