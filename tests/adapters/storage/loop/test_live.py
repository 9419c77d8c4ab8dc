"""What runs here, as files: who it is, what happened, what is asked of it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.storage.loop import live
from ralph_mission.adapters.storage.loop.live import LiveRun
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunEvent
from tests.cli.loop_world import until
from tests.helpers import make_repo

SECRET = "violet-Kettle-41-harbour"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a": "a"}) / ".ralph"


def test_nothing_is_there_before_something_happens(home: Path) -> None:
    run = LiveRun(home, "run")
    assert (run.current_order(), home.exists()) == ("", False)
    run.end(0)
    assert not home.exists()


def test_how_it_stands_is_what_was_told_last(home: Path) -> None:
    run = LiveRun(home, "work", ("work", "--once"))
    run.tell(RunEvent("note", "looks for issues"))
    run.tell(RunEvent("session", "[1/9] builder", 1, "builder", "r1", 0, (0, 3)))
    run.tell(RunEvent("text", "hello", 1))
    run.tell(RunEvent("usage", tokens=10, usd=0.5))
    (stands,) = live.list_runs(home)
    assert (stands.id, stands.state, stands.doing, stands.stories) == ("work-1", "running", "[1/9] builder", (0, 3))
    assert (stands.command, stands.tokens, stands.usd) == ("work --once", 10, 0.5)
    run.tell(RunEvent("output", "done", 1, "builder", "r1", 1, (1, 3), 12, 0.6))  # the engine's own count
    run.tell(RunEvent("ended", "stop: asked to stop", run="r1", sessions=1, code=1))
    run.end()
    (stands,) = live.list_runs(home)
    assert (stands.sessions, stands.stories, stands.state, stands.code) == (1, (1, 3), "ended", 1)
    assert [event.kind for event in live.follow_events(home, stands, follow=True)][-1] == "ended"


def test_no_secret_is_written(home: Path) -> None:
    run = LiveRun(home, "run", ("run", SECRET), (SECRET,))
    run.tell(RunEvent("text", f"it is {SECRET}", 1), f"prompt {SECRET}")
    files = [path.read_text() for path in run.folder.iterdir()]
    assert len(files) == 4 and not any(SECRET in text for text in files)


def test_a_session_that_never_stops_talking_fills_no_disk(home: Path) -> None:
    run = LiveRun(home, "run")
    with mock.patch.object(live, "MOST", 1_000):
        for _ in range(50):
            run.tell(RunEvent("text", "x" * 100, 1))
        run.tell(RunEvent("text", "hello", 2))
    size = sum(path.stat().st_size for path in run.folder.iterdir())
    texts = [event.text for event in live.read_events(home, run.name)[0]]
    assert texts[-2:] == ["(the rest of this session is not recorded)", "hello"] and len(texts) == 12 and size < 10_000


def test_a_process_that_is_another_one_by_now_was_killed(home: Path) -> None:
    run = LiveRun(home, "run")
    run.tell(RunEvent("note", "begins"))
    record = live.list_runs(home)[0]
    assert record.state == "running"
    assert replace(record, started="1").state == "killed"  # somebody else has its number
    assert replace(record, owner=record.owner.replace(str(os.getpid()), "4194305"), started="").state == "killed"


def test_an_order_is_heard_and_a_stop_holds(home: Path) -> None:
    run = LiveRun(home, "run")
    run.tell(RunEvent("note", "begins"))
    live.give_order(home, run.record, "pause")
    assert run.current_order() == "pause"
    live.give_order(home, run.record, "")
    assert run.current_order() == ""
    live.give_order(home, run.record, "stop")
    assert run.current_order() == "stop"
    live.give_order(home, run.record, "pause")
    assert live.read_order(run.folder) == "stop"
    live.give_order(home, run.record, "")
    assert run.current_order() == "stop"
    (run.folder / live.ORDER).write_text("format the disk")
    assert live.read_order(run.folder) == ""


def test_a_run_is_named_by_id_kind_or_loop(home: Path) -> None:
    for kind, loop in (("run", "r1"), ("work", "r2")):
        run = LiveRun(home, kind)
        run.tell(RunEvent("began", "begins", run=loop))
        run.end(0)
    assert [one.id for name in ("run-1", "run", "r2") for one in live.find_runs(home, name)] == [
        "run-1",
        "run-1",
        "work-2",
    ]
    with pytest.raises(UserError, match="no run 'run-9'"):
        live.find_runs(home, "run-9")


def test_a_command_of_the_persons_is_started_when_a_loop_ends(home: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    for command in (f"sh -c 'printf %s \"$1\" > {told}.new && mv {told}.new {told}' sh", "/not/there", "'"):
        run = LiveRun(home, "run", notify=command)
        run.tell(RunEvent("note", "begins"))
        assert not told.exists() or told.read_text() == "run-1 in repo: complete: 2 sessions"
        run.tell(RunEvent("ended", "complete: 2 sessions"))
        until(told.exists)
    assert told.read_text() == "run-1 in repo: complete: 2 sessions"


def test_only_the_last_runs_are_kept(home: Path) -> None:
    for _ in range(live.ENDED_RUNS + 3):
        run = LiveRun(home, "run")
        run.tell(RunEvent("note", "begins"))
        run.end(0)
    ids = [one.id for one in live.list_runs(home)]
    assert len(ids) == live.ENDED_RUNS + 1 and ids[-1] == f"run-{live.ENDED_RUNS + 3}"


def test_what_is_broken_is_passed_over(home: Path) -> None:
    run = LiveRun(home, "run")
    run.tell(RunEvent("note", "begins"))
    with (run.folder / live.EVENTS).open("a") as file:
        file.write('no json\n{"kind": "note", "strange": 1}\n{"kind": "note", "text": "last"}\n{"kind": "no')
    assert [event.text for event in live.read_events(home, "run-1")[0]] == ["begins", "last"]
    (home / live.FOLDER / "run-2").mkdir()
    (home / live.FOLDER / "run-2" / live.RECORD).write_text(json.dumps({"id": "run-2", "kind": "run", "what": 1}))
    assert [one.id for one in live.list_runs(home)] == ["run-1"]
