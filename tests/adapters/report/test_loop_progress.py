"""What a person sees of a loop: one line per session with everything that counts, live on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ralph_mission.adapters.report.loop_progress import (
    account_document,
    came,
    clock,
    redact_values,
    show_progress,
    standing,
    took,
)
from ralph_mission.loop.model.spec import LoopPreset, RunEnding, RunLimits, RunResult, RunSpec
from ralph_mission.loop.model.state import (
    CheckResult,
    HatOutput,
    LoopEvent,
    PathChange,
    Prd,
    RunSnapshot,
    RunState,
    SessionCommit,
    SessionUsage,
    UserStory,
)

SECRET_LOOP_ACCOUNT = "hush-hush-hush-hush-5f3c"


@pytest.mark.attack(33)
def test_an_account_holds_no_secret_however_deep_it_stands() -> None:
    told = redact_values(
        {"refused": [{"session": 1, "why": f"no {SECRET_LOOP_ACCOUNT}"}], "detail": SECRET_LOOP_ACCOUNT, "code": 2},
        (SECRET_LOOP_ACCOUNT,),
    )
    assert SECRET_LOOP_ACCOUNT not in repr(told) and isinstance(told, dict) and told["code"] == 2


NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SECRET = "violet-Kettle-41-harbour"
ORDER = RunSpec("build it", LoopPreset("prd", RunLimits(iterations=10, usd=5.0), stories=True))
BOARD = RunSnapshot(Prd("Shop", stories=(UserStory("US-1", "Cart", passes=True), UserStory("US-2", "Pay"))))
STATE = RunState("run-a", "build it", NOON, 2, item="US-2", usage=SessionUsage(2, 10, 20, 0.125, 9.0), elapsed=65.0)
OUTPUT = HatOutput(
    "builder",
    3,
    LoopEvent("build.complete"),
    "did it",
    (PathChange("a.py", "modified"), PathChange("b.py", "created", "outside")),
    (SessionCommit("abc", "feat"),),
    ("US-2",),
    CheckResult(True, True),
    progressed=True,
    usage=SessionUsage(1, 3000, 400, 0.125, 9.0),
)


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["log", "terminal"])
def test_a_run_is_told_from_its_beginning_to_its_end(stream: io.StringIO) -> None:
    with show_progress(stream, (), lambda: NOON) as progress:
        progress.began(ORDER, STATE)
        progress.session(ORDER, STATE, "builder", BOARD)
        progress.output(ORDER, STATE, OUTPUT)
        progress.waiting(90, "rate limit")
        progress.ended(ORDER, RunResult(RunEnding("iterations", "10 sessions", "go on"), STATE))
    said = stream.getvalue()
    for line in (
        "run run-a resumed after session 2; limits: 10 sessions, 4h00m, $5.00",
        "[3/10] builder, US-2 Pay, 1/2 stories, $0.12, 1m05s",
        "passed US-2, emitted build.complete, a.py (1 commit), checks green, $0.12, 3,400 tokens, 9s",
        "undone: b.py (created): outside",
        "waiting 1m30s: rate limit",
        "iterations: 10 sessions; total $0.12, 1m05s, 30 tokens",
    ):
        assert line in said


@pytest.mark.attack(33)
@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["log", "terminal"])
def test_a_known_secret_is_in_no_line_whoever_says_it(stream: io.StringIO) -> None:
    failed = replace(OUTPUT, passed=(), failure="exit", reason=f"bad key {SECRET}", refused=(f"curl {SECRET}",))
    with show_progress(stream, (SECRET,), lambda: NOON) as progress:
        progress.note(f"note {SECRET}")
        progress.session(ORDER, replace(STATE, item=SECRET), "builder", BOARD)
        progress.output(ORDER, STATE, failed)
        progress.waiting(90, SECRET)
        progress.ended(ORDER, RunResult(RunEnding("failures", SECRET, f"look at {SECRET}"), STATE))
    assert "bad key [redacted: known-value]" in stream.getvalue()
    assert SECRET not in stream.getvalue()


def test_a_log_gets_plain_lines() -> None:
    with show_progress(stream := io.StringIO(), (), lambda: NOON) as progress:
        progress.session(ORDER, STATE, "", BOARD)
    assert stream.getvalue() == "[3/10] US-2 Pay, 1/2 stories, $0.12, 1m05s\n"


def test_a_reader_that_has_gone_away_stops_nothing() -> None:
    stream = io.StringIO()
    with show_progress(stream, (), lambda: NOON) as progress:
        stream.close()
        progress.note("still here")


@pytest.mark.attack(37, 38)
def test_what_agents_write_cannot_steer_the_terminal() -> None:
    snapshot = RunSnapshot(Prd("Shop", stories=(UserStory("US-2", "Pay\x1b[2J\nmore"),)))
    output = replace(OUTPUT, passed=(), failure="exit", reason="\x1b]0;x\x07bad\nand more")
    assert "\x1b" not in standing(ORDER, STATE, "builder", snapshot) + "".join(came(output))
    assert "\n" not in standing(ORDER, STATE, "builder", snapshot)


def test_a_session_without_anything_says_so() -> None:
    assert list(came(HatOutput("ralph", 1))) == ["nothing changed"]


def test_a_session_that_only_adds_a_task_says_so() -> None:
    assert list(came(HatOutput("ralph", 1, progressed=True))) == ["tasks changed"]


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (SessionUsage(1, 1, 0, 0.004), "$0.00, 1 token"),
        (SessionUsage(1, 2, 3), "5 tokens"),
        (SessionUsage(1, cost_usd=1.5), "$1.50"),
        (SessionUsage(2, 10, 0, 0.5, unpriced=1), "at least $0.50, 10 tokens"),  # tried twice, priced once
        (SessionUsage(1, 10, 2, 0.5, 65.0, turns=3), "$0.50, 12 tokens, 3 turns, 1m05s"),
        (SessionUsage(1), ""),
    ],
)
def test_what_a_session_took_is_said_as_far_as_it_is_known(usage: SessionUsage, text: str) -> None:
    assert took(usage) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (59.9, "59s"), (65, "1m05s"), (7384, "2h03m")])
def test_durations_are_short(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_the_document_lists_what_was_undone() -> None:
    document = account_document(RunResult(RunEnding("complete"), STATE, (OUTPUT,)), (2, 2), ["the log was edited"])
    assert document["complaints"] == ["the log was edited"]
    assert document["reverted"] == [{"session": 3, "path": "b.py", "how": "created", "why": "outside"}]
    assert (document["code"], document["stories"]) == (0, {"passing": 2, "total": 2})


def test_the_document_tells_what_each_session_took() -> None:
    output = replace(OUTPUT, agent="claude", calls=("Bash: ls", "Write: a.py"))
    (played,) = account_document(RunResult(RunEnding("complete"), STATE, (output,)), None)["played"]  # type: ignore[misc]  # a list of objects
    assert (played["session"], played["hat"], played["agent"], played["calls"]) == (3, "builder", "claude", 2)
    assert played["usage"] == {
        "input_tokens": 3000, "output_tokens": 400, "cost_usd": 0.125, "unpriced_sessions": 0, "seconds": 9.0,
        "turns": 0,
    }  # fmt: skip  # one value


@pytest.mark.attack(37, 38)
def test_what_a_session_left_running_is_told_and_cannot_steer_the_terminal() -> None:
    output = replace(OUTPUT, left_running=("sleep 300", "\x1b[2Jevil"))
    assert "ended: sleep 300 (left running)" in list(came(output)) and "\x1b" not in "".join(came(output))
    document = account_document(RunResult(RunEnding("complete"), STATE, (output,)), None)
    assert {"session": 3, "command": "sleep 300"} in document["left_running"]  # type: ignore[operator]  # a list of objects
