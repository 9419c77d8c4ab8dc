"""A repository to look at, and how to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import NOON, git

LATER = NOON + timedelta(days=10)


@dataclass(frozen=True)
class Place:
    """A repository and a scratch folder beside it."""

    path: Path
    scratch: Path

    @property
    def git(self) -> Git:
        return Git.open(self.path)

    def context(self, cursor: str = "", now: datetime = LATER, head: str | None = None) -> ObservationContext:
        sha = git(self.path, "rev-parse", "HEAD") if head is None else head
        return ObservationContext(Branch("main", sha), now, None, cursor, str(self.scratch))
