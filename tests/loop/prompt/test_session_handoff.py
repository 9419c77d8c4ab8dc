"""The handoff: the originals' schema, at most 5 KB whatever there is to tell, and readable by either side."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import LoopPreset, RunLimits, RunSpec
from ralph_mission.loop.model.state import (
    CheckoutState,
    CheckResult,
    HatOutput,
    LoopEvent,
    LoopTask,
    Prd,
    ProgressNotes,
    RunSnapshot,
    RunState,
    SessionCommit,
    UserStory,
)
from ralph_mission.loop.prompt import session
from ralph_mission.loop.rules import completion

NOW = datetime(2026, 1, 28, 15, 14, 3, 376_000, UTC)
ORDER = RunSpec(
    "Build a REST API for todos", LoopPreset("fresh", RunLimits(iterations=20), "TASK_COMPLETE", stories=True)
)
STATE = RunState("run", ORDER.objective, NOW, iteration=3, item="US-0003", stale=1)
FIVE_KB = 5_000


def snapshot(number: int = 5, passed: int = 2, text: str = "", tree: CheckoutState | None = None) -> RunSnapshot:
    listed = tuple(UserStory(f"US-{n:04}{text}", f"Story {n}{text}", priority=n, passes=n <= passed)
                   for n in range(1, number + 1))  # fmt: skip  # one list
    notes = ProgressNotes((f"Use zod{text}",) * number, (f"bcrypt is async{text}",) * number, f"US-0002{text}")
    commits = (SessionCommit("a1b2c3d4e5f6", f"feat: add POST{text}"),) * 5
    return RunSnapshot(Prd(f"todo{text}", f"ralph/todo{text}", f"A todo app{text}", listed), notes=notes,
                 tree=tree or CheckoutState(f"ralph/todo{text}", "a1b2", commits, True))  # fmt: skip  # one board


def size(document: dict[str, Any]) -> int:
    """The larger of the ways in which it may be written."""
    plain = json.dumps(document, indent=2, ensure_ascii=False).encode()
    return max(len(plain), len(json.dumps(document, indent=2).encode()))


# --- the schema ---------------------------------------------------------------------


def test_the_document_has_the_keys_of_the_schema_in_its_order() -> None:
    last = HatOutput("ralph", 3, failure="timeout", reason="45 minutes are over", summary="half done")
    made = session.handoff_document(ORDER, replace(STATE, last=last), snapshot())
    assert list(made) == ["version", "created_at", "iteration", "max_iterations", "original_prompt",
                          "completion_promise", "completed", "prd", "progress", "git", "stuckDetection",
                          "lastError"]  # fmt: skip  # the schema's order
    assert list(made["prd"]) == ["project", "branchName", "description", "storiesTotal", "storiesCompleted",
                                 "nextStoryId", "incompleteIds"]  # fmt: skip  # as above
    assert list(made["progress"]) == ["patterns", "recentLearnings", "lastCompletedStory"]
    assert list(made["git"]) == ["recentCommits", "branch", "hasUncommittedChanges"]
    assert list(made["stuckDetection"]) == ["lastPrdStatus", "iterationsOnSameStory", "lastActionAttempted"]
    assert list(made["lastError"]) == ["iteration", "message", "recoveryAttempt"]


def test_the_document_says_what_files_say() -> None:
    made = session.handoff_document(ORDER, STATE, snapshot())
    assert (made["version"], made["created_at"]) == ("1.0", "2026-01-28T15:14:03.376Z")
    assert (made["iteration"], made["max_iterations"]) == (3, 20)
    assert (made["original_prompt"], made["completion_promise"]) == ("Build a REST API for todos", "TASK_COMPLETE")
    assert made["prd"]["nextStoryId"] == "US-0003" and made["prd"]["incompleteIds"] == ["US-0003", "US-0004", "US-0005"]
    assert (made["prd"]["storiesTotal"], made["prd"]["storiesCompleted"]) == (5, 2)
    assert made["git"]["recentCommits"][0] == {"hash": "a1b2c3d4e5f6", "message": "feat: add POST"}
    assert made["git"]["hasUncommittedChanges"] is True and len(made["progress"]["recentLearnings"]) == 5


def test_what_is_optional_is_absent_rather_than_null() -> None:
    made = session.handoff_document(replace(ORDER, preset=LoopPreset("loop")), replace(STATE, item=""), RunSnapshot())
    assert not {"prd", "lastError", "completion_message"} & set(made)
    assert "lastCompletedStory" not in made["progress"] and "lastActionAttempted" not in made["stuckDetection"]


def test_a_skipped_story_is_incomplete_and_not_next() -> None:
    made = session.handoff_document(ORDER, replace(STATE, skipped=frozenset({"US-0003"})), snapshot())
    assert made["prd"]["nextStoryId"] == "US-0004" and "US-0003" in made["prd"]["incompleteIds"]


def test_with_nothing_left_there_is_no_next_story() -> None:
    made = session.handoff_document(ORDER, replace(STATE, item=""), snapshot(5, 5))
    assert made["prd"]["nextStoryId"] is None and made["completed"] is True and made["completion_message"]


def test_stories_that_pass_on_red_checks_or_with_open_tasks_are_not_completed() -> None:
    red = replace(STATE, last=HatOutput("ralph", 3, verification=CheckResult(False, True, "1 failed")))
    made = session.handoff_document(ORDER, red, snapshot(5, 5))
    assert made["completed"] is False and made["lastError"]["message"] == "1 failed"
    assert (
        session.handoff_document(ORDER, STATE, replace(snapshot(5, 5), tasks=(LoopTask("t", "x"),)))["completed"]
        is False
    )


# --- stuck detection (fault 3 of the original: the counter stayed at 1) --------------


def test_iterations_on_the_same_story_are_really_counted() -> None:
    state, counted = replace(STATE, iteration=0, stale=0), []
    for number in range(1, 5):
        state = completion.focus(ORDER, state, snapshot())
        state = completion.advance_state(ORDER, state, HatOutput("ralph", number, progressed=True), 60.0)
        counted.append(session.handoff_document(ORDER, state, snapshot())["stuckDetection"]["iterationsOnSameStory"])
    assert counted == [1, 2, 3, 4]


def test_the_count_starts_again_with_the_next_story() -> None:
    state = completion.advance_state(ORDER, replace(STATE, stale=2), HatOutput("ralph", 4, passed=("US-0003",)), 60.0)
    after = completion.focus(ORDER, state, snapshot(5, 3))
    made = session.handoff_document(ORDER, after, snapshot(5, 3))
    assert made["stuckDetection"]["iterationsOnSameStory"] == 0 and made["prd"]["nextStoryId"] == "US-0004"


def test_the_status_of_the_prd_is_written_each_time() -> None:
    made = session.handoff_document(ORDER, STATE, snapshot())
    assert made["stuckDetection"]["lastPrdStatus"] == ["US-0003", "US-0004", "US-0005"]


def test_the_last_action_is_who_said_what() -> None:
    last = HatOutput("builder", 3, LoopEvent("build.complete"), "wrote the lock")
    stuck = session.handoff_document(ORDER, replace(STATE, last=last), snapshot())["stuckDetection"]
    assert stuck["lastActionAttempted"] == "builder emitted build.complete: wrote the lock"


# --- 5 KB (fault 3: 1.75 KB at 5 stories, 8.1 KB at 100, 25.3 KB at 500) -------------


@pytest.mark.parametrize("number", [1, 2, 5, 20, 50, 100, 500, 1000])
@pytest.mark.parametrize("text", ["", " with a long name that goes on" * 30, "é" * 300, "🦌" * 300, '"\\\n' * 300])
def test_the_handoff_is_at_most_5_kb_from_1_to_1000_stories(number: int, text: str) -> None:
    last = HatOutput("ralph" + text, 3, failure="exit", reason="boom" + text, summary=text)
    state = replace(STATE, objective="Build" + text * 50, last=last)
    made = session.handoff_document(ORDER, state, snapshot(number, 0, text))
    assert size(made) <= FIVE_KB
    assert made["prd"]["storiesTotal"] == number


@settings(max_examples=30)
@given(st.text(), st.integers(1, 40), st.integers(1, 60))
def test_the_handoff_is_at_most_5_kb_of_valid_utf_8_with_any_text(text: str, times: int, number: int) -> None:
    last = HatOutput(text, 3, failure="exit", reason=text * times, summary=text)
    state = replace(STATE, objective="x" + text * times, last=last, item=text)
    made = session.handoff_document(ORDER, state, snapshot(number, 0, text * times))
    assert size(made) <= FIVE_KB and json.loads(json.dumps(made)) == made


def test_lone_surrogates_do_not_stop_it_from_being_written() -> None:
    made = session.handoff_document(ORDER, replace(STATE, objective="a\ud800b"), snapshot(3, 0, "\udfff"))
    json.dumps(made, ensure_ascii=False).encode("utf-8")


def test_a_prompt_that_is_cut_says_so_and_a_short_one_is_whole() -> None:
    assert session.handoff_document(ORDER, STATE, snapshot())["original_prompt"] == STATE.objective
    long = session.handoff_document(ORDER, replace(STATE, objective="word " * 20_000), snapshot())["original_prompt"]
    assert long.startswith("word word") and long.endswith("…") and len(long) > 400


def test_incomplete_ids_are_cut_with_a_count_that_adds_up() -> None:
    ids = session.handoff_document(ORDER, STATE, snapshot(1000))["prd"]["incompleteIds"]
    assert ids[0] == "US-0003" and ids[-1] == f"… {998 - (len(ids) - 1)} more"


# --- reading ------------------------------------------------------------------------

THEIRS = {
    "version": "1.0",
    "created_at": "2026-01-28T15:14:03.376Z",
    "iteration": 3,
    "max_iterations": 20,
    "original_prompt": "Build a REST API for todos with CRUD",
    "completion_promise": "TASK_COMPLETE",
    "completed": False,
    "prd": {"project": "todo", "branchName": "b", "description": "", "storiesTotal": 5, "storiesCompleted": 2,
            "nextStoryId": "US-003", "incompleteIds": ["US-003", "US-004", "US-005"]},
    "progress": {"patterns": [], "recentLearnings": []},
    "git": {"recentCommits": [], "branch": "main", "hasUncommittedChanges": False},
    "stuckDetection": {"lastPrdStatus": [], "iterationsOnSameStory": 2},
    "lastError": {"iteration": 2, "message": "API Error 400"},
}  # fmt: skip  # a file as oh-my-claudecode writes it


def test_a_handoff_written_by_others_is_enough_to_go_on() -> None:
    left = session.read_handoff(THEIRS)
    assert left == session.Left("Build a REST API for todos with CRUD", 3, 20, "TASK_COMPLETE", False, NOW, "US-003",
                                2, "API Error 400")  # fmt: skip  # one value


def test_what_is_written_is_read_again() -> None:
    left = session.read_handoff(json.loads(json.dumps(session.handoff_document(ORDER, STATE, snapshot()))))
    assert (left.objective, left.iteration, left.item, left.stale) == (STATE.objective, 3, "US-0003", 1)
    assert left.started_at == NOW


@pytest.mark.parametrize("wrong", [None, "x", 1.5, [], {}, True, -1])
def test_a_wrong_type_counts_as_not_said(wrong: object) -> None:
    document = dict.fromkeys(THEIRS, wrong) | {"original_prompt": "task"}
    left = session.read_handoff(document)
    assert left.objective == "task" and left.iteration == 0 and left.started_at is None


@pytest.mark.parametrize("document", [None, [], "x", {}, {"original_prompt": ""}, {"original_prompt": 3}])
def test_a_handoff_without_a_task_is_refused_with_a_next_step(document: object) -> None:
    with pytest.raises(UserError) as problem:
        session.read_handoff(document)
    assert "original_prompt" in problem.value.what and problem.value.next_step


def test_the_marker_is_the_light_state_file() -> None:
    east = replace(STATE, started_at=NOW.astimezone(timezone(timedelta(hours=9))), iteration=1)
    assert session.marker(east, True) == {"active": True, "started_at": "2026-01-28T15:14:03.376Z", "iteration": 1}
