"""Stories and tasks over fakes: one after the other, what passes, what takes too long."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.loop.hats import PRESETS
from ralph_mission.loop.model.state import AgentTurn, Hat, LoopTask, RunPaths
from tests.loop.fakes import FakeWorld
from tests.loop.making import GREEN, RED, played, spec, stories, world


def one_story_each(made: FakeWorld) -> None:
    def play(session) -> AgentTurn:
        number = session.iteration
        made.workplace.write(f"file-{number}.py")
        made.store.passes(f"US-{number}")
        return AgentTurn("did it")

    made.agent.turns = [play]
    made.agent.forever = True


def test_five_stories_take_five_sessions_and_five_commits():
    made = world(prd=stories(*[False] * 5), checks=(GREEN,))
    one_story_each(made)
    account = played(spec("prd"), made)
    assert (account.ending.reason, len(account.outputs)) == ("complete", 5)
    assert [commit.message for commit in made.workplace.history] == [f"feat: US-{n} - Story {n}" for n in range(1, 6)]
    assert [output.passed for output in account.outputs] == [(f"US-{n}",) for n in range(1, 6)]
    assert made.clock.slept == [2.0] * 4  # between sessions, not after the last


def test_flips_with_red_checks_are_set_back_and_told():
    made = world(prd=stories(False, False), checks=(RED,))

    def flip_all(_):
        made.store.passes("US-1", "US-2")

    made.agent.turns, made.agent.forever = [flip_all], True
    account = played(spec("prd", iterations=2), made)
    assert account.ending.reason == "iterations" and made.store.prd == stories(False, False)
    assert "2 tests failed" in made.agent.prompts[1] and made.workplace.history == []
    assert len(made.store.entries) == 2


def test_two_flips_in_one_session_become_one():
    made = world(prd=stories(False, False, False), checks=(GREEN,))

    def flip_all(_):
        made.store.passes("US-1", "US-2", "US-3")

    made.agent.turns, made.agent.forever = [flip_all], True
    account = played(spec("prd"), made)
    assert [output.passed for output in account.outputs] == [("US-1",), ("US-2",), ("US-3",)]


def test_a_run_of_one_story_ends_after_it():
    made = world(prd=stories(False, False), checks=(GREEN,))
    one_story_each(made)
    account = played(spec("prd", single_story=True), made)
    assert account.ending.reason == "complete" and len(account.outputs) == 1


def test_a_story_that_takes_too_long_is_warned_replanned_skipped_and_then_a_person_is_asked():
    made = world(prd=stories(False))
    made.agent.turns = [lambda session: made.workplace.write("a.py", str(session.iteration))]
    made.agent.forever = True
    account = played(spec("prd", iterations=100, idle=100), made)
    assert (account.ending.reason, account.ending.code) == ("stuck", 1)
    assert "US-1 Story 1" in account.ending.detail and account.state.skipped == {"US-1"}
    advice = ["disposable" if "disposable" in prompt else "another way" if "another way" in prompt else ""
              for prompt in made.agent.prompts]  # fmt: skip  # one list
    assert advice == ["", "", "", "another way", "disposable", "disposable"]


def test_stuck_counts_the_same_story_only():
    made = world(prd=stories(False, False, False, False), checks=(GREEN,))

    def every_second(session):
        made.workplace.write("a.py", str(session.iteration))
        if session.iteration % 2 == 0:
            made.store.passes(f"US-{session.iteration // 2}")

    made.agent.turns, made.agent.forever = [every_second], True
    account = played(spec("prd"), made)
    assert account.ending.reason == "complete" and not any("STUCK" in prompt for prompt in made.agent.prompts)


def test_a_task_that_takes_too_long_is_passed_over_for_the_next():
    made = world(tasks=(LoopTask("t-1", "hard", "ready", priority=1), LoopTask("t-2", "easy", "ready", priority=2)))
    made.agent.turns, made.agent.forever = [lambda s: made.workplace.write("a.py", str(s.iteration))], True
    account = played(spec(iterations=7), made)
    assert account.state.skipped == {"t-1"} and account.state.item == "t-2"


def test_who_only_flips_stories_with_red_checks_for_ever_is_idle():
    made = world(forever=True, prd=stories(False, False), checks=(RED,))

    def flips(session):
        made.store.passes("US-1")
        made.workplace.write("prd.json", str(session.iteration))

    made.agent.turns = [flips]
    account = played(spec("prd", idle=3, stuck=50), made)
    assert (account.ending.reason, account.state.iteration) == ("idle", 3)


def test_stories_in_a_folder_of_their_own_are_the_engines_too():
    made = world(
        forever=True, prd=stories(False), checks=(RED,), paths=RunPaths("plans/shop.json", "plans/progress.txt")
    )
    reviewer = Hat("reviewer", ("loop.start",), ("seen",), write_allowed=())

    def writes(session):
        made.workplace.write("plans/shop.json", str(session.iteration))
        made.workplace.write("plans/other.json", "x")
        return AgentTurn('<event topic="seen">x</event>')

    made.agent.turns = [writes]
    account = played(spec(replace(PRESETS["prd"], hats=(reviewer,)), iterations=1), made)
    assert [change.path for change in account.outputs[0].reverted] == ["plans/other.json"]


def test_a_run_whose_open_tasks_were_all_skipped_is_stuck():
    tasks = (LoopTask("t-1", "Hard"), LoopTask("t-2", "After it", "pending", needs=("t-1",)))
    made = world(
        AgentTurn(""), forever=True, tasks=tuple(t._replace(status="ready") if t.id == "t-1" else t for t in tasks)
    )
    made.agent.turns = [lambda session: made.workplace.write(f"file-{session.iteration}")]
    account = played(spec(stuck=1, iterations=20), made)
    assert account.ending.reason == "stuck" and "t-1 Hard" in account.ending.detail
