"""The fake GitHub: rulesets, as they are told, and as they stop pushes and merges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import commit, git


@pytest.fixture
def clone(fake: FakeGitHub, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(fake.bare), "clone")
    commit(tmp_path / "clone", {"direct.txt": "d\n"})
    return tmp_path / "clone"


# --- told


# --- pushing


def test_push_past_rules_is_gh013_with_each_violation(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.ruleset("main", required_reviews=0, required_checks=("ci", "lint"), required_signatures=True)
    before = fake.branch("main")
    told = api.git(clone, "push", "URL", "HEAD:refs/heads/main")
    assert told.returncode and fake.branch("main") == before
    for words in (
        "GH013: Repository rule violations found for refs/heads/main.",
        "(push declined due to repository",
        "- Changes must be made through a pull request.",
        "- 2 of 2 required status checks are expected.",
        "- Commits must have verified signatures.",
        "Found 1 violation:",
    ):
        assert words in told.stderr
    assert api.git(clone, "push", "URL", "HEAD:refs/heads/topic").returncode == 0


# --- merging
