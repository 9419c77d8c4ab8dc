"""The desk beside oh-my-claudecode: its files are read, mirrored where they are shared, and its modes respected."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import legacy
from ralph_mission.adapters.storage.loop.run_store import Habits
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import HatOutput
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STORIES, Make, begun


def omc(root: Path, name: str, document: object) -> Path:
    """A file of the other tool."""
    path = root / ".omc/state" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_stories_found_in_omc_are_mirrored_there(desk_at: Make, root: Path) -> None:
    (root / ".omc").mkdir()
    (root / ".omc/prd.json").write_text(json.dumps(PRD))
    desk = desk_at()
    with desk.exclusive(STORIES):
        now = desk.open(STORIES, NOON)
        desk.board()
        desk.brief("do it")
        desk.keep(replace(now, iteration=1), HatOutput("ralph", 1))
        marker = json.loads((root / legacy.FOLDER / legacy.MARKER).read_text())
        assert (marker["active"], marker["iteration"]) == (True, 1)
        assert (root / legacy.FOLDER / legacy.PROMPT).read_text() == "do it"
    document = json.loads((root / legacy.FOLDER / legacy.HANDOFF).read_text())
    assert (document["original_prompt"], document["prd"]["nextStoryId"]) == ("build it", "US-1")
    assert json.loads((root / legacy.FOLDER / legacy.MARKER).read_text())["active"] is False
    assert not (root / legacy.FOLDER / legacy.PROMPT).exists()


def test_stories_found_elsewhere_leave_omc_alone(desk_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    begun(desk_at(), STORIES)
    assert not (root / ".omc").exists()


def test_a_handoff_of_others_is_gone_on_from(desk_at: Make, root: Path) -> None:
    omc(
        root,
        legacy.HANDOFF,
        {
            "version": "1.0",
            "iteration": 7,
            "original_prompt": "build it",
            "lastError": {"iteration": 7, "message": "a time-out"},
        },
    )
    with (desk := desk_at(Habits(go_on=True))).exclusive(FREE):
        found = desk.resumed(FREE)
    assert found is not None
    assert (found.iteration, found.feedback) == (7, "a time-out")


def test_a_handoff_that_is_complete_or_our_own_is_not_gone_on_from(desk_at: Make, root: Path) -> None:
    for more in ({"completed": True}, {"by": legacy.BY}):
        omc(root, legacy.HANDOFF, {"iteration": 7, "original_prompt": "build it", **more})
        with (desk := desk_at(Habits(go_on=True))).exclusive(FREE):
            assert desk.resumed(FREE) is None


@pytest.mark.parametrize("mode", ["autopilot", "ultrapilot", "swarm", "pipeline", "ralph", "ralph-fresh"])
def test_an_active_mode_of_another_tool_holds_us_up_and_is_named(desk_at: Make, root: Path, mode: str) -> None:
    path = omc(root, f"{mode}-state.json", {"active": True})
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    with pytest.raises(UserError) as caught, desk_at().exclusive(FREE):
        pass
    assert caught.value.what == f"{mode} is active in this checkout, says .omc/state/{mode}-state.json"
    assert "cancel" in caught.value.next_step


@pytest.mark.parametrize(
    ("document", "age"),
    [
        ({"active": False}, 0),
        ({"active": True}, 61),
        ({"active": "yes"}, 0),
        ([], 0),
        ({"active": True, "by": legacy.BY}, 0),
    ],
)
def test_a_mode_that_is_over_or_crashed_an_hour_ago_holds_nobody_up(
    desk_at: Make, root: Path, document: object, age: int
) -> None:
    path = omc(root, "autopilot-state.json", document)
    moment = (NOON - timedelta(minutes=age)).timestamp()
    os.utime(path, (moment, moment))
    begun(desk_at())
