"""Which files a hat may write, by what really changed; and whether two sets of patterns overlap.

Patterns are gitignore's, but a name without a wildcard is a path from the top of the work tree. Overlap is checked
before anything is built. A folder must look like one (`api`, `api/`, `api/**`): `a.py` and `*.py` are files here. Any
overlap that this misses shows as a conflict when merging.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.loop.model.state import Hat, PathChange
from ralph_mission.safety.paths import configures_agents
from ralph_mission.values import compile_regex

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LONGEST = 200
"""Characters of a glob."""
TOKEN = compile_regex(r"\*+|\?|\[[^\]]+\]|\\?.", re.DOTALL)
WILD = compile_regex(r"[*?\[]")
ANY, ONE = "*", "?"


def wrong(glob: str) -> str:
    """Why a glob is invalid, or ""."""
    if not glob.strip() or len(glob) > LONGEST or not glob.isprintable():
        return f"{glob[:40]!r} is not a glob"
    if glob.startswith(("!", "#", "~")) or ".." in glob.split("/"):
        return f"{glob!r} does not say which files of the work tree are meant"
    return ""


def plain(glob: str) -> str:
    """The normalised pattern of a glob; `a.py` means the one at the top, not in each folder."""
    text = glob.strip().removeprefix("./")
    return text if "/" in text.rstrip("/") or WILD.search(text) else f"/{text}"


def meet(some: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """The first two patterns that can match the same path, ignoring case, or None."""
    return next(
        (
            (glob, other)
            for glob in some
            for other in others
            if _globs_meet(_split_glob(glob), _split_glob(other), "**")
        ),
        None,
    )


def _split_glob(glob: str) -> tuple[str, ...]:
    """The segments in one case; `**` stands for any number of them."""
    text = plain(glob).casefold()
    parts = tuple(part for part in text.split("/") if part)
    anywhere = () if "/" in text.rstrip("/") else ("**",)
    return (*anywhere, *parts, *(("**",) if _is_folder(text) else ()))


def _is_folder(text: str) -> bool:
    """Whether the glob includes everything below it."""
    last = text.rpartition("/")[2]
    return last in ("", "*", "**") or ("." not in last[1:] and not WILD.search(last))


@lru_cache(maxsize=50_000)
def _globs_meet(one: tuple[str, ...], other: tuple[str, ...], many: str) -> bool:
    """Whether some sequence matches both; `many` matches any number of elements."""
    if not one or not other:
        return all(part == many for part in (*one, *other))
    if one[0] == many:
        return _globs_meet(one[1:], other, many) or _globs_meet(one, other[1:], many)
    if other[0] == many:
        return _globs_meet(one, other[1:], many) or _globs_meet(one[1:], other, many)
    fits = _segments_meet(one[0], other[0]) if many == "**" else ONE in (one[0], other[0]) or one[0] == other[0]
    return fits and _globs_meet(one[1:], other[1:], many)


def _segments_meet(one: str, other: str) -> bool:
    return _globs_meet(_letters(one), _letters(other), ANY)


def _letters(segment: str) -> tuple[str, ...]:
    """Its characters; a character class counts as any character."""
    found = TOKEN.findall(segment)
    return tuple(ANY if token[0] == "*" else ONE if token[0] == "[" and token[1:] else token[-1] for token in found)


STEERING = "what configures agents is for people to write"
OUR_FOLDERS = (".ralph", ".omc")
OUR_FILES = ("prd.json", "progress.txt", ".last-branch")
FOUND_IN = ("", "scripts/ralph")
"""The engine's own files: judged by content (stories, notes, events), not by a hat's globs."""
LEFT = compile_regex(rf"\.({'|'.join(map(re.escape, OUR_FILES))})\.\d+\.\d+")
"""Temporary files that a kill leaves behind."""


def why_outside(hat: Hat, path: str, engine_files: Collection[str] = ()) -> str:
    """Why this hat may not write there, or "". `engine_files`: further files of the engine."""
    if ours(path, engine_files):
        return ""
    if hat.write_denied and _matches(hat.write_denied, path):
        return f"{hat.name} may not write there"
    if hat.no_agent_settings and configures_agents(path):
        return STEERING
    if hat.write_allowed is not None and not _matches(tuple(map(_anchor, hat.write_allowed)), path):
        where = ", ".join(hat.write_allowed) or "nothing"
        return f"{hat.name} may write {where} only"
    return ""


def outside(hat: Hat, changes: Iterable[PathChange], engine_files: Collection[str] = ()) -> tuple[PathChange, ...]:
    """The changes to undo, each with its reason."""
    found = ((change, why_outside(hat, change.path, engine_files)) for change in changes)
    return tuple(PathChange(change.path, change.how, why) for change, why in found if why)


def ours(path: str, engine_files: Collection[str] = ()) -> bool:
    """Whether this is a file of the engine. Its folder is not: as a link it would lead elsewhere."""
    folder, _, name = path.rpartition("/")
    return (
        path in engine_files
        or path.startswith(tuple(f"{ours}/" for ours in OUR_FOLDERS))
        or (folder in FOUND_IN and (name in OUR_FILES or LEFT.fullmatch(name) is not None))
    )


def _anchor(glob: str) -> str:
    """Anchor an allowed folder at the top, so that others of its name do not match."""
    return f"/{glob}" if glob.endswith("/") and "/" not in glob[:-1] and not glob.startswith("!") else glob


def _matches(globs: Sequence[str], path: str) -> bool:
    # A regular expression's dot does not match a line break, which a path may contain.
    return _spec(tuple(globs)).match_file(path.replace("\n", "\x01"))


@lru_cache(maxsize=64)
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    lines = ("/**" if glob in (".", "./") else glob.removeprefix("./") for glob in globs)
    return GitIgnoreSpec.from_lines(lines)
