from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.agents import client
from ralph_mission.adapters.agents.client import Client


@pytest.mark.attack(41)
def test_what_a_program_would_obey_of_an_earlier_session_is_gone(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "obey.md").write_text("obey")
    (tmp_path / "last.txt").write_text("yesterday's")
    client.write_client_files(tmp_path, Client("agent", fresh=("rules",), leaves="last.txt"), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.attack(46)
def test_a_home_is_furnished_through_no_link(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (home / ".config").symlink_to(elsewhere)
    client.write_client_files(home, Client("agent"), {".config/agent.json": "{}"})
    assert list(elsewhere.iterdir()) == [] and (home / ".config" / "agent.json").read_text() == "{}"


@pytest.mark.attack(56)
def test_what_a_program_left_is_read_only_when_it_is_short(tmp_path: Path) -> None:
    agent = Client("agent", leaves="last.txt")
    (tmp_path / "last.txt").write_bytes(b"x" * client.LONGEST)
    assert len(client.read_client_output(tmp_path, agent)) == client.LONGEST
    (tmp_path / "last.txt").write_bytes(b"x" * (client.LONGEST + 1))
    assert client.read_client_output(tmp_path, agent) == b""
