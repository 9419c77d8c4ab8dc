"""What one guard of an agent's home and of what is believed of its words alone holds back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.agents import client, reading
from ralph_mission.agents.client import Client
from ralph_mission.agents.reading import Said
from ralph_mission.loop.model import Usage


@pytest.mark.attack(41)
def test_what_a_program_would_obey_of_an_earlier_session_is_gone(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "obey.md").write_text("obey")
    (tmp_path / "last.txt").write_text("yesterday's")
    client.furnish(tmp_path, Client("agent", fresh=("rules",), leaves="last.txt"), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.attack(46)
def test_a_home_is_furnished_through_no_link(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (home / ".config").symlink_to(elsewhere)
    client.furnish(home, Client("agent"), {".config/agent.json": "{}"})
    assert list(elsewhere.iterdir()) == [] and (home / ".config" / "agent.json").read_text() == "{}"


@pytest.mark.attack(56)
def test_what_a_program_left_is_read_only_when_it_is_short(tmp_path: Path) -> None:
    agent = Client("agent", leaves="last.txt")
    (tmp_path / "last.txt").write_bytes(b"x" * client.LONGEST)
    assert len(client.left(tmp_path, agent)) == client.LONGEST
    (tmp_path / "last.txt").write_bytes(b"x" * (client.LONGEST + 1))
    assert client.left(tmp_path, agent) == b""


def test_a_program_that_called_a_tool_was_not_turned_away_for_nothing() -> None:
    """Its model had an answer: what that cost is not known, so it is not taken for none."""
    assert reading._turned_away("rate_limit", Usage(), Said("")).cost_usd == 0.0
    assert reading._turned_away("rate_limit", Usage(), Said("", calls=("bash: ls",))).cost_usd is None
