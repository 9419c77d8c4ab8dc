"""Repositories that `ralph init` is run in, and what it says of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers import Result, git, make_repo

LOOP = ".github/workflows/ralph-loop.yml"
SHA = "0123456789abcdef0123456789abcdef01234567"
PINNED = f"mara/ralph_mission@{SHA}"
TOOLS = Path(sys.executable).parent


def hosted(path: Path, url: str = "https://github.com/mara/harbour.git") -> Path:
    repo = make_repo(path)
    git(repo, "remote", "add", "origin", url)
    return repo


def states(told: Result) -> dict[str, str]:
    return {Path(file["path"]).name: file["state"] for file in told.json["files"]}


def workflow(repo: Path) -> dict:
    return yaml.load((repo / LOOP).read_text(), yaml.BaseLoader)


class Installed:
    """A distribution that pip wrote this of."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        """What pip writes down of where it took it from."""
        assert name == "direct_url.json"
        return self.text


def install(monkeypatch: pytest.MonkeyPatch, told: str | None) -> None:
    """As if pip had said `told` of this installation."""
    monkeypatch.setattr("ralph_mission.cli.setup.files.distribution", lambda _: Installed(told))
