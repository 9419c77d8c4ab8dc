"""Fixes of real repositories as claims: what a fix takes away is what its claim quotes."""

from __future__ import annotations

from pathlib import Path

from bench.proof_commits import FixCommit, claim_of
from ralph_mission.adapters.git.git import Git
from tests.helpers import commit, git, make_repo


def test_a_fix_is_a_claim_that_quotes_a_line_of_its_base(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"src/half.py": "def half(n):\n    return n / 3 + 0.0\n"})
    base = git(repo, "rev-parse", "HEAD")
    fix = commit(
        repo, {"src/half.py": "def half(n):\n    return n / 2\n", "tests/test_half.py": "assert half(2) == 1\n"}
    )
    claim, parent = claim_of(Git.open(repo), FixCommit("acme/half", fix))
    assert parent == base and not claim.guessed
    assert [(one.path, one.text) for one in claim.quotes] == [("src/half.py", "    return n / 3 + 0.0")]
