"""What a session destroyed, or left when it died, is as before it; and what git is asked."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import inbox, state
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.memories import Memories
from ralph_mission.adapters.storage.loop.run_store import FileRunStore, Habits
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.loop.model.state import CheckoutState, HatOutput, LoopEvent
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STANDING, STORIES, USUAL, Make

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
