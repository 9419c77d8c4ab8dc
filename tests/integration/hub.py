"""A repository on a (fake) GitHub, and runners of it: the real forge, memory pushed to the server, real fixers.

Time passes only when told, for the runners and for the server alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from ralph_mission.adapters.forges import github
from ralph_mission.app.cycle import App, build_app
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from tests.fakes.github.people import Person
from tests.fakes.github.server import FakeGitHub
from tests.helpers import NOON, copy_bare, git, make_repo
from tests.integration.world import CALM, TYPOS

NAME = "harbour/slackwater"
UNPACED = """
import sys
from ralph_mission.cli.main import main
from ralph_mission.adapters.forges import github
github.connect.__kwdefaults__.update(pace=0.0, sleep=lambda seconds: None)
sys.argv = ["ralph", *sys.argv[1:]]
sys.exit(main())
"""


@dataclass
class Hub:
    """The server, and the clone of one runner. `cycle` runs one there."""

    fake: FakeGitHub
    token: str
    folder: Path
    now: datetime = NOON
    runner: str = "one"
    actions: dict[str, str] = field(default_factory=dict)  # what a workflow run adds to its environment
    skew: timedelta = timedelta(0)  # how fast the runner's clock is

    @property
    def clone(self) -> Path:
        """This runner's clone, made when first asked for."""
        place = self.folder / self.runner
        if not place.exists():
            git(self.folder, "clone", "--quiet", str(self.fake.bare), str(place))
        return place

    @property
    def environ(self) -> dict[str, str]:
        """What the action gives to a cycle."""
        return {
            "GITHUB_TOKEN": self.token,
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_API_URL": self.fake.api_url,
            "GITHUB_SERVER_URL": self.fake.url,
            **self.actions,
        }

    @property
    def process_environ(self) -> dict[str, str]:
        """The same for a process of its own."""
        return os.environ | self.environ

    def process(self, *options: str) -> subprocess.Popen[bytes]:
        """A real cycle at this moment, in a process of its own, as the action starts it."""
        command = [
            sys.executable,
            "-c",
            UNPACED,
            "cycle",
            "--json",
            *options,
            "--forge",
            "github",
            "--repo",
            str(self.clone),
            "--now",
            self.now.isoformat(),
        ]
        self._show_the_time()
        return subprocess.Popen(command, env=self.process_environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _show_the_time(self) -> None:
        """GitHub's clock shows this moment too, and never went back."""
        self.fake.clock.now = max(self.now, self.fake.clock.now)

    def house(self, staged: bool = False) -> App:
        """The ports, at this moment."""
        self._show_the_time()
        with mock.patch.dict(os.environ, self.environ), unpaced():
            app = build_app(self.clone, forge="github", staged=staged, now=self.now + self.skew)
            assert app.ports  # made when asked for, of this environment
            return app

    def cycle(self, after: timedelta = timedelta(hours=7), **request: Any) -> tuple[CycleReport, CycleSummary]:
        """One cycle, some time later."""
        self.now += after
        house = self.house(staged=bool(request.get("staged")))
        request = {"force": True, **request}
        return run_cycle(house.ports, house.settings, CycleRequest(**request), house.secrets)

    def person(self, login: str = "mara", permission: str | None = None) -> Person:
        """Somebody at her desk, a minute later."""
        self.now += timedelta(minutes=1)
        self.fake.clock.now = max(self.now, self.fake.clock.now)
        return self.fake.person(login, permission) if permission else self.fake.person(login)

    def memory(self) -> str:
        """The memory file on the server."""
        return git(self.fake.bare, "show", "ralph-memory:memory/ralph-log.md")

    def head_name(self, pull: int) -> str:
        """The branch of a pull."""
        return self.fake.pull(pull).pull.head

    def merged(self, pull: int) -> bool:
        """Whether a pull is merged."""
        return self.fake.pull(pull).pull.merged_at is not None

    def said(self, number: int) -> list[str]:
        """The comments on an issue or pull."""
        return [comment.body for comment in self.fake.comments.values() if comment.number == number]

    @property
    def issues(self):
        """Issues as they really are, but for the standing one; lowest number first."""
        return [t for t in self.threads if not t.pull and "ralph:anchor" not in (t.body or "")]

    @property
    def pulls(self):
        """Pulls as they really are."""
        return [t for t in self.threads if t.pull]

    @property
    def threads(self):
        """All of them."""
        return sorted(self.fake.threads.values(), key=lambda t: t.number)


def unpaced():
    """A second between two mutations is GitHub's wish, not the fake's."""
    return mock.patch.dict(github.connect.__kwdefaults__, {"pace": 0.0, "sleep": lambda seconds: None})


@contextmanager
def open_hub(
    folder: Path, files: dict[str, str | bytes] | None = None, config: str = CALM, **options: Any
) -> Iterator[Hub]:
    """A server with a repository of `files` (some misspellings by default) and a configuration."""
    start = make_repo(folder / "start", {**(TYPOS if files is None else files), "ralph.yml": config})
    with FakeGitHub(copy_bare(start, folder / "server.git"), NAME, **options) as fake:
        yield Hub(fake, fake.token(), folder)
