from __future__ import annotations

from datetime import timedelta

import pytest

from ralph_mission.mission.memory import schedule
from ralph_mission.mission.memory.schedule import SLACK, assess, drift, format_pause, is_due, plan_next
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Severity, Urgency
from tests.mission.build import NOW, finding

BUG = finding(kind="bug", severity=Severity.HIGH)
OTHER_BUG = finding(kind="bug", severity=Severity.HIGH, essence=("another",))


@pytest.mark.parametrize(
    ("fresh", "waiting", "urgency"),
    [
        ((), False, Urgency.LOW),
        ((finding(),), False, Urgency.LOW),
        ((), True, Urgency.MEDIUM),
        ((finding(severity=Severity.MEDIUM),), False, Urgency.MEDIUM),
        ((BUG,), False, Urgency.HIGH),
    ],
)
def test_urgency_follows_the_table(fresh, waiting, urgency):
    assert assess(fresh, waiting, Header())[0] is urgency


def test_the_same_finding_keeps_urgency_high_for_four_cycles_only():
    header, urgencies = Header(), []
    for _ in range(6):
        urgency, cause, streak = assess([BUG], False, header)
        urgencies.append(urgency)
        header = Header(high_cause=cause, high_streak=streak)
    assert urgencies == [Urgency.HIGH] * 4 + [Urgency.MEDIUM] * 2


def test_another_high_finding_starts_anew():
    header = Header(high_cause="gone", high_streak=4)
    assert assess([BUG], False, header)[0] is Urgency.HIGH


@pytest.mark.parametrize("old", [BUG, OTHER_BUG])
def test_a_new_high_finding_is_heard_beside_one_that_has_waited_for_long(old):
    header = Header(high_cause=old.fingerprint, high_streak=9)
    urgency, cause, streak = assess([BUG, OTHER_BUG], False, header, {old.fingerprint})
    assert (urgency, streak) == (Urgency.HIGH, 1)
    assert cause != old.fingerprint


def test_what_waited_for_long_does_not_begin_anew_when_the_new_one_is_dealt_with():
    header = Header(high_cause=OTHER_BUG.fingerprint, high_streak=4)
    assert assess([BUG], False, header, {BUG.fingerprint})[0] is Urgency.MEDIUM


@pytest.mark.parametrize(
    ("urgency", "pause"),
    [
        (Urgency.LOW, timedelta(hours=6)),
        (Urgency.MEDIUM, timedelta(hours=1)),
        (Urgency.HIGH, timedelta(minutes=15)),
    ],
)
def test_the_next_due_time_and_a_new_generation_follow(urgency, pause):
    header = plan_next(Header(generation=4), urgency, Rhythm(), NOW)
    assert (header.next_due_at, header.generation) == (NOW + pause, 5)


@pytest.mark.parametrize("wrong", [timedelta(hours=7, seconds=1), timedelta(days=3), timedelta(days=400)])
def test_a_due_time_that_no_pause_explains_is_due(wrong):
    assert is_due(NOW + wrong, NOW, Rhythm().longest)
    assert not is_due(NOW + wrong, NOW, wrong)


def test_due_is_exact():
    longest = Rhythm().longest
    assert is_due(None, NOW, longest)
    assert is_due(NOW, NOW, longest)
    assert not is_due(NOW + timedelta(seconds=1), NOW, longest)
    assert not is_due(NOW + longest, NOW, longest)
    assert not is_due(NOW + longest + SLACK, NOW, longest)


def test_drift_is_how_late_it_started():
    assert drift(NOW - timedelta(minutes=3), NOW) == 180
    assert drift(NOW + timedelta(minutes=3), NOW) == 0


@pytest.mark.parametrize(
    ("pause", "words"),
    [(timedelta(hours=6), "6h"), (timedelta(hours=1), "1h"), (timedelta(minutes=15), "15min"), (timedelta(2), "2d")],
)
def test_pauses_are_said_as_the_memory_file_says_them(pause, words):
    assert format_pause(pause) == words


def test_a_bug_is_urgent_whatever_its_tool_calls_it():
    assert assess([finding(kind="bug", severity=Severity.LOW)], False, Header())[0] is Urgency.HIGH


def test_a_new_due_time_makes_older_wakes_void():
    header = Header("lineage", 1)
    assert schedule.plan_next(header, header.urgency, Rhythm(), NOW).generation == header.generation + 1
