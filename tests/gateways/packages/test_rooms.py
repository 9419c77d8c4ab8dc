"""What is laid out for a package manager."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.gateways.git import Git
from ralph_mission.gateways.packages import rooms
from ralph_mission.gateways.packages.handed import files_for_manager
from ralph_mission.gateways.packages.model import Project
from ralph_mission.trouble import UserError
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
    with pytest.raises(UserError, match=r"web/uv\.toml is too large"):
        laid_out(tmp_path)
    monkeypatch.setattr(rooms, "LARGEST", 200)
    assert len(laid_out(tmp_path.joinpath("again"))["web/uv.toml"]) == 200


def astray(files: dict[str, bytes], base: str = "https://registry.example") -> str:
    return rooms.astray(files, base, (), time.monotonic() + 20)


@pytest.mark.attack(55)
def test_a_registry_at_a_private_place_is_told_before_anything_is_asked() -> None:
    assert "not a public place" in astray({}, "http://127.0.0.1:9/")


@pytest.mark.attack(60)
def test_what_is_not_handed_on_is_told_before_anything_is_asked() -> None:
    assert "registry of its own" in astray({".npmrc": b"@a:registry=https://a.example/\n"})


def test_files_that_name_too_many_places_are_asked_about_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "PLACES", 1)
    assert "more than 1 places" in astray({"yarn.lock": b'  resolved "https://one.example/a.tgz"\n'})


def test_a_step_lasts_no_longer_than_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def run(*_: Any, timeout: float, **__: Any) -> Any:
        given.append(timeout)
        return SimpleNamespace(code=0)

    monkeypatch.setattr(rooms, "run_foreign", run)
    room = rooms.Room(tmp_path, "uv.lock", tmp_path, "uv", {}, seconds=5)
    room.ask(["lock"])
    rooms.Room(tmp_path, "uv.lock", tmp_path, "uv", {}, seconds=5, until=time.monotonic() - 1).ask(["lock"])
    assert given == [5, 0]


@pytest.mark.attack(60)
def test_a_file_that_is_no_text_is_handed_to_nobody() -> None:
    with pytest.raises(UserError):
        files_for_manager({"yarn.lock": b"\xff\xfe\n"})
