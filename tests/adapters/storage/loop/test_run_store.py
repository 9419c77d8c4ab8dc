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
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunEnding, RunResult
from ralph_mission.loop.model.state import CheckoutState, HatOutput, LoopEvent
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STANDING, STORIES, Make, begun

# --- going on, and starting anew ------------------------------------------------------


def test_a_run_goes_on_only_when_asked(store_at: Make) -> None:
    left = begun(store_at())
    with (store := store_at()).exclusive(FREE):
        assert store.resumed(FREE) is None
    with (store := store_at(go_on=True)).exclusive(FREE):
        assert store.resumed(FREE) == left


def test_a_new_prompt_starts_a_new_run(store_at: Make) -> None:
    begun(store_at())
    with (store := store_at(go_on=True)).exclusive(FREE):
        assert store.resumed(replace(FREE, objective="something else")) is None


def test_who_continues_after_failures_gets_another_chance(store_at: Make, root: Path) -> None:
    left = begun(store_at())
    state.save(root, replace(left, failures=3, redispatches=3, idle=8))
    with (store := store_at(go_on=True)).exclusive(FREE):
        assert store.resumed(FREE) == left


def test_skipped_stories_are_tried_again_when_nothing_else_is_left(store_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    left = begun(store_at(), STORIES)
    for skipped, expected in (({"US-1"}, {"US-1"}), ({"US-1", "US-2"}, set())):
        state.save(root, replace(left, skipped=frozenset(skipped)))
        with (store := store_at(go_on=True)).exclusive(STORIES):
            again = store.resumed(STORIES)
        assert again is not None
        assert again.skipped == expected


def test_what_a_former_run_was_asked_and_said_does_not_reach_the_next(store_at: Make, root: Path) -> None:
    begun(store_at())
    home = root / ".ralph"
    inbox.write(home, "stop")
    events.append_event(home, "LOOP_COMPLETE")
    with (store := store_at()).exclusive(FREE):
        store.open(FREE, NOON)
        assert (store.signal(), store.read_events()) == ("", ())


def test_a_stale_signal_does_not_end_a_run_that_goes_on(store_at: Make, root: Path) -> None:
    begun(store_at())
    inbox.write(root / ".ralph", "cancel")
    with (store := store_at(go_on=True)).exclusive(FREE):
        assert store.resumed(FREE)
        assert store.signal() == ""


def test_a_new_run_finds_memories_and_nothing_else_of_the_former_one(store_at: Make, root: Path) -> None:
    home = root / ".ralph"
    (store := store_at()).snapshot()
    Memories(home).add("tests need a server")
    with store.exclusive(FREE):
        first = store.open(FREE, NOON)
        Tasks(home).add("of the first run")
        (home / "agent/scratchpad.md").write_text("half way")
        (home / "loop/calls").mkdir()
        for name in ("calls.json", "calls/US-001.json"):
            (home / "loop" / name).write_text("{}")
        store.record(LoopEvent("build.complete"))
        store.keep(replace(first, iteration=1), HatOutput("ralph", 1))
    with (store := store_at()).exclusive(FREE):
        second = store.open(FREE, NOON)
        snapshot = store.snapshot()
    assert second.run_id != first.run_id
    assert "tests need a server" in snapshot.memories
    assert (snapshot.scratchpad, snapshot.tasks) == ("", ())
    kept = {file.name for file in (home / "loop/runs" / first.run_id).iterdir()}
    assert {"scratchpad.md", "tasks.jsonl", "events.jsonl", "state.json", "handoff.json", "session-0001.json"} <= kept
    assert {"calls", "calls.json"} <= kept and not list((home / "loop").glob("calls*"))


def test_tasks_that_a_person_added_between_two_runs_are_the_next_ones(store_at: Make, root: Path) -> None:
    begun(store_at())
    Tasks(root / ".ralph").add("for the next run")
    later = (root / state.STATE).stat().st_mtime_ns + 1_000_000_000
    os.utime(root / ".ralph/agent/tasks.jsonl", ns=(later, later))
    with (store := store_at()).exclusive(FREE):
        store.open(FREE, NOON)
        assert [task.title for task in store.snapshot().tasks] == ["for the next run"]


def test_guidance_that_waits_reaches_the_next_run(store_at: Make, root: Path) -> None:
    begun(store_at())
    Guide(root / ".ralph").say("use the blue one")
    with (store := store_at()).exclusive(FREE):
        store.open(FREE, NOON)
        assert store.heard()
        store.acknowledge(store.snapshot().guidance)
        assert not store.heard()


def test_a_broken_state_is_put_aside_and_said_and_a_new_run_starts(store_at: Make, root: Path) -> None:
    begun(store_at())
    (root / state.STATE).write_text("{")
    store = store_at(go_on=True)
    with store.exclusive(FREE):
        assert store.resumed(FREE) is None
        assert store.open(FREE, NOON).iteration == 0
    assert "state.json.broken-1" in store.complaints[0]


def test_a_cancelled_run_is_not_continued(store_at: Make, root: Path) -> None:
    store = store_at()
    left = begun(store)
    store.close(RunResult(RunEnding("cancel"), left))
    with (again := store_at(go_on=True)).exclusive(FREE):
        assert again.resumed(FREE) is None
    assert (root / state.RUNS / left.run_id / "state.json").is_file()


# --- settings -------------------------------------------------------------------------


def test_between_two_issues_the_scratchpad_and_the_tasks_are_put_away(store_at: Make, root: Path) -> None:
    home = root / ".ralph"
    store = store_at()
    with store.exclusive(FREE):
        now = store.open(FREE, NOON)
        for number in (1, 2):
            Tasks(home).done(Tasks(home).add("of this issue").id)
            (home / "agent/scratchpad.md").write_text(f"issue {number}")
            store.keep(replace(now, iteration=number), HatOutput("ralph", number))
            store.tidy()
            snapshot = store.snapshot()
            assert (snapshot.scratchpad, snapshot.tasks, store.restore()) == ("", (), ())
    kept = {file.name for file in (home / "loop/runs" / now.run_id).iterdir()}
    assert {"scratchpad.md", "scratchpad-2.md", "tasks-0001.jsonl", "tasks-0002.jsonl"} <= kept


def test_ralphs_folder_is_kept_out_of_git(store_at: Make, root: Path) -> None:
    begun(store_at())
    assert "/.ralph/" in (root / ".git/info/exclude").read_text().splitlines()


# --- What a session destroyed, or left when it died, is as before it; and what git is asked. ---

# --- what a session destroyed ---------------------------------------------------------


def test_a_deleted_ralph_folder_comes_back_with_what_the_running_loop_holds(store_at: Make, root: Path) -> None:
    home = root / ".ralph"
    store = store_at()
    with store.exclusive(FREE):
        now = store.open(FREE, NOON)
        Memories(home).add("never use port 80")
        Tasks(home).add("first")
        Guide(home).say("be quick")
        store.record(LoopEvent("plan.complete"))
        before = store.snapshot()
        store.keep(now, None)
        shutil.rmtree(home)
        mended = {change.path for change in store.restore()}
        after = store.snapshot()
        store.keep(replace(now, iteration=1), HatOutput("ralph", 1))
    assert {".ralph/agent/memories.md", ".ralph/agent/tasks.jsonl", ".ralph/events.jsonl"} <= mended
    assert (after.memories, after.tasks, after.guidance) == (before.memories, before.tasks, before.guidance)
    found = state.load(root)
    assert found is not None
    assert found.iteration == 1


def test_a_deleted_list_of_stories_comes_back(store_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    store = store_at()
    with store.exclusive(STORIES):
        store.open(STORIES, NOON)
        store.snapshot()
        (root / "prd.json").unlink()
        assert [change.path for change in store.restore()] == ["prd.json"]
    assert json.loads((root / "prd.json").read_text()) == PRD


def test_a_signal_that_was_heard_holds_even_if_its_file_is_deleted(store_at: Make, root: Path) -> None:
    store = store_at()
    with store.exclusive(FREE):
        store.open(FREE, NOON)
        inbox.write(root / ".ralph", "stop")
        assert store.signal() == "stop"
        shutil.rmtree(root / ".ralph")
        assert store.signal() == "stop"


def test_a_task_that_a_session_left_active_is_given_back(store_at: Make, root: Path) -> None:
    store = store_at(owner="here:boot:1")
    with store.exclusive(FREE):
        store.open(FREE, NOON)
        Tasks(root / ".ralph").add("half done")
        Tasks(root / ".ralph").claim("here:boot:1")
        store.restore()
        assert [task.status for task in store.snapshot().tasks] == ["ready"]


def test_what_cannot_be_read_is_as_it_was_with_a_complaint(root: Path) -> None:
    answers, clock = [STANDING, CheckoutState(readable=False)], [NOON]
    store = FileRunStore(root, root / ".git", lambda: answers.pop(0), lambda: clock[0])
    Memories(root / ".ralph").add("known")
    with store.exclusive(FREE):
        store.open(FREE, NOON)
        before = store.snapshot()
        (root / ".ralph/agent/memories.md").unlink()
        (root / ".ralph/agent/memories.md").mkdir()
        clock[0] += timedelta(minutes=1)
        after = store.snapshot()
    assert (after.memories, after.tree) == (before.memories, STANDING)
    assert len(after.complaints) == 2


# --- what a session that died left, and what git is asked -----------------------------


@pytest.mark.parametrize("folder", ["", ".ralph", ".omc"])
def test_what_a_session_that_died_claimed_is_as_before_it(root: Path, folder: str) -> None:
    def make(go_on: bool = False) -> FileRunStore:
        return FileRunStore(root, root / ".git", lambda: STANDING, lambda: NOON, go_on=go_on, clone=clone)

    (clone := root.parent / "clone").mkdir()
    (lists := root / folder).mkdir(exist_ok=True)
    (lists / "prd.json").write_text(json.dumps(PRD))
    (lists / "progress.txt").write_text("# Progress\n")
    with (store := make()).exclusive(STORIES):
        begun = store.open(STORIES, NOON)
        store.snapshot()
        before = (lists / "progress.txt").read_text()
        store.keep(replace(begun, mark="abc"), None)
    (clone / folder / "prd.json").write_text(json.dumps(PRD).replace("false", "true"))
    (clone / folder / "progress.txt").write_text(before + "I did all of it\n")
    with (store := make(go_on=True)).exclusive(STORIES):
        assert store.resumed(STORIES) is not None
        assert {change.path for change in store.put_back(lambda _: False)} == {"prd.json", "progress.txt"}
        snapshot = store.snapshot()
        assert snapshot.prd and not any(story.passes for story in snapshot.prd.stories)
        assert store.restore() == () and (lists / "progress.txt").read_text() == before
    assert "true" in (root / state.RUNS / begun.run_id / "cut-off-prd.json").read_text()


def test_git_is_asked_once_for_each_session(store_at: Make) -> None:
    asked: list[int] = []

    def tree() -> CheckoutState:
        asked.append(1)
        return STANDING

    with (store := store_at(tree=tree)).exclusive(FREE):
        now = store.open(FREE, NOON)
        store.snapshot()
        for number in (1, 2, 3):
            store.snapshot()
            store.keep(replace(now, iteration=number), HatOutput("ralph", number))
    assert len(asked) == 3


def test_sessions_are_told_where_stories_notes_and_the_log_are(root: Path) -> None:
    (root / "plans").mkdir()
    (root / "plans/shop.json").write_text(json.dumps(PRD))
    store = FileRunStore(root, root / ".git", lambda: STANDING, lambda: NOON,
                prd=root / "plans/shop.json")  # fmt: skip  # one call
    with store.exclusive(STORIES):
        paths = store.snapshot().paths
    assert (paths.prd, paths.progress) == ("plans/shop.json", "plans/progress.txt")


# --- The desk beside oh-my-claudecode: its files are read, mirrored where they are shared, and its modes respected. ---


def omc(root: Path, name: str, document: object) -> Path:
    """A file of the other tool."""
    path = root / ".omc/state" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_stories_found_in_omc_are_mirrored_there(store_at: Make, root: Path) -> None:
    (root / ".omc").mkdir()
    (root / ".omc/prd.json").write_text(json.dumps(PRD))
    store = store_at()
    with store.exclusive(STORIES):
        now = store.open(STORIES, NOON)
        store.snapshot()
        store.brief("do it")
        store.keep(replace(now, iteration=1), HatOutput("ralph", 1))
        marker = json.loads((root / lock.FOLDER / lock.MARKER).read_text())
        assert (marker["active"], marker["iteration"]) == (True, 1)
        assert (root / lock.FOLDER / lock.PROMPT).read_text() == "do it"
    document = json.loads((root / lock.FOLDER / lock.HANDOFF).read_text())
    assert (document["original_prompt"], document["prd"]["nextStoryId"]) == ("build it", "US-1")
    assert json.loads((root / lock.FOLDER / lock.MARKER).read_text())["active"] is False
    assert not (root / lock.FOLDER / lock.PROMPT).exists()


def test_stories_found_elsewhere_leave_omc_alone(store_at: Make, root: Path) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    begun(store_at(), STORIES)
    assert not (root / ".omc").exists()


def test_a_handoff_of_others_is_gone_on_from(store_at: Make, root: Path) -> None:
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
    with (store := store_at(go_on=True)).exclusive(FREE):
        found = store.resumed(FREE)
    assert found is not None
    assert (found.iteration, found.feedback) == (7, "a time-out")


def test_a_handoff_that_is_complete_or_our_own_is_not_gone_on_from(store_at: Make, root: Path) -> None:
    for more in ({"completed": True}, {"by": lock.BY}):
        omc(root, lock.HANDOFF, {"iteration": 7, "original_prompt": "build it", **more})
        with (store := store_at(go_on=True)).exclusive(FREE):
            assert store.resumed(FREE) is None


@pytest.mark.parametrize("mode", ["autopilot", "ultrapilot", "swarm", "pipeline", "ralph", "ralph-fresh"])
def test_an_active_mode_of_another_tool_holds_us_up_and_is_named(store_at: Make, root: Path, mode: str) -> None:
    path = omc(root, f"{mode}-state.json", {"active": True})
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    with pytest.raises(UserError) as caught, store_at().exclusive(FREE):
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
    store_at: Make, root: Path, document: object, age: int
) -> None:
    path = omc(root, "autopilot-state.json", document)
    moment = (NOON - timedelta(minutes=age)).timestamp()
    os.utime(path, (moment, moment))
    begun(store_at())
