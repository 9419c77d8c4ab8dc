"""The story of a loop over fakes: when it is done, and how it goes on after another process."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.loop.model.state import PLANNED, AgentTurn, LoopEvent, LoopTask, Prd, RunState
from tests.loop.fakes import START_OF_TIME
from tests.loop.making import DONE, GREEN, NOTHING, RED, pbr, played, says, spec, stories, verdict, world


def test_a_promise_on_the_last_line_with_green_checks_completes():
    made = world(NOTHING, DONE, checks=(GREEN,))
    account = played(spec(), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("complete", 0, 2)
    assert made.workplace.verified == 1 and made.progress.told[-1] == "ended complete"


@pytest.mark.parametrize(
    "text",
    ["I will say LOOP_COMPLETE when it is done.", "LOOP_COMPLETE\nbut two tests are missing", "`LOOP_COMPLETE`",
     "> LOOP_COMPLETE", "not LOOP_COMPLETE", "LOOP_COMPLETE LOOP_COMPLETE", "When all is done: LOOP_COMPLETE"],
)  # fmt: skip  # one list
def test_a_quoted_promise_never_completes(text):
    account = played(spec(iterations=3), world(AgentTurn(text), forever=True, checks=(GREEN,)))
    assert (account.ending.reason, account.ending.code) == ("iterations", 2)


def test_a_promise_as_an_event_completes():
    assert played(spec(), world(says("LOOP_COMPLETE"), checks=(GREEN,))).ending.reason == "complete"


def test_the_promise_of_a_session_that_failed_does_not_count():
    made = world(replace(DONE, failure="exit", detail="exit code 1"), forever=True, checks=(GREEN,))
    assert played(spec(), made).ending.reason == "failures"


def test_red_checks_keep_it_running_and_are_told():
    made = world(DONE, DONE, checks=(RED, GREEN))
    assert played(spec(), made).ending.reason == "complete"
    assert "2 tests failed" not in made.agent.prompts[0] and "2 tests failed" in made.agent.prompts[1]


def test_open_tasks_keep_it_running_however_often_it_promises():
    made = world(DONE, forever=True, tasks=(LoopTask("t-1", "left over", "pending"),))
    account = played(spec(iterations=3), made)
    assert account.ending.reason == "iterations" and "t-1 (pending)" in made.agent.prompts[1]
    assert account.ending.detail.endswith("1 task is open: t-1 (pending)")  # it did say that it is done


@pytest.mark.parametrize("status", ["pending", "ready", "active"])
def test_no_open_status_lets_a_loop_end(status):
    made = world(DONE, forever=True, tasks=(LoopTask("t-1", "x", status),))
    assert played(spec(iterations=2), made).ending.reason == "iterations"


@pytest.mark.parametrize("status", ["done", "failed"])
def test_closed_tasks_hold_nothing_up(status):
    assert played(spec(), world(DONE, tasks=(LoopTask("t-1", "x", status),))).ending.reason == "complete"


def test_open_tasks_can_be_trusted_to_the_agent():
    made = world(DONE, tasks=(LoopTask("t-1", "x", "ready"),))
    assert played(spec(open_tasks="trust"), made).ending.reason == "complete"


def test_stories_that_all_pass_already_start_no_session():
    made = world(prd=stories(True, True), checks=(GREEN,))
    assert played(spec("prd"), made).ending.reason == "complete" and made.agent.sessions == []


def test_without_stories_the_story_gate_never_opens():
    made = world(AgentTurn("COMPLETE"), forever=True, prd=Prd("empty"))
    assert played(spec("prd", iterations=2), made).ending.reason == "iterations"


def left(**options) -> RunState:
    return replace(RunState("run-1", "Build the thing", START_OF_TIME - timedelta(hours=1), 6), **options)


def test_a_run_goes_on_with_the_next_number_and_who_was_next():
    made = world(says("build.complete"), verdict(), left=left(pending=LoopEvent(PLANNED, "step 3")))
    account = played(pbr(), made)
    assert [session.iteration for session in made.agent.sessions] == [7, 8] and made.agent.hats[0] == "builder"
    assert account.ending.reason == "complete" and made.progress.told[0] == "began 6"


def test_what_a_killed_session_left_is_put_aside_and_told():
    made = world(DONE, files={"a.py": "whole"})
    made.store.left = left(mark=made.workplace.remember("mark-of-7"))
    made.workplace.write("a.py", "half")
    played(spec(), made)
    assert made.workplace.files == {"a.py": "whole"} and made.workplace.aside == {"a.py": "half"}
    assert "cut off; 1 files" in made.agent.prompts[0]


def test_after_a_limit_a_higher_one_goes_on():
    made = world(DONE, left=left(iteration=10))
    assert played(spec(iterations=10), world(left=left(iteration=10))).ending.reason == "iterations"
    assert played(spec(iterations=11), made).ending.reason == "complete"


def test_time_of_earlier_processes_counts():
    made = world(left=left(elapsed=14_400.0))
    assert played(spec(), made).ending.reason == "runtime" and made.agent.sessions == []


def test_the_state_is_on_disk_before_the_next_session_starts():
    made = world()
    seen: list[int] = []

    def look(session):
        seen.append(made.store.kept[-1][0].iteration)
        assert made.store.kept[-1][0].mark and made.store.prompts[-1] == session.prompt

    made.agent.turns, made.agent.forever = [look], True
    played(spec(iterations=3), made)
    assert seen == [0, 1, 2] and made.store.kept[-1][0].iteration == 3


def test_a_run_is_closed_while_nobody_else_can_work_there():
    made = world(DONE)
    account = played(spec(), made)
    assert made.store.closed == account and not made.store.held


def test_each_session_lands_as_a_commit_that_says_what_it_was_for():
    made = world()
    made.agent.turns = [lambda s: made.workplace.write("a.py", str(s.iteration)), NOTHING, DONE]
    account = played(spec(), made)
    assert [commit.message for commit in made.workplace.history] == ["Build the thing (ralph, session 1)"]
    assert [len(output.commits) for output in account.outputs] == [1, 0, 0]


def test_what_a_session_said_of_its_own_commits_is_said_of_the_one_that_lands():
    made = world(lambda _: made.workplace.write("a.py"), DONE)
    made.workplace.messages = ("Add a\n\nBecause.", "Mend a")
    played(spec(), made)
    assert [commit.message for commit in made.workplace.history] == ["Add a\n\nBecause.\n\nMend a"]


def test_work_of_a_session_that_failed_lands_as_well():
    made = world()
    made.agent.turns = [
        lambda _: (made.workplace.write("a.py"), AgentTurn(failure="exit", detail="exit code 1"))[1],
        DONE,
    ]
    played(spec(), made)
    assert len(made.workplace.history) == 1


# --- what a claim lacks ---


def test_the_ending_names_an_event_that_was_never_said():
    made = world(DONE, forever=True, checks=(GREEN,))
    ending = played(replace(spec(iterations=2), required_events=("audit.done",)), made).ending
    assert ending.detail == "2 sessions; still to be emitted: audit.done"


def test_a_change_that_a_later_session_takes_back_does_not_complete():
    words = iter(("new", "old", "old"))
    made = world(files={"a.py": "old"}, checks=(GREEN,), forever=True)
    made.agent.turns = [lambda _: (made.workplace.write("a.py", next(words)), DONE)[1]]
    made.agent.turns.insert(0, lambda _: (made.workplace.write("a.py", next(words)), NOTHING)[1])
    account = played(replace(spec(iterations=3), require_change=True), made)
    assert account.ending.reason == "idle" and len(made.workplace.history) == 2


def test_a_list_of_stories_is_a_file_like_any_other_where_none_is_worked_off():
    made = world(lambda _: (made.workplace.write("prd.json"), DONE)[1], checks=(GREEN,))
    assert played(replace(spec(), require_change=True), made).ending.reason == "complete"


def test_a_credential_in_a_sessions_own_commit_message_stays_out_of_ours():
    made = world(lambda _: (made.workplace.write("a.py"), DONE)[1], checks=(GREEN,))
    made.workplace.messages = ("Use ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",)
    played(spec(), made)
    assert [one.message for one in made.workplace.history] == ["Use [redacted: github-token]"]
