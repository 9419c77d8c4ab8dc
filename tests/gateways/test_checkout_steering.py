"""What configures agents and came with a session goes with it, also where git was told not to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.gateways.checkout import Checkout
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.steering import unsteered
from ralph_mission.safety.paths import configures_agents
from tests.helpers import commit, git, make_repo

FILES = {".gitignore": "*.local.json\n.mcp.json\n.cursor\n.env\n", ".claude/settings.json": "{}", "AGENTS.md": "Old.\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


@pytest.fixture
def checkout(repo: Path) -> Checkout:
    return Checkout(Git.open(repo), (), 0.0, unsteered=True)


def test_what_git_ignores_is_gone_after_a_session_and_reported(repo, checkout, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/rules").write_text("keep")
    mark = checkout.mark()
    (repo / ".claude/settings.local.json").write_text("{}")
    (repo / ".mcp.json").write_text("{}")
    (repo / ".cursor").symlink_to(tmp_path / "theirs")
    (repo / "note.local.json").write_text("{}")
    told = {change.path for change in checkout.changed(mark).foreign if change.reverted}
    assert told == {".claude/settings.local.json", ".mcp.json", ".cursor"}
    assert sorted(path.name for path in (repo / ".claude").iterdir()) == ["settings.json"]
    assert not (repo / ".mcp.json").exists() and not (repo / ".cursor").is_symlink()
    assert (tmp_path / "theirs/rules").read_text() == "keep" and (repo / "note.local.json").exists()


def test_what_a_session_that_was_killed_left_is_gone_before_the_next(repo, checkout):
    (repo / ".mcp.json").write_text("{}")
    checkout.mark()
    assert not (repo / ".mcp.json").exists() and (repo / ".claude/settings.json").exists()


def test_a_checkout_of_a_person_keeps_what_is_ignored(repo):
    (repo / ".mcp.json").write_text("{}")
    mine = Checkout(Git.open(repo), (), 0.0)
    mine.changed(mine.mark())
    assert (repo / ".mcp.json").exists()


def test_a_commit_has_the_settings_of_another_one_and_its_own_guides(repo):
    base = git(repo, "rev-parse", "HEAD")
    head = commit(repo, {".claude/settings.json": "evil", ".codex/config.toml": "x", "AGENTS.md": "New.\n", "a": "1"})
    found = Git.open(repo)
    calm = unsteered(found, base, head, configures_agents)
    names = found.text("diff-tree", "-r", "--name-only", base, calm).split()
    assert names == ["AGENTS.md", "a"]
    assert unsteered(found, base, base) == base
