"""What is laid out for a package manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.gateways.git import Git
from ralph_mission.gateways.packages import rooms
from ralph_mission.gateways.packages.model import Project
from ralph_mission.trouble import Trouble
from tests.helpers import make_repo

PROJECT = Project("web/uv.lock", "uv", "PyPI", (), ("web/pyproject.toml",))


def laid_out(tmp_path: Path) -> rooms.Contents:
    files = {"web/uv.lock": "version = 1\n", "web/pyproject.toml": "", "web/uv.toml": "#" * 200}
    git = Git.open(make_repo(tmp_path / "repo", files))
    return rooms.contents(git, {entry.path: entry for entry in git.listing("HEAD")}, PROJECT)


def test_a_file_that_is_too_large_to_be_read_is_laid_out_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "LARGEST", 199)
    with pytest.raises(Trouble, match=r"web/uv\.toml is too large"):
        laid_out(tmp_path)
    monkeypatch.setattr(rooms, "LARGEST", 200)
    assert len(laid_out(tmp_path.joinpath("again"))["web/uv.toml"]) == 200
