"""What people forbade under Do Not Repeat: paths as backticked globs, issues as `#N`, finding kinds.

A list item may hold several of them among other words; a kind counts in backticks or as the
item's subject (`- spelling: enough of these`). An item that holds none of them is reported
as not understood, so that nobody believes in a ban that is not obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TICKED = re.compile(r"`([^`\n]+)`")
_NUMBER = re.compile(r"(?<![\w&/])#(\d{1,18})\b")
_SUBJECT = re.compile(r"[\w@-]+(?=\s*(?:[:(,.]|-\s|\Z))")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
_STARS = re.compile(r"\*+")
_MAX_GLOB = 512
_MAX_STARS = 4  # pathspec backtracks: the time of a match grows with the path's length to this power


@dataclass(frozen=True, slots=True)
class PathBan:
    """Paths that match a gitignore pattern, below the repository's root."""

    glob: str


@dataclass(frozen=True, slots=True)
class ReferenceBan:
    """One issue or pull."""

    number: int


@dataclass(frozen=True, slots=True)
class KindBan:
    """Every finding of one kind."""

    kind: str


Ban = PathBan | ReferenceBan | KindBan


def understand(text: str, kinds: Collection[str]) -> tuple[tuple[Ban, ...], tuple[str, ...]]:
    """The bans of the section, and the lines in it that say nothing we can obey."""
    bans: dict[Ban, None] = {}
    unclear = []
    for line in _items(text):
        found = list(_bans(line, kinds))
        bans.update(dict.fromkeys(found))
        if not found:
            unclear.append(line)
    return tuple(bans), tuple(unclear)


def forbids(bans: Iterable[Ban], path: str = "", kind: str = "", reference: int = 0) -> bool:
    """Whether any ban covers a finding at `path` ("": none) of `kind`, about issue `reference` (0: none)."""
    return any(_covers(ban, path, kind, reference) for ban in bans)


def _items(text: str) -> Iterable[str]:
    # Headings and comments explain; a line indented below an item belongs to it, any other stands alone.
    items: list[str] = []
    for raw in _COMMENT.sub("", text).splitlines():
        match = _ITEM.match(raw)
        line = (match[1] if match else raw).strip()
        if not line or (line.startswith("#") and not _NUMBER.match(line)):
            continue
        if items and not match and raw[0] in " \t":
            items[-1] += " " + line
        else:
            items.append(line)
    return items


def _bans(line: str, kinds: Collection[str]) -> Iterable[Ban]:
    for ticked in _TICKED.findall(line):
        if ticked in kinds:
            yield KindBan(ticked)
        elif number := _NUMBER.fullmatch(ticked):
            yield ReferenceBan(int(number[1]))
        elif _is_glob(ticked):
            yield PathBan(ticked)
    plain = _TICKED.sub(" ", line)
    yield from (ReferenceBan(int(number)) for number in _NUMBER.findall(plain))
    subject = _SUBJECT.match(plain)  # a kind in running text ("any", "bug") is only a word
    if subject and subject[0] in kinds:
        yield KindBan(subject[0])


def _is_glob(text: str) -> bool:
    # A negation forbids nothing on its own.
    if text.startswith("!") or text != text.strip() or len(text) > _MAX_GLOB:
        return False
    return len(_STARS.findall(text)) <= _MAX_STARS and _pattern(text) is not None


def _covers(ban: Ban, path: str, kind: str, reference: int) -> bool:
    if isinstance(ban, KindBan):
        return ban.kind == kind
    if isinstance(ban, ReferenceBan):
        return ban.number == reference
    pattern = _pattern(ban.glob)
    return bool(path and pattern and pattern.match_file(path))


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines([glob])
    except ValueError:
        return None
    return spec if any(pattern.include for pattern in spec.patterns) else None
