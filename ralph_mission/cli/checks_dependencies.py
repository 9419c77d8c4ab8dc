"""Whether dependencies are looked after: one question to each registry and to OSV, of which nothing is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config
    from ralph_mission.gateways.packages.model import Project

NAME = "dependencies"


def dependencies(settings: Config, git: Git) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it; a note for each package manager that is missing."""
    from ralph_mission.mission.model import Branch
    from ralph_mission.mission.ports import Gaze
    from ralph_mission.observers.dependencies import build

    chosen, commit = settings.observers.dependencies, git.resolve("HEAD")
    if chosen is None or not commit:
        yield Check(NAME, "note", "not configured", "to look after them: observers: {dependencies: {}} in ralph.yml")
        return
    with tempfile.TemporaryDirectory(prefix="ralph-") as scratch:
        try:
            gaze = Gaze(Branch("", commit), datetime.now(UTC), None, "", scratch)
            found, projects = build(chosen, git).try_out(gaze)
        except Trouble as trouble:
            yield Check(NAME, "wrong", f"broken: {trouble.what}", mend(trouble))
            return
    yield Check(NAME, "ok", f"ready: {found}")
    yield from _managers(projects)


def _managers(projects: Iterable[Project]) -> Iterator[Check]:
    from ralph_mission.gateways.packages.managers import MANAGERS, located

    for project in projects:
        manager = MANAGERS.get(project.tool)
        if manager and not located(manager):
            what = f"{manager.program} is not installed: updates of {project.path} are told, not made"
            yield Check(NAME, "note", what, f"install {manager.program}")
