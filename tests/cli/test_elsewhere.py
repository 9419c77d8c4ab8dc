"""A clone of a repository whose memory is on GitHub does not begin another one, and says where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import cli_here, git, make_repo


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_laptops_clone_says_that_memory_is_on_the_server(tmp_path: Path, command: str) -> None:
    repo = make_repo(tmp_path / "laptop")
    git(repo, "update-ref", "refs/remotes/origin/ralph-memory", "HEAD")
    told = cli_here(command, repo=repo)
    assert told.code == 2
    assert "kind: github" in told.err


def test_in_a_workflow_the_workspace_does_not_say_where_memory_is(tmp_path: Path) -> None:
    """What stands there may be the head of anyone's pull."""
    from ralph_mission.cli.gate import Plain, memory_place

    repo = make_repo(tmp_path / "workspace", {"ralph.yml": "memory: {branch: decoy}\n"})
    assert memory_place(Plain(str(repo))) == {"branch": "decoy", "path": "memory/ralph-log.md"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GITHUB_ACTIONS", "true")
        assert memory_place(Plain(str(repo))) == {}
