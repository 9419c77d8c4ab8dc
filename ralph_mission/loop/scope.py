"""Where a hat may write: decided on what really changed, whoever changed it and however it is spelled."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.loop.model import Hat, PathChange
from ralph_mission.safety.paths import configures_agents

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STEERING = "what configures agents is for people to write"
OUR_FOLDERS = (".ralph", ".omc")
OUR_FILES = ("prd.json", "progress.txt", ".last-branch")
FOUND_IN = ("", "scripts/ralph")
"""Files the engine keeps, and where: judged by what they say (stories, notes, events), not by a hat's globs."""
LEFT = re.compile(rf"\.({'|'.join(map(re.escape, OUR_FILES))})\.\d+\.\d+")
"""What a kill leaves of one that was being written."""


def why_outside(hat: Hat, path: str, kept: Collection[str] = ()) -> str:
    """Why this hat may not write there, "" when it may. `kept` are more files of the engine's own."""
    if ours(path, kept):
        return ""
    if hat.write_denied and _matches(hat.write_denied, path):
        return f"{hat.name} may not write there"
    if hat.unsteered and configures_agents(path):
        return STEERING
    if hat.write_allowed is not None and not _matches(tuple(map(_anchor, hat.write_allowed)), path):
        where = ", ".join(hat.write_allowed) or "nothing"
        return f"{hat.name} may write {where} only"
    return ""


def outside(hat: Hat, changes: Iterable[PathChange], kept: Collection[str] = ()) -> tuple[PathChange, ...]:
    """The changes that have to be undone, each with the reason."""
    found = ((change, why_outside(hat, change.path, kept)) for change in changes)
    return tuple(PathChange(change.path, change.how, why) for change, why in found if why)


def ours(path: str, kept: Collection[str] = ()) -> bool:
    """Whether the engine itself keeps this file. Its folder is not a file: as a link it would lead elsewhere."""
    folder, _, name = path.rpartition("/")
    return (
        path in kept
        or path.startswith(tuple(f"{ours}/" for ours in OUR_FOLDERS))
        or (folder in FOUND_IN and (name in OUR_FILES or LEFT.fullmatch(name) is not None))
    )


def _anchor(glob: str) -> str:
    """A folder that is allowed is the one at the top, not every one of that name."""
    return f"/{glob}" if glob.endswith("/") and "/" not in glob[:-1] and not glob.startswith("!") else glob


def _matches(globs: Sequence[str], path: str) -> bool:
    # A glob's dot does not match a line break, which a path may hold.
    return _spec(tuple(globs)).match_file(path.replace("\n", "\x01"))


@lru_cache(maxsize=64)
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    lines = ("/**" if glob in (".", "./") else glob.removeprefix("./") for glob in globs)
    return GitIgnoreSpec.from_lines(lines)
