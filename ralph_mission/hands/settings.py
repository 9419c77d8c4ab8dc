"""What can be configured about the hands: which fixers, and which commands a change must pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from ralph_mission.hands import FIXERS

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
