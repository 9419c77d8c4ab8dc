"""The task list as many processes share it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import lock
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from tests.helpers import NOON

THEIRS = (
    '{"id":"task-1737372000-a1b2","title":"Schema","description":"Tables","key":"spec:schema","status":"closed",'
    '"priority":1,"blocked_by":[],"loop_id":"main","created":"2026-01-20T11:20:00+00:00",'
    '"started":"2026-01-20T11:21:00+00:00","closed":"2026-01-20T11:30:00+00:00"}\n'
    '{"id":"task-1737372001-c3d4","title":"API","key":"spec:api","status":"open","priority":2,'
    '"blocked_by":["task-1737372000-a1b2"],"loop_id":"main","created":"2026-01-20T11:20:01+00:00"}\n'
    '{"id":"task-1737372002-e5f6","title":"Page","status":"in_progress","priority":3,'
    '"blocked_by":[],"created":"2026-01-20T11:20:02+00:00"}\n'
    '{"id":"task-1737372003-0789","title":"Docs","status":"failed","priority":9,'
    '"blocked_by":[],"created":"2026-01-20T11:20:03+00:00"}\n'
)


def _tasks(folder: Path, content: str = "") -> Tasks:
    tasks = Tasks(folder, lambda: NOON)
    if content:
        tasks.path.parent.mkdir(parents=True, exist_ok=True)
        tasks.path.write_text(content)
    return tasks


def _lines(tasks: Tasks) -> list[str]:
    return tasks.path.read_text().splitlines()


def _start(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.adapters.storage.loop.worker", str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _rest(worker: subprocess.Popen[str]) -> str:
    """What it says until it ends; the pipe holds all of it, so that nobody waits for us to read."""
    with worker:
        assert worker.stdout is not None
        return worker.stdout.read()


def _done(out: str, word: str) -> list[str]:
    """What a worker said it did, whole lines only."""
    return [line.split()[1] for line in out.splitlines(keepends=True) if line.endswith("\n") and line.startswith(word)]


def test_a_file_of_ralph_orchestrator_is_read_with_its_states_mapped(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path, THEIRS)
    assert [(task.title, task.status, task.priority) for task in tasks.all()] == [
        ("Schema", "done", 1), ("API", "ready", 2), ("Page", "active", 3), ("Docs", "failed", 5),
    ]  # fmt: skip  # a table
    assert tasks.complaints() == ()


def test_what_we_do_not_know_and_do_not_touch_stays_byte_for_byte(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path, THEIRS)
    claimed = tasks.claim("me")
    before, after = THEIRS.splitlines(), _lines(tasks)
    assert claimed.title == "API"
    assert [after[0], *after[2:]] == [before[0], *before[2:]]
    assert json.loads(after[1]) == json.loads(before[1]) | {
        "status": "in_progress", "owner": "me", "started": NOON.isoformat(),
    }  # fmt: skip  # one line of the file


def test_a_new_task_is_one_that_ralph_orchestrator_reads(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path)
    first = tasks.add("Schema", description="Tables")
    tasks.add("API", [first.id], priority=1)
    wanted = {"id": str, "title": str, "status": str, "priority": int, "blocked_by": list, "created": str}
    for line in map(json.loads, _lines(tasks)):
        assert {name: type(line[name]) for name in wanted} == wanted
        assert line["status"] == "open"
        assert line["id"].startswith("task-")


def test_each_life_of_a_task_is_written_in_their_words(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path)
    tasks.add("A", id="a")
    tasks.add("B", ["a"], id="b")
    tasks.claim("me", "a")
    tasks.done("a")
    tasks.fail("b", "no idea how")
    first, second = map(json.loads, _lines(tasks))
    assert (first["status"], first["closed"], first["owner"]) == ("closed", NOON.isoformat(), "me")
    assert (second["status"], second["why"]) == ("failed", "no idea how")


@pytest.mark.parametrize("status", ["pending", "ready", "open"])
def test_our_own_words_for_states_are_read_too(tmp_path: Path, status: str) -> None:
    tasks = _tasks(tmp_path, json.dumps({"id": "a", "title": "A", "status": status, "needs": []}) + "\n")
    assert tasks.claim("me").status == "active"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"id": "x"}', "no title"),
        ('{"id": 5, "title": "X"}', "no id"),
        ('{"id": "x", "title": "X", "status": "paused"}', "no such status"),
        ('{"id": "x", "title": "X", "blocked_by": "a"}', "not a list of ids"),
        ('{"id": "a", "title": "Once more", "status": "closed"}', "a second task 'a'"),
        ("[" * 100_000, "not JSON|too deep|recursion"),
    ],
)
def test_a_line_that_is_no_task_is_told_and_kept(tmp_path: Path, line: str, wrong: str) -> None:
    tasks = _tasks(tmp_path, f'{{"id": "a", "title": "A"}}\n{line}\n')
    (complaint,) = tasks.complaints()
    assert re.search(wrong, complaint)
    tasks.add("B")
    assert _lines(tasks)[1] == line
    assert [task.title for task in tasks.all()] == ["A", "B"]


def test_a_torn_last_line_costs_no_whole_line(tmp_path: Path) -> None:
    whole = THEIRS.splitlines(keepends=True)
    tasks = _tasks(tmp_path, "".join(whole[:3]) + whole[3][:40])
    tasks.add("New", id="new")
    assert [task.title for task in tasks.all()] == ["Schema", "API", "Page", "New"]
    assert _lines(tasks)[3] == whole[3][:40]


def test_every_transition_is_in_the_journal(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path)
    tasks.add("A", id="a")
    tasks.add("B", ["a"], id="b")
    tasks.claim("me", "a")
    tasks.done("a")
    entries = [json.loads(line) for line in tasks.journal.read_text().splitlines()]
    assert [(entry["task"], entry["from"], entry["topic"]) for entry in entries] == [
        ("a", "", "task.ready"), ("b", "", "task.pending"), ("a", "ready", "task.active"),
        ("a", "active", "task.done"), ("b", "pending", "task.ready"),
    ]  # fmt: skip  # a table


def test_a_list_that_does_not_change_is_not_written(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path, THEIRS)
    before = tasks.path.stat().st_ino
    tasks.done("task-1737372000-a1b2")
    assert tasks.release("nobody") == ()
    assert tasks.path.stat().st_ino == before


def test_what_an_ended_session_left_active_is_given_back(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path)
    tasks.add("A", id="a")
    tasks.claim("session 3", "a")
    assert [task.id for task in tasks.release("session 3")] == ["a"]
    assert "owner" not in json.loads(_lines(tasks)[0])
    assert tasks.claim("session 4").id == "a"


def test_a_list_with_an_open_task_may_stay(tmp_path: Path) -> None:
    tasks = Tasks(tmp_path)
    done = tasks.done(tasks.add("first").id)
    last = tasks.add("second", (done.id,))
    assert not tasks.archive(tmp_path / "old.jsonl", keep_open=True) and len(tasks.all()) == 2
    tasks.done(last.id)
    assert tasks.archive(tmp_path / "old.jsonl", keep_open=True) and tasks.all() == ()


def test_an_archived_list_makes_room_for_a_fresh_one(tmp_path: Path) -> None:
    tasks = _tasks(tmp_path, THEIRS)
    assert tasks.archive(tmp_path / "archive" / "tasks.jsonl")
    assert (tasks.all(), tasks.archive(tmp_path / "again")) == ((), False)
    assert (tmp_path / "archive" / "tasks.jsonl").read_text() == THEIRS


def test_only_an_owner_that_is_proven_dead_loses_its_task(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as alive:
        owner = lock.place(alive.pid)
        tasks = _tasks(tmp_path)
        tasks.add("A", id="a")
        tasks.claim(owner, "a")
        with pytest.raises(UserError, match="no task is ready"):
            tasks.claim("me")
        alive.kill()
        alive.wait()
    assert tasks.claim("me").id == "a"


def test_what_proves_nothing_is_not_dead() -> None:
    host, boot, _ = lock.place(1).split(":")
    assert not lock.dead(lock.place(os.getpid()))
    assert not lock.dead(f"elsewhere:{boot}:1")
    assert not lock.dead(lock.place(None))
    assert not any(map(lock.dead, ("", "me", "session 3", host, f"{host}::", f"{host}:{boot}:x")))
    assert lock.dead(f"{host}:an-earlier-boot:1")


def test_a_zombie_works_no_more() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # its end: the process is gone, and nobody has waited for it
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert lock.dead(lock.place(child.pid))
    child.wait()


@pytest.mark.long  # eight processes; the lock has a test of its own
@pytest.mark.parametrize("each", [25, pytest.param(200, marks=pytest.mark.crash)])  # the whole takes long
def test_eight_processes_add_and_claim_tasks_and_none_is_lost_or_claimed_twice(tmp_path: Path, each: int) -> None:
    workers = [_start(tmp_path, f"worker-{number}", each) for number in range(8)]
    said = [_rest(worker) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    added = [id for out in said for id in _done(out, "added")]
    claimed = [id for out in said for id in _done(out, "claimed")]
    tasks = _tasks(tmp_path)
    assert len(set(added)) == 8 * each
    assert {task.id for task in tasks.all()} == set(added)
    assert Counter(claimed) == Counter(added)
    assert {task.status for task in tasks.all()} == {"active"}
    assert tasks.complaints() == ()


@pytest.mark.parametrize("each", [120, pytest.param(200, marks=pytest.mark.crash)])  # the whole takes long
@pytest.mark.long  # four seconds
def test_a_third_of_them_killed_loses_nothing_that_was_said_and_gives_nothing_twice(tmp_path: Path, each: int) -> None:
    # Those who are killed have more to do than they could do before.
    workers = [_start(tmp_path, f"worker-{number}", 100 * each if number < 3 else each) for number in range(8)]
    said = [_beginning(worker) if number < 3 else "" for number, worker in enumerate(workers)]
    said = [before + _rest(worker) for before, worker in zip(said, workers, strict=True)]
    assert [worker.returncode for worker in workers] == [-signal.SIGKILL] * 3 + [0] * 5
    tasks = _tasks(tmp_path)
    held = {task.id: task.owner for task in tasks.all()}
    for number, out in enumerate(said):
        assert set(_done(out, "added")) <= set(held)
        assert {held[id] for id in _done(out, "claimed")} <= {f"worker-{number}"}
    certain = sum(len(_done(out, "added")) for out in said)
    assert 5 * each + 3 * 20 <= certain <= len(held) <= certain + 3  # a killed one may have had no time to say its last
    assert max(Counter(id for out in said for id in _done(out, "claimed")).values()) == 1
    assert tasks.complaints() == ()


def _beginning(doomed: subprocess.Popen[str]) -> str:
    """What it says before it is killed in the middle of its work, wherever that is."""
    assert doomed.stdout is not None
    said = "".join(doomed.stdout.readline() for _ in range(40))
    doomed.send_signal(signal.SIGKILL)
    return said


@pytest.mark.parametrize("end", ["\n", ""])
def test_one_more_leaves_every_line_as_it_was(tmp_path, end):
    tasks = _tasks(tmp_path, THEIRS.rstrip("\n") + end)
    tasks.add("One more")
    assert tasks.path.read_text().startswith(THEIRS) and len(tasks.all()) == 5
    assert tasks.path.read_text().count("\n") == 5


def test_a_list_that_is_a_link_is_replaced_and_what_it_names_stays(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(THEIRS)
    tasks = _tasks(tmp_path / "here")
    tasks.path.parent.mkdir(parents=True)
    tasks.path.symlink_to(elsewhere)
    tasks.add("One more")
    assert elsewhere.read_text() == THEIRS and not tasks.path.is_symlink() and len(tasks.all()) == 5


def test_a_line_that_a_kill_could_cut_is_not_added_but_written_with_all_others(tmp_path):
    tasks = _tasks(tmp_path, THEIRS)
    there = tasks.path.stat().st_ino
    tasks.add("Small")
    assert tasks.path.stat().st_ino == there
    tasks.add("Large", description="x" * 5_000)
    assert tasks.path.stat().st_ino != there and len(tasks.all()) == 6


def test_a_disk_that_is_full_adds_nothing_and_says_so(tmp_path, monkeypatch):
    tasks = _tasks(tmp_path, THEIRS)
    real = os.write
    monkeypatch.setattr(os, "write", lambda where, content: real(where, content[:10]))
    with pytest.raises(OSError, match="No space left"):
        tasks.add("One more")
    assert tasks.path.read_text() == THEIRS
