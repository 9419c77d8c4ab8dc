"""The desk: what a run leaves to the next, and how it is used."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import events, inbox, lock, state
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.notes import Memories
from ralph_mission.adapters.storage.loop.run_store import FileRunStore, Habits
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.order import RunEnding, RunResult
from ralph_mission.loop.model.state import CheckoutState, HatOutput, LoopEvent
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STANDING, STORIES, USUAL, Make, begun

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


# --- What a session destroyed, or left when it died, is as before it; and what git is asked. ---

# --- what a session destroyed ---------------------------------------------------------


def test_a_deleted_ralph_folder_comes_back_with_what_the_running_loop_holds(desk_at: Make, root: Path) -> None:
    home = root / ".ralph"
    desk = desk_at()
    with desk.exclusive(FREE):
        now = desk.open(FREE, NOON)
        Memories(home).add("never use port 80")
        Tasks(home).add("first")
        Guide(home).say("be quick")
        desk.record(LoopEvent("plan.complete"))
        before = desk.board()
        desk.keep(now, None)
        shutil.rmtree(home)
        mended = {change.path for change in desk.restore()}
        after = desk.board()
        desk.keep(replace(now, iteration=1), HatOutput("ralph", 1))
    assert {".ralph/agent/memories.md", ".ralph/agent/tasks.jsonl", ".ralph/events.jsonl"} <= mended
    assert (after.memories, after.tasks, after.guidance) == (before.memories, before.tasks, before.guidance)
    found = state.load(root)
    assert found is not None
    assert found.iteration == 1


def test_a_deleted_list_of_stories_comes_back(desk_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    desk = desk_at()
    with desk.exclusive(STORIES):
        desk.open(STORIES, NOON)
        desk.board()
        (root / "prd.json").unlink()
        assert [change.path for change in desk.restore()] == ["prd.json"]
    assert json.loads((root / "prd.json").read_text()) == PRD


def test_a_signal_that_was_heard_holds_even_if_its_file_is_deleted(desk_at: Make, root: Path) -> None:
    desk = desk_at()
    with desk.exclusive(FREE):
        desk.open(FREE, NOON)
        inbox.write(root / ".ralph", "stop")
        assert desk.signal() == "stop"
        shutil.rmtree(root / ".ralph")
        assert desk.signal() == "stop"


def test_a_task_that_a_session_left_active_is_given_back(desk_at: Make, root: Path) -> None:
    desk = desk_at(owner="here:boot:1")
    with desk.exclusive(FREE):
        desk.open(FREE, NOON)
        Tasks(root / ".ralph").add("half done")
        Tasks(root / ".ralph").claim("here:boot:1")
        desk.restore()
        assert [task.status for task in desk.board().tasks] == ["ready"]


def test_what_cannot_be_read_is_as_it_was_with_a_complaint(root: Path) -> None:
    answers, clock = [STANDING, CheckoutState(readable=False)], [NOON]
    desk = FileRunStore(root, root / ".git", lambda: answers.pop(0), lambda: clock[0])
    Memories(root / ".ralph").add("known")
    with desk.exclusive(FREE):
        desk.open(FREE, NOON)
        before = desk.board()
        (root / ".ralph/agent/memories.md").unlink()
        (root / ".ralph/agent/memories.md").mkdir()
        clock[0] += timedelta(minutes=1)
        after = desk.board()
    assert (after.memories, after.tree) == (before.memories, STANDING)
    assert len(after.complaints) == 2


# --- what a session that died left, and what git is asked -----------------------------


@pytest.mark.parametrize("folder", ["", ".ralph", ".omc"])
def test_what_a_session_that_died_claimed_is_as_before_it(root: Path, folder: str) -> None:
    def make(habits: Habits = USUAL) -> FileRunStore:
        return FileRunStore(root, root / ".git", lambda: STANDING, lambda: NOON, habits, clone=clone)

    (clone := root.parent / "clone").mkdir()
    (lists := root / folder).mkdir(exist_ok=True)
    (lists / "prd.json").write_text(json.dumps(PRD))
    (lists / "progress.txt").write_text("# Progress\n")
    with (desk := make()).exclusive(STORIES):
        begun = desk.open(STORIES, NOON)
        desk.board()
        before = (lists / "progress.txt").read_text()
        desk.keep(replace(begun, mark="abc"), None)
    (clone / folder / "prd.json").write_text(json.dumps(PRD).replace("false", "true"))
    (clone / folder / "progress.txt").write_text(before + "I did all of it\n")
    with (desk := make(Habits(go_on=True))).exclusive(STORIES):
        assert desk.resumed(STORIES) is not None
        assert {change.path for change in desk.put_back(lambda _: False)} == {"prd.json", "progress.txt"}
        board = desk.board()
        assert board.prd and not any(story.passes for story in board.prd.stories)
        assert desk.restore() == () and (lists / "progress.txt").read_text() == before
    assert "true" in (root / state.RUNS / begun.run_id / "cut-off-prd.json").read_text()


def test_git_is_asked_once_for_each_session(desk_at: Make) -> None:
    asked: list[int] = []

    def tree() -> CheckoutState:
        asked.append(1)
        return STANDING

    with (desk := desk_at(tree=tree)).exclusive(FREE):
        now = desk.open(FREE, NOON)
        desk.board()
        for number in (1, 2, 3):
            desk.board()
            desk.keep(replace(now, iteration=number), HatOutput("ralph", number))
    assert len(asked) == 3


def test_sessions_are_told_where_stories_notes_and_the_log_are(root: Path) -> None:
    (root / "plans").mkdir()
    (root / "plans/shop.json").write_text(json.dumps(PRD))
    (root / "pad.md").write_text("x")
    desk = FileRunStore(root, root / ".git", lambda: STANDING, lambda: NOON, Habits(scratchpad="pad.md"),
                prd=root / "plans/shop.json")  # fmt: skip  # one call
    with desk.exclusive(STORIES):
        paths = desk.board().paths
    assert (paths.prd, paths.progress, paths.scratchpad) == ("plans/shop.json", "plans/progress.txt", "pad.md")


# --- The desk beside oh-my-claudecode: its files are read, mirrored where they are shared, and its modes respected. ---


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
        marker = json.loads((root / lock.FOLDER / lock.MARKER).read_text())
        assert (marker["active"], marker["iteration"]) == (True, 1)
        assert (root / lock.FOLDER / lock.PROMPT).read_text() == "do it"
    document = json.loads((root / lock.FOLDER / lock.HANDOFF).read_text())
    assert (document["original_prompt"], document["prd"]["nextStoryId"]) == ("build it", "US-1")
    assert json.loads((root / lock.FOLDER / lock.MARKER).read_text())["active"] is False
    assert not (root / lock.FOLDER / lock.PROMPT).exists()


def test_stories_found_elsewhere_leave_omc_alone(desk_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    begun(desk_at(), STORIES)
    assert not (root / ".omc").exists()


def test_a_handoff_of_others_is_gone_on_from(desk_at: Make, root: Path) -> None:
    omc(
        root,
        lock.HANDOFF,
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
    for more in ({"completed": True}, {"by": lock.BY}):
        omc(root, lock.HANDOFF, {"iteration": 7, "original_prompt": "build it", **more})
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
        ({"active": True, "by": lock.BY}, 0),
    ],
)
def test_a_mode_that_is_over_or_crashed_an_hour_ago_holds_nobody_up(
    desk_at: Make, root: Path, document: object, age: int
) -> None:
    path = omc(root, "autopilot-state.json", document)
    moment = (NOON - timedelta(minutes=age)).timestamp()
    os.utime(path, (moment, moment))
    begun(desk_at())
