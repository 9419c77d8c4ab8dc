"""What can be configured about the hands: which fixers, and which commands a change must pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from ralph_mission.hands import FIXERS

if TYPE_CHECKING:
    FixerName = str
else:
    FixerName = Literal[tuple(FIXERS)]


class Settings(BaseModel, extra="forbid", frozen=True):
    """The `hands` section of ralph.yml."""

    fixers: tuple[FixerName, ...] = Field(tuple(FIXERS), description="What may change files on its own.")
    verify: tuple[str, ...] = Field((), description="Commands that must pass before a change is proposed.")
    verify_timeout: float = Field(600, gt=0, le=7200, description="Seconds that each of them may take.")
