"""Vulnerable and outdated packages, from files with locked or pinned versions.

The readers of those files take longer to load than an idle cycle, so they are only imported if needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.model.mission import Observation
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from ralph_mission.mission.model.proposal import ObservationContext
    from ralph_mission.mission.ports import Observer

SECONDS = 570.0
"""The time limit of a look: OSV and registries 60 each, bumps 270, and 180 for reading and the last answers."""
NAMES = frozenset(
    (
        "uv.lock poetry.lock pyproject.toml package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml package.json"
        " cargo.lock go.mod pom.xml"
    ).split()
)
REQUIREMENTS = compile_regex(
    r"(?:^|/)(?:[^/]*requirements[^/]*|constraints[^/]*|requirements/[^/]+)\.txt$", re.IGNORECASE
)
"""Files with versions: by their whole name, and those that pip calls as it likes."""


@dataclass(frozen=True, slots=True)
class PackageObserver:
    """`make`: creates the observer of packages, if there are such files."""

    git: Git
    make: Callable[[], Observer]
    name: str = "dependencies"
    seconds: float = SECONDS

    def observe(self, context: ObservationContext) -> Observation:
        """All vulnerable and outdated packages."""
        commit = context.head.sha
        if not commit or not any(map(_names_versions, self.git.paths(commit))):
            return Observation(self.name, "ok", detail="no lock files and no exact versions")
        return self.make().observe(context)


def _names_versions(path: str) -> bool:
    """Whether it is a file with packages' versions, by its name."""
    name = path.lower()
    return name.rpartition("/")[2] in NAMES or (name.endswith(".txt") and bool(REQUIREMENTS.search(path)))
