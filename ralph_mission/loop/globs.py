"""Whose files are whose: gitignore patterns, but a name without a wildcard is one path from the top of the work tree.

Whether two can name the same path is asked before anything is built. A folder has to look like one (`api`, `api/`,
`api/**`): `a.py` and `*.py` are files here. Whoever finds a way around that meets the other one at the merge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

LONGEST = 200
"""Characters of a glob."""
TOKEN = re.compile(r"\*+|\?|\[[^\]]+\]|\\?.", re.DOTALL)
WILD = re.compile(r"[*?\[]")
ANY, ONE = "*", "?"


def wrong(glob: str) -> str:
    """Why this cannot be somebody's files, "" when it can."""
    if not glob.strip() or len(glob) > LONGEST or not glob.isprintable():
        return f"{glob[:40]!r} is no glob"
    if glob.startswith(("!", "#", "~")) or ".." in glob.split("/"):
        return f"{glob!r} does not say which files of the work tree are meant"
    return ""


def plain(glob: str) -> str:
    """The glob as a pattern, without spaces and `./`; `a.py` is the one at the top, not one in each folder."""
    text = glob.strip().removeprefix("./")
    return text if "/" in text.rstrip("/") or WILD.search(text) else f"/{text}"


def meet(some: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """The first two that can name the same path (as gitignore patterns, in any case of letters), None if none do."""
    return next(((one, other) for one in some for other in others if _meet(_path(one), _path(other), "**")), None)


def _path(glob: str) -> tuple[str, ...]:
    """The segments, letters in one case; `**` stands for any number of them."""
    text = plain(glob).casefold()
    parts = tuple(part for part in text.split("/") if part)
    anywhere = () if "/" in text.rstrip("/") else ("**",)
    return (*anywhere, *parts, *(("**",) if _folder(text) else ()))


def _folder(text: str) -> bool:
    """Whether it stands for what is below it as well."""
    last = text.rpartition("/")[2]
    return last in ("", "*", "**") or ("." not in last[1:] and not WILD.search(last))


@lru_cache(maxsize=50_000)
def _meet(one: tuple[str, ...], other: tuple[str, ...], many: str) -> bool:
    """Whether some sequence fits both; `many` fits any number of elements."""
    if not one or not other:
        return all(part == many for part in (*one, *other))
    if one[0] == many:
        return _meet(one[1:], other, many) or _meet(one, other[1:], many)
    if other[0] == many:
        return _meet(one, other[1:], many) or _meet(one[1:], other, many)
    fits = _segments(one[0], other[0]) if many == "**" else ONE in (one[0], other[0]) or one[0] == other[0]
    return fits and _meet(one[1:], other[1:], many)


def _segments(one: str, other: str) -> bool:
    return _meet(_letters(one), _letters(other), ANY)


def _letters(segment: str) -> tuple[str, ...]:
    """Its letters; a choice of letters counts as any letter."""
    found = TOKEN.findall(segment)
    return tuple(ANY if token[0] == "*" else ONE if token[0] == "[" and token[1:] else token[-1] for token in found)
