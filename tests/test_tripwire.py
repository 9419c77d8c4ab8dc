"""The tripwire is itself under test: a suite that can reach the world proves little."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REAL_HOME, Tripwire
from tests.helpers import git, make_repo


def test_connecting_beyond_loopback_raises() -> None:
    with socket.socket() as plug, pytest.raises(Tripwire):
        plug.connect(("192.0.2.1", 80))


def test_looking_up_a_name_raises() -> None:
    with pytest.raises(Tripwire):
        socket.getaddrinfo("example.org", 443)


def test_loopback_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def test_an_unscripted_agent_raises() -> None:
    with pytest.raises(Tripwire):
        subprocess.run(["claude", "-p", "hello"], check=False)


def test_a_scripted_agent_runs(tmp_path: Path) -> None:
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\necho scripted\n")
    agent.chmod(0o755)
    assert subprocess.check_output([str(agent)], text=True) == "scripted\n"


def test_an_agent_started_by_a_child_fails() -> None:
    assert subprocess.run(["sh", "-c", "claude -p hello"], check=False, capture_output=True).returncode == 97


def test_home_is_a_folder_of_the_session() -> None:
    assert Path.home() != REAL_HOME
    assert not list(Path.home().glob(".git*"))


def test_writing_below_the_real_home_raises() -> None:
    with pytest.raises(Tripwire):
        (REAL_HOME / ".ralph-was-here").write_text("")


def test_git_has_no_identity_to_borrow(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with pytest.raises(AssertionError, match=r"[Aa]uthor identity|no email"):
        git(repo, "commit", "--allow-empty", "--message", "whose?")


def test_nothing_of_ours_is_set() -> None:
    assert not [name for name in os.environ if name.startswith(("RALPH_", "GITHUB_"))]
