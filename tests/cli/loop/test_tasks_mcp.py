"""`ralph agent mcp` as a command; what it serves is tested with a real client in tests/servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import cli, cli_here, make_repo


def test_wrong_usage_ends_with_64() -> None:
    result = cli_here("agent", "mcp", "--port", "1")
    assert (result.code, result.out) == (64, "")
    assert "--port" in result.err


def test_outside_of_a_repository_it_says_where_to_go(tmp_path: Path) -> None:
    result = cli_here("agent", "mcp", cwd=tmp_path)
    assert result.code == 64
    assert "not in the work tree of a git repository" in result.err


@pytest.mark.long  # processes; the server is tested in this one
def test_a_client_that_leaves_at_once_is_no_failure(tmp_path: Path) -> None:
    result = cli("agent", "mcp", repo=make_repo(tmp_path / "repo"))
    assert (result.code, result.out, result.err) == (0, "", "")


def test_help_is_there_without_the_protocol(tmp_path: Path) -> None:
    assert "Usage: ralph agent mcp" in cli_here("agent", "mcp", "--help").out
