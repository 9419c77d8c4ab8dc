"""What one guard of a package manager's room alone holds back."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.gateways.packages import keeping, rooms
from ralph_mission.gateways.packages.handed import addresses, handed
from ralph_mission.trouble import Trouble


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
    with pytest.raises(Trouble):
        handed({"yarn.lock": b"\xff\xfe\n"})


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("yarn.lock", b'resolved "https\\u003a//registry.example/a.tgz"\n'),
        ("a.json", b'{"url": "https://registry.example/%2525252525252541"}'),
    ],
    ids=["an escape", "quoted too often"],
)
@pytest.mark.attack(60)
def test_an_address_that_cannot_be_read_for_sure_is_refused(path: str, content: bytes) -> None:
    with pytest.raises(Trouble):
        addresses({path: content})


@pytest.mark.parametrize("planted", [pytest.param("[" * 200_000, id="nested"), "{", "5", "null", '{"asked": 5}'])
def test_a_planted_answer_is_none(tmp_path: Path, planted: str) -> None:
    shelf, kept = keeping.Shelf(tmp_path), keeping.Kept({"a": 1}, datetime(2026, 5, 4, tzinfo=UTC))
    shelf.put("which?", kept)
    assert shelf.get("which?") == kept
    next(tmp_path.glob("*.json")).write_text(planted)
    assert shelf.get("which?") is None


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/cache"])
def test_no_answer_on_the_shelf_is_read_by_a_link(tmp_path: Path, link: str) -> None:
    shelf = keeping.Shelf(tmp_path / ".ralph/cache")
    shelf.put("which?", keeping.Kept({}, datetime(2026, 5, 4, tzinfo=UTC)))
    (tmp_path / link).rename(tmp_path / "theirs")
    (tmp_path / link).symlink_to(tmp_path / "theirs")
    assert shelf.get("which?") is None


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_shelf_leads_to_nothing_that_is_removed_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "KEPT", 1)
    (theirs := tmp_path / "theirs/packages").mkdir(parents=True)
    for name in ("a.json", "b.json"):
        (theirs / name).write_text("{}")
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph/cache").symlink_to(tmp_path / "theirs")
    shelf = keeping.Shelf(tmp_path / ".ralph/cache/packages")
    shelf.put("which?", keeping.Kept({}, datetime(2026, 5, 4, tzinfo=UTC)))
    shelf.tidy()
    assert sorted(os.listdir(theirs)) == ["a.json", "b.json"]
    (tmp_path / ".ralph/cache").unlink()
    (tmp_path / "theirs").rename(tmp_path / ".ralph/cache")
    shelf.tidy()
    assert len(os.listdir(tmp_path / ".ralph/cache/packages")) == 1
