"""A real repository, the real local forge and memory branch, real fixers; only the clock is ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ralph_mission.adapters.forges.local import Person
from ralph_mission.app.cycle import App, build_app
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from tests.conftest import SANDBOX
from tests.helpers import NOON, git, make_repo, read_head

TYPOS = {
    "README.md": "# Harbour\n\nTides are seperate from waves. We recieve the tables by mail.\n",
    "docs/guide.md": "# Guide\n\nThis is definately the way to read a table.\n",
}
CALM = "hands: {fixers: [typos]}\nobservers:\n  code: {markers: {}}\n"
BUGS_CONFIG = """\
observers:
  code: {markers: {}}
  commands:
    - {name: check, run: cat bugs.txt, kind: bug, parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}}
hands: {fixers: [typos]}
"""


T = TypeVar("T")
_BEGUN: dict[tuple[str, str], tuple[Path, datetime, Any]] = {}


@dataclass
class World:
    """One repository through time. `cycle` runs one; time passes only when told."""

    repo: Path
    now: datetime = NOON

    def house(self, staged: bool = False) -> App:
        """The ports, at this moment."""
        return build_app(self.repo, staged=staged, now=self.now)

    def cycle(self, after: timedelta = timedelta(hours=7), **request: object) -> tuple[CycleReport, CycleSummary]:
        """One cycle, some time later."""
        self.now += after
        house = self.house(staged=bool(request.get("staged")))
        return run_cycle(house.ports, house.settings, CycleRequest(force=True, **request), house.secrets)  # type: ignore[arg-type]  # names of Request

    def person(self, login: str = "mara") -> Person:
        """Somebody at the keyboard, a minute later."""
        self.now += timedelta(minutes=1)
        return Person(self.house().forge, login)

    def memory(self) -> str:
        """The memory file."""
        return git(self.repo, "show", "ralph-memory:memory/ralph-log.md")

    def git(self, *arguments: str) -> str:
        """Plain git."""
        return git(self.repo, *arguments)

    @property
    def issues(self):
        """All issues."""
        return self.house().forge.issues("all")

    @property
    def pulls(self):
        """All pulls."""
        return self.house().forge.pulls("all")


def begun_once(place: World | None, what: str, begin: Callable[[], T]) -> T:
    """What `begin` comes to, and leaves behind, in a repository of this machine that is still as it was made.

    It is done once for all that are alike: the next ones get a copy. Elsewhere it is done each time.
    """
    if place is None or place.now != NOON:
        return begin()
    key = (what, read_head(place.repo))
    if key not in _BEGUN:
        result, kept = begin(), Path(tempfile.mkdtemp(dir=os.environ[SANDBOX])) / "repo"
        shutil.copytree(place.repo, kept, symlinks=True)
        _BEGUN[key] = kept, place.now, result
        return result
    kept, place.now, result = _BEGUN[key]
    shutil.rmtree(place.repo)
    shutil.copytree(kept, place.repo, symlinks=True)
    return result


def world(path: Path, files: dict[str, str | bytes] | None = None, config: str = CALM) -> World:
    """A repository with `files` (some misspellings by default) and a configuration."""
    return World(make_repo(path, {**(TYPOS if files is None else files), "ralph.yml": config}))


def verdicts(report: CycleReport) -> list[tuple[str, str, tuple[str, ...]]]:
    """(action, verdict, rules) of every decision."""
    return [(line.action, line.verdict.value, line.rules) for line in report.decisions]


def statuses(report: CycleReport) -> list[str]:
    """The states of the missions told of."""
    return [line.status.value for line in report.missions]
