"""What git knows of commands that documentation names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.observers.test_docs import broken, list_broken
from tests.helpers import commit, git, make_repo

TOOL = "[project]\nname = 'tool'\n[project.scripts]\ntool = 'tool:main'\n"


def documented(tmp_path: Path, command: str, before: str, after: str) -> list[str]:
    """Why a command of a README is broken, where the source of its program changed."""
    page = f"# Tool\n\n```console\n$ {command}\n```\n"
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": TOOL, "tool.py": before, "README.md": page})
    commit(repo, {"tool.py": after})
    return [one.why for one in broken(repo)]


def test_an_option_that_the_repositorys_own_program_lost_is_told_with_the_commit(tmp_path):
    why = documented(tmp_path, "uv run tool sub --dry-run=yes x", "add('--dry-run')\n", "add('--check')\n")
    assert why == [f"tool has no option --dry-run since {git(tmp_path / 'repo', 'rev-parse', 'HEAD')[:12]}"]


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        ("tool --dry-run", "add('--dry-run')\n", "def main(dry_run): ...\n"),  # a parser may derive it
        ("tool --dry-run", "x\n", "y\n"),  # it never was there
        ("other --dry-run", "add('--dry-run')\n", "x\n"),
        ("tool run -- --dry-run", "add('--dry-run')\n", "x\n"),
        ("tool | other --dry-run", "add('--dry-run')\n", "x\n"),
    ],
)
def test_an_option_that_may_be_there_or_is_anothers_is_left_alone(tmp_path, command, before, after):
    assert documented(tmp_path, command, before, after) == []


def test_manifests_that_cannot_be_read_name_no_program(tmp_path):
    files = {"pyproject.toml": "[", "package.json": "[]", "README.md": "```\ntool --x-y\n```\n"}
    assert list_broken(make_repo(tmp_path / "repo", files)) == []
