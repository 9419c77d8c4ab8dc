"""One thing a tool complained about, whatever format it said it in."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

_UNNAMEABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # nothing a tool's report should call a file


class GarbledOutput(Exception):
    """A tool's output is not what it was said to be."""


@dataclass(frozen=True, slots=True)
class Result:
    """`path` is relative to the repository, "" when outside or unknown; `line` 1-based or 0.

    `level` is error, warning, note or "" when the tool does not say. `identity` is what the tool itself
    knows the thing by wherever it moves, `snippet` the text it saw; "" when it does not say.
    """

    path: str = ""
    line: int = 0
    code: str = ""
    message: str = ""
    level: str = ""
    identity: str = ""
    snippet: str = ""


def inside(path: str, root: Path) -> str:
    """`path` relative to `root`, with `/`; "" when it lies elsewhere."""
    if _UNNAMEABLE.search(path):
        return ""
    clean = posixpath.normpath(path) if path else ""
    for folder in (str(root), str(root.resolve())):
        clean = clean.removeprefix(folder.rstrip("/") + "/")
    return "" if clean in (".", "..") or clean.startswith(("/", "../")) else clean


def whole_number(value: object) -> int:
    """A line number from whatever a tool wrote; 0 when it is none."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if re.fullmatch(r"[0-9]{1,8}", text) else 0


def level(value: object) -> str:
    """A tool's word for severity as one of error, warning, note; "" when it is another."""
    word = str(value).lower()
    words = {"2": "error", "fatal": "error", "1": "warning", "warn": "warning", "info": "note", "information": "note"}
    word = words.get(word, word)
    return word if word in ("error", "warning", "note") else ""
