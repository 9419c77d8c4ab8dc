"""GitHub as `ralph doctor` sees it with one token."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import requests

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.cli.doctor import DoctorLine, Hub
from ralph_mission.cli.doctor.github import github
from ralph_mission.cli.doctor.sources import sources
from ralph_mission.config.reading import read
from tests.fakes.github.server import FakeGitHub
from tests.helpers import Result

WORKFLOW = """
on: {repository_dispatch: {types: [ralph-loop-trigger]}, schedule: [{cron: "7 * * * *"}]}
permissions: {}
jobs:
  lint: {runs-on: x, permissions: {contents: read}, steps: []}
  cycle:
    permissions: {contents: write, issues: write, pull-requests: write, actions: read}
    steps: [{uses: ./}]
"""


@dataclass
class Place:
    """The fake GitHub as a token sees it.

    `changes`: what the repository says otherwise.
    """

    fake: FakeGitHub
    token: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get(self, path: str) -> tuple[int, Any]:
        """As `Get`, over the wire."""
        self.asked.append(path)
        address = path[1:] if path.startswith("//") else f"/repos/{self.fake.repository}{path}"
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = requests.get(self.fake.api_url + address, headers=headers, timeout=300)
        body = answer.json()
        return answer.status_code, body | self.changes if path == "" and answer.ok else body

    def hub(self, **changes: Any) -> Hub:
        account = next(t.account.login for t in self.fake.world.tokens.values() if t.value == self.token)
        environment = {"GITHUB_TOKEN": self.token, **self.environment}
        made = Hub(self.get, account, self.fake.clock.now, workflow=WORKFLOW, environment=environment)
        return replace(made, **changes)

    def checks(self, **changes: Any) -> dict[str, DoctorLine]:
        """The worst line of each name."""
        found: dict[str, DoctorLine] = {}
        for check in github(self.hub(**changes)):
            if check.name not in found or check.status == "wrong":
                found[check.name] = check
        return found


def ask_sources(repo: Path, env: Mapping[str, str] | None = None) -> Result:
    """What `ralph doctor --json` says of sources, networks and the thinker, without all else that it looks at."""
    with mock.patch.dict(os.environ, env or {}):
        git = Git.open(repo)
        lines = [asdict(line) for line in sources(read(git, read_shared), git, os.environ)]
    return Result(0, json.dumps({"checks": lines}), "")


def statuses(checks: dict[str, DoctorLine]) -> dict[str, str]:
    return {name: check.status for name, check in checks.items() if check.status != "ok"}
