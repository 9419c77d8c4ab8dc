from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.packages import registries


@pytest.mark.parametrize("planted", [pytest.param("[" * 200_000, id="nested"), "{", "5", "null", '{"asked": 5}'])
def test_a_planted_answer_is_none(tmp_path: Path, planted: str) -> None:
    shelf, kept = registries.AnswerCache(tmp_path), registries.CachedAnswer({"a": 1}, datetime(2026, 5, 4, tzinfo=UTC))
    shelf.put("which?", kept)
    assert shelf.get("which?") == kept
    next(tmp_path.glob("*.json")).write_text(planted)
    assert shelf.get("which?") is None


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/cache"])
def test_no_answer_on_the_shelf_is_read_by_a_link(tmp_path: Path, link: str) -> None:
    shelf = registries.AnswerCache(tmp_path / ".ralph/cache")
    shelf.put("which?", registries.CachedAnswer({}, datetime(2026, 5, 4, tzinfo=UTC)))
    (tmp_path / link).rename(tmp_path / "theirs")
    (tmp_path / link).symlink_to(tmp_path / "theirs")
    assert shelf.get("which?") is None


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_shelf_leads_to_nothing_that_is_removed_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registries, "KEPT", 1)
    (theirs := tmp_path / "theirs/packages").mkdir(parents=True)
    for name in ("a.json", "b.json"):
        (theirs / name).write_text("{}")
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph/cache").symlink_to(tmp_path / "theirs")
    shelf = registries.AnswerCache(tmp_path / ".ralph/cache/packages")
    shelf.put("which?", registries.CachedAnswer({}, datetime(2026, 5, 4, tzinfo=UTC)))
    shelf.tidy()
    assert sorted(os.listdir(theirs)) == ["a.json", "b.json"]
    (tmp_path / ".ralph/cache").unlink()
    (tmp_path / "theirs").rename(tmp_path / ".ralph/cache")
    shelf.tidy()
    assert len(os.listdir(tmp_path / ".ralph/cache/packages")) == 1
