from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.agents.client import CommandAgent
from ralph_mission.loop.model.state import AgentTurn, Hat, Session


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "tree"
    place.mkdir()
    return place


@pytest.fixture
def agent(tmp_path: Path, tree: Path):
    def made(command, **options) -> CommandAgent:
        return CommandAgent(command, tree, tmp_path / "home", **options)

    return made


@pytest.fixture
def play(agent, tmp_path: Path):
    def played(
        command, *, prompt="the prompt", seconds=600.0, stopped=lambda: False, hat="builder", **options
    ) -> AgentTurn:
        worn = hat if isinstance(hat, Hat) else Hat(hat)
        session = Session(worn, 7, prompt, str(tmp_path / "run"), "some-model", seconds, 11)
        return agent(command, **options).play(session, stopped)

    return played
