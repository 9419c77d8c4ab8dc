"""Reads a repository's guides from the commit that work starts from: never from a work tree or a pull's head.

What can be configured about the hands: which fixers, and which commands a change must pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from ralph_mission.adapters.fixers import FIXERS
from ralph_mission.adapters.git.git import Git
from ralph_mission.loop.prompt.framing import GUIDES, conventions
from ralph_mission.safety.patch import EXECUTABLE, REGULAR


def read(git: Git, base: str) -> str:
    """`loop.conventions` of the commit `base`. A guide that is a link or a folder is none. Raises GitError."""
    found = {entry.path: entry.oid for entry in git.listing(base, *GUIDES) if entry.mode in (REGULAR, EXECUTABLE)}
    held = git.blobs(found.values())
    return conventions({path: held[oid] for path, oid in found.items() if oid in held})


if TYPE_CHECKING:
    FixerName = str
else:
    FixerName = Literal[tuple(FIXERS)]


RENAMED = {"codespell": "typos"}
"""Names of fixers in settings that were written earlier."""


def _rename_old(names: object) -> object:
    if not isinstance(names, list | tuple):
        return names
    return tuple(dict.fromkeys(RENAMED.get(name, name) if isinstance(name, str) else name for name in names))


class FixerSettings(BaseModel, extra="forbid", frozen=True):
    """The `hands` section of ralph.yml."""

    fixers: Annotated[tuple[FixerName, ...], BeforeValidator(_rename_old)] = Field(
        tuple(FIXERS), description="What may change files on its own."
    )
    verify: tuple[str, ...] = Field((), description="Commands that must pass before a change is proposed.")
    verify_timeout: float = Field(600, gt=0, le=7200, description="Seconds that each of them may take.")
