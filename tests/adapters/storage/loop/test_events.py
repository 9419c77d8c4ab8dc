"""The log of a run, and what agents say to it."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import events as said
from ralph_mission.adapters.storage.loop import events as saying
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


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    log = _log(tmp_path)
    events = (
        LoopEvent("review.verdict", "two lines\nof it ü", (ISSUE,), "reviewer", 4, NOON),
        LoopEvent("loop.start", at=NOON + timedelta(hours=1)),
    )
    for event in events:
        log.record(event)
    assert EventLog(tmp_path).read() == events


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


def test_an_untouched_log_verifies_also_for_the_next_process(tmp_path: Path) -> None:
    _log(tmp_path, "a", "b")
    _log(tmp_path, "c")
    assert EventLog(tmp_path).verify() == ()
    assert EventLog(tmp_path / "nothing").verify() == ()


@pytest.mark.parametrize("edit", ["change", "remove", "swap", "insert", "garbage"])
def test_the_first_broken_line_is_named(tmp_path: Path, edit: str) -> None:
    log = _log(tmp_path, "a", "b", "c", "d")
    first, second, third, fourth = _lines(log)
    edited = {
        "change": [first, second.replace("payload 2", "payload 9"), third, fourth],
        "remove": [first, third, fourth],
        "swap": [first, third, second, fourth],
        "insert": [first, second, second, third, fourth],
        "garbage": [first, second, "nothing\n", third, fourth],
    }[edit]
    log.path.write_text("".join(edited))
    (complaint,) = EventLog(tmp_path).verify()
    at = {"change": 3, "remove": 2, "swap": 2, "insert": 3, "garbage": 3}[edit]
    assert f"line {at} " in complaint


def test_a_last_line_that_went_missing_or_was_edited_is_noticed(tmp_path: Path) -> None:
    log = _log(tmp_path, "a", "b", "c")
    lines = _lines(log)
    log.path.write_text("".join(lines[:2]))
    assert EventLog(tmp_path).verify() == (".ralph/events.jsonl has 2 lines and should have 3",)
    log.path.write_text("".join([*lines[:2], lines[2].replace("payload 3", "payload 9")]))
    assert EventLog(tmp_path).verify() == (".ralph/events.jsonl line 3 is not as it was written: it was edited",)
    log.path.unlink()
    assert EventLog(tmp_path).verify() == (".ralph/events.jsonl has 0 lines and should have 3",)


def test_a_kill_between_the_log_and_its_head_is_no_edit(tmp_path: Path) -> None:
    log = _log(tmp_path, "a", "b")
    head = log.head.read_bytes()
    _log(tmp_path, "c")
    log.head.write_bytes(head)  # where the kill leaves it
    assert EventLog(tmp_path).verify() == ()
    again = EventLog(tmp_path)
    assert again.begin() == ()
    again.record(LoopEvent("d", at=NOON))
    assert [event.topic for event in again.read()] == ["a", "b", "c", "d"]
    log.path.unlink()
    log.head.unlink()
    _log(tmp_path, "first")
    log.head.unlink()
    assert EventLog(tmp_path).verify() == ()


@pytest.mark.parametrize(
    ("edit", "kept", "aside"),
    [
        ("change", ["a", "b"], ["c", "d"]),  # which of both was edited only the head could tell
        ("insert", ["a", "b"], ["b", "c", "d"]),
        ("last", ["a", "b", "c"], ["d"]),
        ("forge", ["a", "b", "c", "d"], ["e", "f"]),
        ("cut", ["a", "b"], []),
        ("head", ["a", "b", "c", "d"], []),
        ("junk in the head", ["a", "b", "c", "d"], []),
    ],
)
def test_an_edited_log_is_gone_on_with_as_far_as_it_is_proven(
    tmp_path: Path, edit: str, kept: list[str], aside: list[str]
) -> None:
    log = _log(tmp_path, "a", "b", "c", "d")
    _edit(log, edit)
    (told,) = EventLog(tmp_path).verify()
    again = EventLog(tmp_path)
    (complaint,) = again.begin()
    assert complaint.startswith(told)
    assert [event.topic for event in again.read()] == kept
    files = list(tmp_path.glob("events.jsonl.*.aside"))
    assert [json.loads(line)["topic"] for file in files for line in file.read_text().splitlines()] == aside
    assert all(file.name in complaint for file in files)
    again.record(LoopEvent("next", at=NOON))
    assert (again.verify(), again.begin(), again.restore()) == ((), (), ())


def test_an_edit_is_also_told_when_nobody_asked_before_the_first_event(tmp_path: Path) -> None:
    _edit(_log(tmp_path, "a", "b", "c", "d"), "insert")
    log = _log(tmp_path, "e")
    assert [event.topic for event in log.read()] == ["a", "b", "e"]
    assert ["line 3" in change.reverted for change in log.restore()] == [True]


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
    assert [event.topic for event in EventLog(tmp_path).read()] == ["a", "b", "c"]
    assert [change.how for change in log.restore()] == ["deleted"]
    assert log.verify() == ()


def test_deleting_the_whole_folder_loses_no_event(tmp_path: Path) -> None:
    log = _log(tmp_path / ".ralph", "a", "b")
    os.rename(tmp_path / ".ralph", tmp_path / "gone")
    assert [change.how for change in log.restore()] == ["deleted"]
    assert [event.topic for event in EventLog(tmp_path / ".ralph").read()] == ["a", "b"]


def test_a_torn_last_line_of_a_run_that_was_killed_does_not_take_the_next_with_it(tmp_path: Path) -> None:
    with _log(tmp_path, "a").path.open("ab") as file:
        file.write(b'{"topic": "b')
    log = _log(tmp_path, "c")
    assert [event.topic for event in log.read()] == ["a", "c"]
    assert log.verify() == ()


def test_an_archived_log_begins_anew(tmp_path: Path) -> None:
    log = _log(tmp_path, "a", "b")
    log.archive(tmp_path / "archive" / "events.jsonl")
    log.record(LoopEvent("c", at=NOON))
    assert [event.topic for event in log.read()] == ["c"]
    assert (log.verify(), log.restore()) == ((), ())
    assert [json.loads(line)["topic"] for line in (tmp_path / "archive" / "events.jsonl").open()] == ["a", "b"]


def test_what_agents_say_is_heard_once_and_in_order(tmp_path: Path) -> None:
    said.say_event(tmp_path, LoopEvent("build.complete", '{"files": 2}', hat="builder", iteration=3, at=NOON))
    said.say_event(tmp_path, LoopEvent("build.blocked", at=NOON))
    assert said.read_events(tmp_path) == (
        LoopEvent("build.complete", '{"files": 2}', hat="builder", iteration=3, at=NOON),
        LoopEvent("build.blocked", at=NOON),
    )
    assert said.read_events(tmp_path) == ()


def test_an_agent_that_cuts_the_file_short_can_neither_repeat_nor_hide(tmp_path: Path) -> None:
    said.say_event(tmp_path, LoopEvent("one", at=NOON))
    assert len(said.read_events(tmp_path)) == 1
    saying.path_of(tmp_path).write_text("")
    said.say_event(tmp_path, LoopEvent("two", at=NOON))
    assert [event.topic for event in said.read_events(tmp_path)] == ["two"]
    saying.path_of(tmp_path).write_text('{"topic": "three", "payload": {"a": 1}}\n')
    assert said.read_events(tmp_path) == (LoopEvent("three", '{"a": 1}'),)


def test_what_was_said_before_a_kill_is_heard_by_the_next_process(tmp_path: Path) -> None:
    said.say_event(tmp_path, LoopEvent("one", at=NOON))
    place = saying.path_of(tmp_path)
    place.rename(place.with_name(f"{place.name}.1.taken"))  # where a kill leaves it
    said.say_event(tmp_path, LoopEvent("two", at=NOON))
    assert [event.topic for event in said.read_events(tmp_path)] == ["one", "two"]


def test_a_line_that_is_no_event_says_so(tmp_path: Path) -> None:
    place = saying.path_of(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text("build.complete\n\n")
    assert said.read_events(tmp_path) == (LoopEvent(said.MALFORMED, "build.complete"),)


@pytest.mark.parametrize("how", ["folder", "pipe", "flood"])
def test_what_cannot_be_heard_is_one_malformed_event_and_never_a_hang(tmp_path: Path, how: str) -> None:
    place = saying.path_of(tmp_path)
    place.parent.mkdir(parents=True)
    if how == "folder":
        place.mkdir()
    elif how == "pipe":
        os.mkfifo(place)
    else:
        place.write_bytes(b'{"topic": "x"}\n' * (said.SAID_CAP // 15 + 1))
    assert [event.topic for event in said.read_events(tmp_path)] == [said.MALFORMED]
    assert said.read_events(tmp_path) == ()


def _edit(log: EventLog, how: str) -> None:
    first, second, third, fourth = _lines(log)
    if how in ("head", "junk in the head"):
        log.head.unlink()
        if "junk" in how:
            log.head.mkdir()
        return
    if how == "forge":  # as one would who knows how the chain is made, but not of the head
        head = log.head.read_bytes()
        _log(log.folder, "e", "f")
        log.head.write_bytes(head)
        return
    edited = {
        "change": [first, second.replace("payload 2", "payload 9"), third, fourth],
        "insert": [first, second, second, third, fourth],
        "last": [first, second, third, fourth.replace("payload 4", "payload 9")],
        "cut": [first, second],
    }[how]
    log.path.write_text("".join(edited))


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
