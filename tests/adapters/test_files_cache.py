from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.packages.registries import AnswerCache, CachedAnswer

PLANTED = [pytest.param("[" * 200_000, id="nested"), "{", "null"]


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_answer_is_none(tmp_path: Path, planted: str) -> None:
    cache = FileCache(tmp_path)
    cache.put("x", [1])
    assert cache.get("x") == [1]
    (tmp_path / "x.json").write_text(planted)
    assert cache.get("x") is None


@pytest.mark.parametrize("planted", [*PLANTED, "5", '{"asked": 5}'])
def test_a_planted_answer_of_a_registry_is_none(tmp_path: Path, planted: str) -> None:
    cache, kept = AnswerCache(tmp_path), CachedAnswer({"a": 1}, datetime(2026, 5, 4, tzinfo=UTC))
    cache.put("which?", kept)
    assert cache.get("which?") == kept
    next(tmp_path.glob("*.json")).write_text(planted)
    assert cache.get("which?") is None


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/cache", ".ralph/cache/x.json"])
def test_no_answer_is_read_by_a_link(tmp_path: Path, link: str) -> None:
    cache = FileCache(tmp_path / ".ralph/cache")
    cache.put("x", [])
    assert cache.get("x") == []
    (tmp_path / link).rename(tmp_path / "theirs")
    (tmp_path / link).symlink_to(tmp_path / "theirs")
    assert cache.get("x") is None


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_cache_leads_to_nothing_that_is_removed_or_written(tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs/lint").mkdir(parents=True)
    for name in ("a.json", "b.json"):
        (theirs / name).write_text("{}")
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph/cache").symlink_to(tmp_path / "theirs")
    cache = FileCache(tmp_path / ".ralph/cache/lint", most=1)
    cache.put("x", [])
    cache.tidy()
    assert sorted(os.listdir(theirs)) == ["a.json", "b.json"]
    (tmp_path / ".ralph/cache").unlink()
    (tmp_path / "theirs").rename(tmp_path / ".ralph/cache")
    cache.tidy()
    assert len(os.listdir(tmp_path / ".ralph/cache/lint")) == 1
