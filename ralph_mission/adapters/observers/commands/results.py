"""What tools complained about, read from a JSON document by JMESPath expressions.

`items` gives a list; with `nested`, each item's own list is read instead, and an inner object
has its outer one's fields wherever it lacks its own (ESLint and Knip name the file outside).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ralph_mission.config.observers import ItemFields
from ralph_mission.values import compile_regex, dataclass

_UNNAMEABLE = compile_regex(r"[\x00-\x1f\x7f\ud800-\udfff]")  # nothing a tool's report should call a file


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


def _search(expression: str, document: Any) -> Any:
    import jmespath  # takes a while to load

    return jmespath.search(expression, document)


def read(raw: bytes, fields: ItemFields, root: Path) -> list[Result]:
    """The results that `fields` point at. Raises Garbled when there is no such list."""
    try:
        found = _search(fields.items, json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise GarbledOutput(f"no JSON that fits ({type(error).__name__})") from None
    if not isinstance(found, list):
        raise GarbledOutput("`items` gives no list")
    try:
        return [_result(item, fields, root) for outer in found for item in _inner(outer, fields)]
    except ValueError as error:  # a function was given what it cannot take
        raise GarbledOutput(f"an expression does not fit: {str(error).splitlines()[0]}") from None


def _inner(outer: Any, fields: ItemFields) -> Iterator[Any]:
    if not fields.nested:
        yield outer
        return
    for inner in _search(fields.nested, outer) or []:
        yield {**outer, **inner} if isinstance(outer, dict) and isinstance(inner, dict) else inner


def _result(item: Any, fields: ItemFields, root: Path) -> Result:
    message, path = _text(_search(fields.message, item)), _text(_search(fields.path, item))
    if not message:
        raise GarbledOutput("a result has no message")
    line, code = _search(fields.line, item), _text(_search(fields.code, item))
    return Result(inside(path, root), whole_number(line), code, message, level(_search(fields.level, item)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
