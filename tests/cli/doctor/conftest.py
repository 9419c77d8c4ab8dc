"""The doctor asks each agent that is installed; what the suite's own stand-ins say is the same each time."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from ralph_mission.adapters.agents import clients
from tests.conftest import SANDBOX


@pytest.fixture(scope="package")
def answers() -> dict[tuple[str, ...], Any]:
    """What stand-ins have answered, by the command."""
    return {}


@pytest.fixture(autouse=True)
def stand_ins_are_asked_once(monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[str, ...], Any]) -> None:
    """An agent that a test has scripted is asked as ever."""
    run = clients.run_foreign

    def ask_once(command: tuple[str, ...], **how: Any) -> Any:
        found = shutil.which(command[0]) or ""
        if os.path.dirname(found) != os.path.join(os.environ[SANDBOX], "bin"):
            return run(command, **how)
        if command not in answers:
            answers[command] = run(command, **how)
        return answers[command]

    monkeypatch.setattr(clients, "run_foreign", ask_once)
