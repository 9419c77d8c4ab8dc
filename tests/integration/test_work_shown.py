"""The whole of it on the fake GitHub, with a program that asks a model on loopback: what the issue agent promises."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.app.issues import LoopHands, WorkOptions
from tests.crash.dying import dying_after
from tests.crash.witness import duplicates, watched
from tests.fakes.model.script import say
from tests.fakes.model.server import KEY, ScriptedModel
from tests.integration.at_work import READY, WORKING, Place, on_hub

AGENT = """
import json, os, pathlib, sys, urllib.request
prompt = sys.stdin.read()
address, key = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
tools = [{"name": "Write", "description": "Write a file", "input_schema": {"type": "object"}}]
body = {"model": "m", "max_tokens": 100, "tools": tools, "messages": [{"role": "user", "content": prompt}]}
asked = urllib.request.Request(address + "/v1/messages", json.dumps(body).encode(),
    {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"})
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
    said = json.load(answer)["content"][0]["text"]
pathlib.Path("tide.txt").write_text("high and low\\n")
os.system("git add -A && git -c user.name=a -c user.email=a@example.org commit -qm tides")
print(said)
"""


class Killed(BaseException):
    """The end of the process, while the agent works."""


def hands(place: Place, folder: Path) -> LoopHands:
    """The loop of `ralph run` with that program."""
    (folder / "agent.py").write_text(AGENT)
    house = place.house()
    assert house.git.work_tree is not None
    command = shlex.join((sys.executable, str(folder / "agent.py")))
    return LoopHands(WorkOptions(house.git.work_tree, command=command), house, PlainRunProgress(io.StringIO(), ()))


def to(model: ScriptedModel):
    """An environment in which agents ask this model."""
    return mock.patch.dict(os.environ, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url})


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    with on_hub(tmp_path / "hub") as found:
        yield found


@pytest.mark.long  # ten seconds
def test_two_ready_issues_oldest_first_each_once_through_two_crashes_and_then_no_request_to_the_model(place, tmp_path):
    assert place.hub is not None
    first, second = place.ready("Add a tide table"), place.ready("Add a moon table")
    with ScriptedModel([say("Done.\n\nLOOP_COMPLETE")] * 3) as model, to(model), watched(place.hub) as witness:
        working = hands(place, tmp_path)
        with mock.patch.object(LoopHands, "work", side_effect=Killed), pytest.raises(Killed):
            place.work(working)
        assert (place.labels(first), place.labels(second)) == ({WORKING}, {READY})

        report = place.work(working)
        assert (report.settled, report.outcome, report.record.issue) == (((first, "waiting"),), "done", first)
        assert (place.labels(first), len(model.turns)) == (set(), 1)

        with dying_after(place.hub, "POST /pulls"):
            place.work(working)
        assert (place.labels(second), len(model.turns)) == ({WORKING}, 2)

        report = place.work(working)
        assert (report.settled, report.outcome) == (((second, "done"),), "idle")
        asked = len(model.journal)
        assert [place.work(working).outcome for _ in range(2)] == ["idle", "idle"]
        assert (len(model.journal), model.refused) == (asked, [])
    assert [pull.head for pull in place.pulls()] == [
        f"ralph/issue-{first}-add-a-tide-table",
        f"ralph/issue-{second}-add-a-moon-table",
    ]
    assert place.labels(first) == place.labels(second) == set()
    assert (len(place.comments(first)), len(place.comments(second))) == (4, 2)
    assert (duplicates(place.hub), witness.wrong) == ([], [])
    assert "Add a tide table" in model.turns[0].text and "Add a moon table" in model.turns[1].text
