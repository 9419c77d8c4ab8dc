"""The log of a run between two processes: what was done to it while no loop ran is told, and not believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.storage.loop import state
from tests.cli.loop_world import World, until, world

pytestmark = pytest.mark.long  # takes ten seconds or more

HATS = """
hats:
  builder: {triggers: [loop.start, build.again], publishes: [build.again]}
"""
STEPS = """
if call == 3:
    time.sleep(600)
change()
print(f'<event topic="build.again">step {call}</event>' if call < 4 else '<event topic="LOOP_COMPLETE">done</event>')
"""
LIMIT = ("--max-iterations", "4")


@pytest.fixture
def killed(tmp_path: Path) -> World:
    """A checkout in whose third session the loop was killed: two events stand in the log."""
    here = world(tmp_path, {"ralph.yml": HATS})
    process = here.start("build it", *LIMIT, *here.agent(STEPS))
    until(lambda: len(here.calls) == 3)
    here.end(process)
    assert payloads(here) == ["step 1", "step 2"]
    return here


def log(here: World) -> Path:
    return here.repo / ".ralph/events.jsonl"


def payloads(here: World) -> list[str]:
    return [json.loads(line)["payload"] for line in log(here).read_text().splitlines()]


def edited(here: World, old: str, new: str) -> None:
    """What somebody does to the log while no loop runs."""
    log(here).write_text(log(here).read_text().replace(old, new))


def checked(here: World) -> tuple[int, dict[str, Any]]:
    """What the doctor says, and of the log."""
    told = here.ralph("doctor", "--json")
    return told.code, next(check for check in told.json["checks"] if check["name"] == "event log")


@pytest.mark.parametrize(("step", "left"), [(1, ["step 1 "]), (2, ["step 1"])])
def test_an_edit_before_the_run_goes_on_is_told_and_not_believed(killed: World, step: int, left: list[str]) -> None:
    edited(killed, f"step {step}", f"step {step} ")
    done = killed.run("build it", "--continue", *LIMIT, *killed.agent(STEPS))
    assert done.code == 0, done.err
    (complaint,) = done.json["complaints"]
    assert ".ralph/events.jsonl line 2 " in complaint
    assert f"note: {complaint}" in done.err
    (aside,) = log(killed).parent.glob("events.jsonl.*.aside")
    assert aside.name in complaint
    assert json.loads(aside.read_text())["payload"].startswith("step 2")
    assert payloads(killed) == [*left, "done"]
    assert checked(killed)[1]["status"] == "ok"


def test_a_log_that_was_cut_short_is_told(killed: World) -> None:
    log(killed).write_text(log(killed).read_text().splitlines(keepends=True)[0])
    done = killed.run("build it", "--continue", *LIMIT, *killed.agent(STEPS))
    assert done.json["complaints"] == [".ralph/events.jsonl has 1 lines and should have 2"]
    assert payloads(killed) == ["step 1", "done"]


def test_nobody_is_suspected_of_a_log_that_is_as_it_was_left(killed: World) -> None:
    done = killed.run("build it", "--continue", *LIMIT, *killed.agent(STEPS))
    assert done.json["complaints"] == []
    assert payloads(killed) == ["step 1", "step 2", "done"]
    assert not list(log(killed).parent.glob("*.aside"))


def test_a_new_run_says_so_too_and_keeps_the_edited_log_with_the_run_it_is_of(killed: World) -> None:
    edited(killed, "step 1", "step 7")
    run_id = json.loads((killed.repo / state.STATE).read_text())["state"]["run_id"]
    done = killed.run("build it", "--allow-dirty", *LIMIT, *killed.agent("change()\nprint('LOOP_COMPLETE')"))
    assert ["line 2" in complaint for complaint in done.json["complaints"]] == [True]
    assert "step 7" in (killed.repo / state.RUNS / run_id / "events.jsonl").read_text()
    assert not log(killed).exists()


def test_the_doctor_looks_at_the_log(killed: World) -> None:
    assert checked(killed)[1]["found"] == "2 events, none edited"
    edited(killed, "step 1", "step 7")
    code, found = checked(killed)
    assert (code, found["status"]) == (1, "wrong")
    assert "line 2 does not follow from the line before" in found["found"]


def test_another_tools_log_is_none_of_the_doctors_business(tmp_path: Path) -> None:
    here = world(tmp_path)
    log(here).parent.mkdir()
    log(here).write_text('{"topic": "task.start", "payload": "x"}\n')
    assert "event log" not in here.ralph("doctor").out
