"""The log of a run, and what agents say to it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import events as said
from ralph_mission.adapters.storage.loop.events import EventLog
from ralph_mission.loop.model.state import LoopEvent, ReviewIssue
from tests.helpers import NOON

ISSUE = ReviewIssue("off by one", "tide.py", 12, "bug", "major")


def _log(folder: Path, *topics: str) -> EventLog:
    log = EventLog(folder, lambda: NOON)
    for number, topic in enumerate(topics, 1):
        log.record(LoopEvent(topic, f"payload {number}", hat="builder", iteration=number, at=NOON))
    return log


def _lines(log: EventLog) -> list[str]:
    return log.path.read_text().splitlines(keepends=True)


def _topics(folder: Path) -> list[str]:
    events = map(said.parse, (folder / "events.jsonl").read_bytes().splitlines())
    return [event.topic for event in events if event]


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    log = _log(tmp_path)
    events = (
        LoopEvent("review.verdict", "two lines\nof it ü", (ISSUE,), "reviewer", 4, NOON),
        LoopEvent("loop.start", at=NOON + timedelta(hours=1)),
    )
    for event in events:
        log.record(event)
    (first, _) = map(json.loads, _lines(log))
    assert (first["payload"], first["issues"][0]["message"]) == ("two lines\nof it ü", "off by one")
    assert [said.parse(line.encode()) for line in _lines(log)] == [replace(event, issues=()) for event in events]


def test_a_line_has_the_fields_of_ralph_orchestrator(tmp_path: Path) -> None:
    (line,) = map(json.loads, _lines(_log(tmp_path, "build.complete")))
    wanted = {
        "ts": NOON.isoformat(),
        "iteration": 1,
        "hat": "builder",
        "topic": "build.complete",
        "payload": "payload 1",
    }
    assert {name: line[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('{"ts":"2026-05-04T12:00:00Z","iteration":1,"hat":"loop","topic":"task.start","triggered":"planner","payload":"x"}',
         LoopEvent("task.start", "x", (), "loop", 1, NOON)),
        ('{"topic":"build.task","payload":{"file":"a","line":2},"ts":"2026-05-04T12:00:00+00:00"}',
         LoopEvent("build.task", '{"file": "a", "line": 2}', at=NOON)),
        ('{"topic":"build.done","payload":null,"ts":"yesterday"}', LoopEvent("build.done")),
        ('{"topic":"build.done"}', LoopEvent("build.done")),
        ('{"topic":""}', None),
        ('{"payload":"x"}', None),
        ('["topic"]', None),
        ('{"topic":', None),
        ("[" * 100_000, None),
    ],
)  # fmt: skip  # a table
def test_a_payload_is_a_text_or_an_object(line: str, event: LoopEvent | None) -> None:
    assert said.parse(line.encode()) == event


@pytest.mark.parametrize("how", ["deleted", "cut short", "edited", "added to", "folder"])
def test_what_a_session_does_to_the_log_is_undone_and_told(tmp_path: Path, how: str) -> None:
    log = _log(tmp_path, "a", "b")
    whole = log.path.read_bytes()
    _spoil(log.path, how)
    (change,) = log.restore()
    assert (change.path, change.how) == (".ralph/events.jsonl", "deleted" if how == "folder" else how)
    assert change.reverted
    assert log.path.read_bytes() == whole
    assert log.restore() == ()


def test_an_event_recorded_meanwhile_loses_neither_the_past_nor_the_complaint(tmp_path: Path) -> None:
    log = _log(tmp_path, "a", "b")
    log.path.unlink()
    log.record(LoopEvent("c", at=NOON))
    assert _topics(tmp_path) == ["a", "b", "c"]
    assert [change.how for change in log.restore()] == ["deleted"]


def test_deleting_the_whole_folder_loses_no_event(tmp_path: Path) -> None:
    log = _log(tmp_path / ".ralph", "a", "b")
    os.rename(tmp_path / ".ralph", tmp_path / "gone")
    assert [change.how for change in log.restore()] == ["deleted"]
    assert _topics(tmp_path / ".ralph") == ["a", "b"]


def test_a_torn_last_line_of_a_run_that_was_killed_does_not_take_the_next_with_it(tmp_path: Path) -> None:
    with _log(tmp_path, "a").path.open("ab") as file:
        file.write(b'{"topic": "b')
    _log(tmp_path, "c")
    assert _topics(tmp_path) == ["a", "c"]


def test_an_archived_log_begins_anew(tmp_path: Path) -> None:
    log = _log(tmp_path, "a", "b")
    log.archive(tmp_path / "archive" / "events.jsonl")
    log.record(LoopEvent("c", at=NOON))
    assert _topics(tmp_path) == ["c"]
    assert log.restore() == ()
    assert [json.loads(line)["topic"] for line in (tmp_path / "archive" / "events.jsonl").open()] == ["a", "b"]


def test_what_agents_say_is_heard_once_and_in_order(tmp_path: Path) -> None:
    said.append_event(tmp_path, "build.complete", '{"files": 2}', "builder", 3, NOON)
    said.append_event(tmp_path, "build.blocked", at=NOON)
    assert said.read_events(tmp_path) == (
        LoopEvent("build.complete", '{"files": 2}', hat="builder", iteration=3, at=NOON),
        LoopEvent("build.blocked", at=NOON),
    )
    assert said.read_events(tmp_path) == ()


def test_an_agent_that_cuts_the_file_short_can_neither_repeat_nor_hide(tmp_path: Path) -> None:
    said.append_event(tmp_path, "one", at=NOON)
    assert len(said.read_events(tmp_path)) == 1
    said.path_of(tmp_path).write_text("")
    said.append_event(tmp_path, "two", at=NOON)
    assert [event.topic for event in said.read_events(tmp_path)] == ["two"]
    said.path_of(tmp_path).write_text('{"topic": "three", "payload": {"a": 1}}\n')
    assert said.read_events(tmp_path) == (LoopEvent("three", '{"a": 1}'),)


def test_what_was_said_before_a_kill_is_heard_by_the_next_process(tmp_path: Path) -> None:
    said.append_event(tmp_path, "one", at=NOON)
    place = said.path_of(tmp_path)
    place.rename(place.with_name(f"{place.name}.1.taken"))  # where a kill leaves it
    said.append_event(tmp_path, "two", at=NOON)
    assert [event.topic for event in said.read_events(tmp_path)] == ["one", "two"]


def test_a_line_that_is_no_event_says_so(tmp_path: Path) -> None:
    place = said.path_of(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text("build.complete\n\n")
    assert said.read_events(tmp_path) == (LoopEvent(said.MALFORMED, "build.complete"),)


@pytest.mark.parametrize("how", ["folder", "pipe", "flood"])
def test_what_cannot_be_heard_is_one_malformed_event_and_never_a_hang(tmp_path: Path, how: str) -> None:
    place = said.path_of(tmp_path)
    place.parent.mkdir(parents=True)
    if how == "folder":
        place.mkdir()
    elif how == "pipe":
        os.mkfifo(place)
    else:
        place.write_bytes(b'{"topic": "x"}\n' * (said.SAID_CAP // 15 + 1))
    assert [event.topic for event in said.read_events(tmp_path)] == [said.MALFORMED]
    assert said.read_events(tmp_path) == ()


def _spoil(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how == "cut short":
        path.write_bytes(content[:-20])
    elif how == "edited":
        path.write_bytes(content.replace(b"payload 1", b"payload 9"))
    elif how == "added to":
        path.write_bytes(content + b'{"topic": "loop.converged"}\n')
    elif how == "folder":
        path.mkdir()
