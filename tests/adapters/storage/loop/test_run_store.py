"""The desk: what a run leaves to the next, and how it is used."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.storage.loop import events, inbox, state
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.memories import Memories
from ralph_mission.adapters.storage.loop.run_store import Habits
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.loop.model.order import RunEnding, RunResult
from ralph_mission.loop.model.state import HatOutput, LoopEvent
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STORIES, Make, begun

# --- going on, and starting anew ------------------------------------------------------


def test_a_run_goes_on_only_when_asked(desk_at: Make) -> None:
    left = begun(desk_at())
    with (desk := desk_at()).exclusive(FREE):
        assert desk.resumed(FREE) is None
    with (desk := desk_at(Habits(go_on=True))).exclusive(FREE):
        assert desk.resumed(FREE) == left


def test_a_new_prompt_starts_a_new_run(desk_at: Make) -> None:
    begun(desk_at())
    with (desk := desk_at(Habits(go_on=True))).exclusive(FREE):
        assert desk.resumed(replace(FREE, objective="something else")) is None


def test_who_continues_after_failures_gets_another_chance(desk_at: Make, root: Path) -> None:
    left = begun(desk_at())
    state.save(root, replace(left, failures=3, redispatches=3, idle=8))
    with (desk := desk_at(Habits(go_on=True))).exclusive(FREE):
        assert desk.resumed(FREE) == left


def test_skipped_stories_are_tried_again_when_nothing_else_is_left(desk_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    left = begun(desk_at(), STORIES)
    for skipped, expected in (({"US-1"}, {"US-1"}), ({"US-1", "US-2"}, set())):
        state.save(root, replace(left, skipped=frozenset(skipped)))
        with (desk := desk_at(Habits(go_on=True))).exclusive(STORIES):
            again = desk.resumed(STORIES)
        assert again is not None
        assert again.skipped == expected


def test_what_a_former_run_was_asked_and_said_does_not_reach_the_next(desk_at: Make, root: Path) -> None:
    begun(desk_at())
    home = root / ".ralph"
    inbox.write(home, "stop")
    events.say_event(home, LoopEvent("LOOP_COMPLETE"))
    with (desk := desk_at()).exclusive(FREE):
        desk.open(FREE, NOON)
        assert (desk.signal(), desk.said()) == ("", ())


def test_a_stale_signal_does_not_end_a_run_that_goes_on(desk_at: Make, root: Path) -> None:
    begun(desk_at())
    inbox.write(root / ".ralph", "cancel")
    with (desk := desk_at(Habits(go_on=True))).exclusive(FREE):
        assert desk.resumed(FREE)
        assert desk.signal() == ""


def test_a_new_run_finds_memories_and_nothing_else_of_the_former_one(desk_at: Make, root: Path) -> None:
    home = root / ".ralph"
    (desk := desk_at()).board()
    Memories(home).add("tests need a server")
    with desk.exclusive(FREE):
        first = desk.open(FREE, NOON)
        Tasks(home).add("of the first run")
        (home / "agent/scratchpad.md").write_text("half way")
        (home / "loop/calls").mkdir()
        for name in ("calls.json", "calls/US-001.json"):
            (home / "loop" / name).write_text("{}")
        desk.record(LoopEvent("build.complete"))
        desk.keep(replace(first, iteration=1), HatOutput("ralph", 1))
    with (desk := desk_at()).exclusive(FREE):
        second = desk.open(FREE, NOON)
        board = desk.board()
    assert second.run_id != first.run_id
    assert "tests need a server" in board.memories
    assert (board.scratchpad, board.tasks) == ("", ())
    kept = {file.name for file in (home / "loop/runs" / first.run_id).iterdir()}
    assert {"scratchpad.md", "tasks.jsonl", "events.jsonl", "state.json", "handoff.json", "session-0001.json"} <= kept
    assert {"calls", "calls.json"} <= kept and not list((home / "loop").glob("calls*"))


def test_tasks_that_a_person_added_between_two_runs_are_the_next_ones(desk_at: Make, root: Path) -> None:
    begun(desk_at())
    Tasks(root / ".ralph").add("for the next run")
    later = (root / state.STATE).stat().st_mtime_ns + 1_000_000_000
    os.utime(root / ".ralph/agent/tasks.jsonl", ns=(later, later))
    with (desk := desk_at()).exclusive(FREE):
        desk.open(FREE, NOON)
        assert [task.title for task in desk.board().tasks] == ["for the next run"]


def test_guidance_that_waits_reaches_the_next_run(desk_at: Make, root: Path) -> None:
    begun(desk_at())
    Guide(root / ".ralph").say("use the blue one")
    with (desk := desk_at()).exclusive(FREE):
        desk.open(FREE, NOON)
        assert desk.heard()
        desk.acknowledge(desk.board().guidance)
        assert not desk.heard()


def test_a_broken_state_is_put_aside_and_said_and_a_new_run_starts(desk_at: Make, root: Path) -> None:
    begun(desk_at())
    (root / state.STATE).write_text("{")
    desk = desk_at(Habits(go_on=True))
    with desk.exclusive(FREE):
        assert desk.resumed(FREE) is None
        assert desk.open(FREE, NOON).iteration == 0
    assert "state.json.broken-1" in desk.complaints[0]


def test_a_cancelled_run_is_not_continued(desk_at: Make, root: Path) -> None:
    desk = desk_at()
    left = begun(desk)
    desk.close(RunResult(RunEnding("cancel"), left))
    with (again := desk_at(Habits(go_on=True))).exclusive(FREE):
        assert again.resumed(FREE) is None
    assert (root / state.RUNS / left.run_id / "state.json").is_file()


# --- settings -------------------------------------------------------------------------


def test_without_tasks_none_keep_a_loop_running(desk_at: Make, root: Path) -> None:
    Tasks(root / ".ralph").add("open")
    assert desk_at(Habits(tasks=False)).board().tasks == ()
    assert len(desk_at().board().tasks) == 1


def test_the_scratchpad_may_be_elsewhere(desk_at: Make, root: Path) -> None:
    (root / "notes.md").write_text("half way")
    assert desk_at(Habits(scratchpad="notes.md")).board().scratchpad == "half way"
    assert desk_at().board().scratchpad == ""


def test_between_two_issues_the_scratchpad_and_the_tasks_are_put_away(desk_at: Make, root: Path) -> None:
    home = root / ".ralph"
    desk = desk_at()
    with desk.exclusive(FREE):
        now = desk.open(FREE, NOON)
        for number in (1, 2):
            Tasks(home).add("of this issue")
            (home / "agent/scratchpad.md").write_text(f"issue {number}")
            desk.keep(replace(now, iteration=number), HatOutput("ralph", number))
            desk.tidy()
            board = desk.board()
            assert (board.scratchpad, board.tasks, desk.restore()) == ("", (), ())
    kept = {file.name for file in (home / "loop/runs" / now.run_id).iterdir()}
    assert {"scratchpad.md", "scratchpad-2.md", "tasks-0001.jsonl", "tasks-0002.jsonl"} <= kept


def test_ralphs_folder_is_kept_out_of_git(desk_at: Make, root: Path) -> None:
    begun(desk_at())
    assert "/.ralph/" in (root / ".git/info/exclude").read_text().splitlines()
