"""Which exact versions a manifest asks for, and which of them differ between two texts of it.

A version counts where packages are asked for and nowhere else: not in a script, an address, an option or a comment.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralph_mission.safety.steps import NUMBER

LONGEST = 4_000
"""Characters of a line of TOML that is still read: a dotted key costs the square of its length."""
SECTIONS = ("dependencies", "devDependencies", "optionalDependencies")
"""Of a package.json."""
_END = r"(?![\w.*+!-])"
_PIN = re.compile(
    rf"(?P<before>\s*[A-Za-z0-9][\w.-]*+\s*+(?:\[[^\]\n]*\]\s*+)?===?\s*)"
    rf"(?P<version>{NUMBER}(?:\.{NUMBER})+(?:\.post{NUMBER})?){_END}(?P<after>.*)",
    re.DOTALL,
)
_BARE = re.compile(rf"(?P<before>={{0,2}}v?)(?P<version>{NUMBER}(?:\.{NUMBER}){{2,}}(?:\.post{NUMBER})?)(?P<after>)")
_NODE = {f"{section} *": _BARE for section in SECTIONS}
_PYTHON = {
    "project dependencies *": _PIN,
    "project optional-dependencies * *": _PIN,
    "dependency-groups * *": _PIN,
    "build-system requires *": _PIN,
    "tool uv dev-dependencies *": _PIN,
    "tool uv constraint-dependencies *": _PIN,
    "tool uv override-dependencies *": _PIN,
    "tool poetry dependencies *": _BARE,
    "tool poetry dependencies * version": _BARE,
    "tool poetry dev-dependencies *": _BARE,
    "tool poetry dev-dependencies * version": _BARE,
    "tool poetry group * dependencies *": _BARE,
    "tool poetry group * dependencies * version": _BARE,
}
"""Where packages are asked for, and how an exact version is written there."""
Raised = tuple[str, str]
Where = tuple[str, ...]


def raised(path: str, old: Sequence[str], new: Sequence[str]) -> list[Raised] | None:
    """(old, new) of each exact version that differs between the lines of two texts; None when anything else does."""
    try:
        if path.endswith(".json"):
            found = list(_found(json.loads("".join(old)), json.loads("".join(new)), _NODE))
        elif path.endswith(".toml") and max(map(len, (*old, *new))) > LONGEST:
            return None
        elif path.endswith(".toml"):
            found = list(_found(tomllib.loads("".join(old)), tomllib.loads("".join(new)), _PYTHON))
        else:
            found = list(_required(old, new))
    except (ValueError, RecursionError):
        return None
    return None if None in found else [pair for pair in found if pair]


def _required(old: Sequence[str], new: Sequence[str]) -> Iterator[Raised | None]:
    """Of requirements, line by line; what goes on from the line above is no requirement."""
    if len(old) != len(new):
        yield None
    for above, before, after in zip(["", *old], old, new, strict=False):
        if before != after:
            yield None if above.rstrip("\r\n").endswith("\\") else _pair(_PIN, before, after)


def _found(old: Any, new: Any, places: Mapping[str, re.Pattern[str]]) -> Iterator[Raised | None]:
    for where, before, after in _differences(old, new, ()):
        pattern = next((places[place] for place in places if _is_at(place, where)), None)
        yield _pair(pattern, before, after) if pattern else None


def _is_at(place: str, where: Where) -> bool:
    parts = place.split()
    same = len(parts) == len(where) and all(part in ("*", key) for part, key in zip(parts, where, strict=True))
    return same and not (parts[:2] == ["tool", "poetry"] and "python" in where)  # which is no package


def _differences(old: Any, new: Any, where: Where) -> Iterator[tuple[Where, Any, Any]]:
    """The leaves of two documents that differ; where their shapes do, the whole."""
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from _differences(old[key], new[key], (*where, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            yield from _differences(before, after, (*where, "*"))
    elif old != new:
        yield where, old, new


def _pair(pattern: re.Pattern[str], old: Any, new: Any) -> Raised | None:
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    before, after = pattern.fullmatch(old), pattern.fullmatch(new)
    if not before or not after or any(before[part] != after[part] for part in ("before", "after")):
        return None
    return before["version"], after["version"]
