"""The story of a loop over fakes: how it ends, who is next, what the next session hears."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.loop.model import (
    CONVERGED,
    PLANNED,
    RESUME,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    Change,
    Commit,
    Event,
    Guidance,
    Hat,
    Paths,
    Prd,
    State,
    Story,
    Task,
    Turn,
    Usage,
    Verification,
)
from ralph_mission.loop.order import Account, Limits, Order, Preset
from ralph_mission.loop.patterns import PATTERNS
from ralph_mission.loop.presets import PRESETS
from ralph_mission.loop.run import run
from ralph_mission.trouble import Trouble
from tests.loop.fakes import START_OF_TIME, FakeDesk, FakeWorkplace, FakeWorld, PlannedAgent

GREEN, RED = Verification(True, True), Verification(False, True, "2 tests failed")
DONE = Turn("All of it is there.\nLOOP_COMPLETE")
NOTHING = Turn("I looked around.")


def order(preset="loop", **options) -> Order:
    limits = {name: options.pop(name) for name in list(options) if name in Limits.__dataclass_fields__}
    chosen = PRESETS[preset] if isinstance(preset, str) else preset
    return Order("Build the thing", replace(chosen, limits=replace(chosen.limits, **limits)), **options)


def world(*turns, forever=False, files=None, checks=(), **desk) -> FakeWorld:
    agent = PlannedAgent(*turns, forever=forever)
    return FakeWorld(agent, FakeWorkplace(files, *checks), FakeDesk(**desk))


def played(wanted: Order, made: FakeWorld) -> Account:
    return run(wanted, made.ports)


def stories(*passes: bool) -> Prd:
    return Prd("thing", "ralph/thing", "", tuple(
        Story(f"US-{number}", f"Story {number}", priority=number, passes=passed)
        for number, passed in enumerate(passes, 1)
    ))  # fmt: skip  # one list


def says(topic: str, payload: str = "") -> Turn:
    return Turn(f'Done here.\n<event topic="{topic}">{payload}</event>')


def verdict(*messages: str) -> Turn:
    listed = ", ".join(f'{{"message": "{message}", "file": "a.py"}}' for message in messages)
    return says(VERDICT, f'{{"issues": [{listed}]}}')


# --- completion ---------------------------------------------------------------------------


def test_a_promise_on_the_last_line_with_green_checks_completes():
    made = world(NOTHING, DONE, checks=(GREEN,))
    account = played(order(), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("complete", 0, 2)
    assert made.workplace.verified == 1 and made.voice.told[-1] == "ended complete"


@pytest.mark.parametrize(
    "text",
    ["I will say LOOP_COMPLETE when it is done.", "LOOP_COMPLETE\nbut two tests are missing", "`LOOP_COMPLETE`",
     "> LOOP_COMPLETE", "not LOOP_COMPLETE", "LOOP_COMPLETE LOOP_COMPLETE", "When all is done: LOOP_COMPLETE"],
)  # fmt: skip  # one list
def test_a_quoted_promise_never_completes(text):
    account = played(order(iterations=3), world(Turn(text), forever=True, checks=(GREEN,)))
    assert (account.ending.reason, account.ending.code) == ("iterations", 2)


def test_a_promise_as_an_event_completes():
    assert played(order(), world(says("LOOP_COMPLETE"), checks=(GREEN,))).ending.reason == "complete"


def test_the_promise_of_a_session_that_failed_does_not_count():
    made = world(replace(DONE, failure="exit", detail="exit code 1"), forever=True, checks=(GREEN,))
    assert played(order(), made).ending.reason == "failures"


def test_red_checks_keep_it_running_and_are_told():
    made = world(DONE, DONE, checks=(RED, GREEN))
    assert played(order(), made).ending.reason == "complete"
    assert "2 tests failed" not in made.agent.prompts[0] and "2 tests failed" in made.agent.prompts[1]


def test_open_tasks_keep_it_running_however_often_it_promises():
    made = world(DONE, forever=True, tasks=(Task("t-1", "left over", "pending"),))
    account = played(order(iterations=3), made)
    assert account.ending.reason == "iterations" and "t-1 (pending)" in made.agent.prompts[1]


@pytest.mark.parametrize("status", ["pending", "ready", "active"])
def test_the_boulder_stops_for_no_open_status(status):
    made = world(DONE, forever=True, tasks=(Task("t-1", "x", status),))
    assert played(order(iterations=2), made).ending.reason == "iterations"


@pytest.mark.parametrize("status", ["done", "failed"])
def test_closed_tasks_hold_nothing_up(status):
    assert played(order(), world(DONE, tasks=(Task("t-1", "x", status),))).ending.reason == "complete"


def test_open_tasks_can_be_trusted_to_the_agent():
    made = world(DONE, tasks=(Task("t-1", "x", "ready"),))
    assert played(order(open_tasks="trust"), made).ending.reason == "complete"


def test_stories_that_all_pass_already_start_no_session():
    made = world(prd=stories(True, True), checks=(GREEN,))
    assert played(order("prd"), made).ending.reason == "complete" and made.agent.sessions == []


def test_without_stories_the_story_gate_never_opens():
    made = world(Turn("COMPLETE"), forever=True, prd=Prd("empty"))
    assert played(order("prd", iterations=2), made).ending.reason == "iterations"


# --- stories ------------------------------------------------------------------------------


def one_story_each(made: FakeWorld) -> None:
    def play(session) -> Turn:
        number = session.iteration
        made.workplace.write(f"file-{number}.py")
        made.desk.passes(f"US-{number}")
        return Turn("did it")

    made.agent.turns = [play]
    made.agent.forever = True


def test_five_stories_take_five_sessions_and_five_commits():
    made = world(prd=stories(*[False] * 5), checks=(GREEN,))
    one_story_each(made)
    account = played(order("prd"), made)
    assert (account.ending.reason, len(account.outputs)) == ("complete", 5)
    assert [commit.message for commit in made.workplace.history] == [f"feat: US-{n} - Story {n}" for n in range(1, 6)]
    assert [output.passed for output in account.outputs] == [(f"US-{n}",) for n in range(1, 6)]
    assert made.clock.slept == [2.0] * 4  # between sessions, not after the last


def test_flips_with_red_checks_are_set_back_and_told():
    made = world(prd=stories(False, False), checks=(RED,))

    def flip_all(_):
        made.desk.passes("US-1", "US-2")

    made.agent.turns, made.agent.forever = [flip_all], True
    account = played(order("prd", iterations=2), made)
    assert account.ending.reason == "iterations" and made.desk.prd == stories(False, False)
    assert "2 tests failed" in made.agent.prompts[1] and made.workplace.history == []
    assert len(made.desk.entries) == 2


def test_two_flips_in_one_session_become_one():
    made = world(prd=stories(False, False, False), checks=(GREEN,))

    def flip_all(_):
        made.desk.passes("US-1", "US-2", "US-3")

    made.agent.turns, made.agent.forever = [flip_all], True
    account = played(order("prd"), made)
    assert [output.passed for output in account.outputs] == [("US-1",), ("US-2",), ("US-3",)]


def test_a_run_of_one_story_ends_after_it():
    made = world(prd=stories(False, False), checks=(GREEN,))
    one_story_each(made)
    account = played(order("prd", single_story=True), made)
    assert account.ending.reason == "complete" and len(account.outputs) == 1


def test_a_story_that_takes_too_long_is_warned_replanned_skipped_and_then_a_person_is_asked():
    made = world(prd=stories(False))
    made.agent.turns = [lambda session: made.workplace.write("a.py", str(session.iteration))]
    made.agent.forever = True
    account = played(order("prd", iterations=100, idle=100), made)
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
            made.desk.passes(f"US-{session.iteration // 2}")

    made.agent.turns, made.agent.forever = [every_second], True
    account = played(order("prd"), made)
    assert account.ending.reason == "complete" and not any("STUCK" in prompt for prompt in made.agent.prompts)


def test_a_task_that_takes_too_long_is_passed_over_for_the_next():
    made = world(tasks=(Task("t-1", "hard", "ready", priority=1), Task("t-2", "easy", "ready", priority=2)))
    made.agent.turns, made.agent.forever = [lambda s: made.workplace.write("a.py", str(s.iteration))], True
    account = played(order(iterations=7), made)
    assert account.state.skipped == {"t-1"} and account.state.item == "t-2"


# --- limits -------------------------------------------------------------------------------


def test_runtime_ends_it_before_the_next_session():
    made = world()
    made.agent.turns, made.agent.forever = [lambda _: made.clock.pass_by(3_000)], True
    account = played(order(runtime=7_000), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("runtime", 2, 3)


def test_cost_ends_it_before_the_next_session():
    made = world(replace(NOTHING, usage=Usage(1, 10, 5, 0.40)), forever=True)
    account = played(order(usd=1.0), made)
    assert (account.ending.reason, len(account.outputs)) == ("cost", 3)
    assert account.state.usage.cost_usd == pytest.approx(1.2)


def test_a_cost_limit_that_nobody_can_tell_ends_it_instead_of_being_ignored():
    account = played(order(usd=1.0), world(NOTHING, forever=True))
    assert account.ending.reason == "cost" and "cost is unknown" in account.ending.detail and len(account.outputs) == 1


def test_three_failures_in_a_row_end_it_and_one_success_between_does_not():
    crash = Turn(failure="exit", detail="exit code 3")
    account = played(order(), world(crash, crash, NOTHING, crash, crash, crash))
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("failures", 1, 6)
    assert "exit code 3" in account.ending.detail


def test_a_failed_session_tells_the_next_why():
    made = world(Turn(failure="exit", detail="exit code 3\nno such module"), DONE)
    played(order(), made)
    assert "no such module" in made.agent.prompts[1]


def test_sessions_that_move_nothing_end_it():
    account = played(order(idle=4), world(NOTHING, forever=True))
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("idle", 1, 4)


def test_the_idle_breaker_sees_committed_work_as_progress():
    made = world()

    def commit(session):
        made.workplace.write("same.py", "x")  # the tree looks the same after each of them
        made.workplace.history.append(Commit(f"{session.iteration:07x}", "step"))
        made.workplace.head = dict(made.workplace.files)

    made.agent.turns, made.agent.forever = [commit], True
    assert played(order(idle=2, iterations=9), made).ending.reason == "iterations"


def test_the_idle_breaker_sees_tasks_as_progress():
    made = world()

    def plan(session):
        made.desk.tasks = (*made.desk.tasks, Task(f"t-{session.iteration}", "more"))

    made.agent.turns, made.agent.forever = [plan], True
    assert played(order(idle=2, iterations=5), made).ending.reason == "iterations"


def test_work_that_is_undone_is_no_progress():
    hats = (Hat("writer", (START,), ("again",), write_allowed=("src/**",)), Hat("other", ("again",), (START,)))
    made = world(lambda _: (made.workplace.write("docs/x"), says("again"))[1], says(START), forever=True)
    made.agent.turns = [lambda s: (made.workplace.write("docs/x") if s.hat.name == "writer" else None,
                                   says("again" if s.hat.name == "writer" else START))[1]]  # fmt: skip  # one turn
    account = played(order(Preset("hats", hats=hats), idle=4), made)
    assert account.ending.reason == "idle" and "docs/x" not in made.workplace.files


# --- hats ---------------------------------------------------------------------------------


def pbr(**options) -> Order:
    return order("plan-build-review", **options)


def test_a_pattern_runs_as_the_protocol_says_until_the_reviewer_has_nothing_left_to_say():
    made = world(says(PLANNED), says("build.complete"), verdict("a", "b"), says("fix.complete"), verdict())
    account = played(pbr(), made)
    assert account.ending.reason == "complete" and account.state.pending.topic == CONVERGED
    assert made.agent.hats == ["planner", "builder", "reviewer", "fixer", "reviewer"]
    assert [len(output.issues) for output in account.outputs] == [0, 0, 2, 0, 0]
    assert [event.topic for event in made.desk.events][:2] == [PLANNED, "build.complete"]


def test_the_fixer_is_told_every_issue():
    made = world(says(PLANNED), says("build.complete"), verdict("off by one", "race"), says("fix.complete"), verdict())
    played(pbr(), made)
    assert "off by one" in made.agent.prompts[3] and "race" in made.agent.prompts[3]


def test_a_reviewer_that_never_agrees_ends_at_the_limit():
    def play(session):
        return {"planner": says(PLANNED), "builder": says("build.complete"), "reviewer": verdict("no"),
                "fixer": says("fix.complete", str(session.iteration))}[session.hat.name]  # fmt: skip  # one table

    assert played(pbr(iterations=7), world(play, forever=True)).ending.reason == "iterations"


def test_issues_below_critical_within_the_threshold_do_not_hold_it_up():
    minor = says(VERDICT, '{"issues": [{"message": "a name", "severity": "minor"}]}')
    turns = (says(PLANNED), says("build.complete"), minor)
    assert played(pbr(threshold=1), world(*turns)).ending.reason == "complete"
    assert played(pbr(iterations=3), world(*turns)).ending.reason == "iterations"


def test_a_promise_does_not_end_what_a_reviewer_decides():
    made = world(Turn("LOOP_COMPLETE"), forever=True)
    assert played(pbr(iterations=2), made).ending.reason == "iterations"


def test_red_checks_after_a_clean_verdict_go_back_to_the_builder_with_what_failed():
    made = world(
        says(PLANNED), says("build.complete"), verdict(), says("build.complete"), verdict(), checks=(RED, GREEN)
    )
    assert played(pbr(), made).ending.reason == "complete"
    assert made.agent.hats[2:] == ["reviewer", "builder", "reviewer"] and "2 tests failed" in made.agent.prompts[3]


def test_red_checks_that_no_hat_listens_to_go_to_whoever_builds():
    hats = tuple(replace(hat, triggers=tuple(topic for topic in hat.triggers if topic != VERIFICATION_FAILED))
                 for hat in PATTERNS["plan-build-review"].hats)  # fmt: skip  # one set
    made = world(
        says(PLANNED), says("build.complete"), verdict(), says("build.complete"), verdict(), checks=(RED, GREEN)
    )
    assert played(order(replace(PRESETS["hats"], hats=hats)), made).ending.reason == "complete"
    assert made.agent.hats[3] == "builder" and "2 tests failed" in made.agent.prompts[3]


def test_open_tasks_after_a_clean_verdict_call_the_builder_again():
    made = world(says(PLANNED), says("build.complete"), verdict(), tasks=(Task("t-1", "more", "ready"),))

    def close(_):
        made.desk.tasks = (Task("t-1", "more", "done"),)
        return says("build.complete", "again")

    made.agent.turns += [close, verdict()]
    assert played(pbr(), made).ending.reason == "complete" and made.agent.hats[3] == "builder"


@pytest.mark.parametrize(
    ("turn", "why"),
    [(NOTHING, "no event was said"), (Turn(f"{says(PLANNED, 'a').text} {says('x').text}"), "one event"),
     (says("build.complete"), "planner may say plan.complete")],
)  # fmt: skip  # one table
def test_a_session_ends_with_exactly_one_event_of_its_hat_or_it_failed_and_hears_why(turn, why):
    made = world(turn, says(PLANNED), says("build.complete"), verdict())
    account = played(pbr(), made)
    assert account.ending.reason == "complete" and account.outputs[0].failure == "event"
    assert made.agent.hats[:2] == ["planner", "planner"] and why in made.agent.prompts[1]


def test_an_event_said_through_files_and_again_in_the_same_words_is_one():
    made = world(lambda _: (made.desk.saying.append(Event(PLANNED, "go")), says(PLANNED, "go"))[1],
                 says("build.complete"), verdict())  # fmt: skip  # three turns
    assert played(pbr(), made).ending.reason == "complete"


def test_an_event_through_files_alone_is_heard():
    made = world(lambda _: made.desk.saying.append(Event(PLANNED, "go")), says("build.complete"), verdict())
    assert played(pbr(), made).ending.reason == "complete"


def test_what_a_failed_session_said_is_not_acted_upon():
    made = world(
        replace(says(PLANNED), failure="timeout", detail="not done"), says(PLANNED), says("build.complete"), verdict()
    )
    played(pbr(), made)
    assert made.agent.hats[:2] == ["planner", "planner"] and len(made.desk.events) == 3


def test_a_default_event_is_said_for_a_hat_that_says_nothing():
    hats = (Hat("first", (START,), ("one.done",), "one.done"), Hat("second", ("one.done",), ("LOOP_COMPLETE",)))
    made = world(NOTHING, says("LOOP_COMPLETE"))
    account = played(order(Preset("hats", hats=hats)), made)
    assert account.ending.reason == "complete" and account.outputs[0].event.topic == "one.done"


def test_handing_the_same_event_out_again_and_again_is_thrash():
    echo = (Hat("echo", ("ping", START), ("ping",)),)
    account = played(order(Preset("hats", hats=echo)), world(says("ping", "same"), forever=True))
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("thrash", 1, 4)


def test_the_same_event_with_progress_between_is_no_thrash():
    echo = (Hat("echo", ("ping", START), ("ping",)),)
    made = world()
    made.agent.turns = [lambda s: (made.workplace.write("a", str(s.iteration)), says("ping", "same"))[1]]
    made.agent.forever = True
    assert played(order(Preset("hats", hats=echo), iterations=9), made).ending.reason == "iterations"


def test_an_event_that_nobody_listens_to_goes_to_nobody_in_particular():
    hats = (Hat("only", (START,), ("lost.topic",)),)
    made = world(says("lost.topic"), Turn("LOOP_COMPLETE"))
    assert played(order(Preset("hats", hats=hats)), made).ending.reason == "complete"
    assert made.agent.hats == ["only", "ralph"]


def test_what_a_hat_writes_elsewhere_is_undone_recorded_and_told():
    made = world(says(PLANNED), says("build.complete"))

    def meddle(_):
        made.workplace.write("src/a.py", "mine now")
        made.workplace.commit("sneaked in")
        made.workplace.delete("README.md")
        return verdict("x")

    made.workplace.files |= {"README.md": "hello"}
    made.workplace.head = dict(made.workplace.files)
    made.agent.turns += [meddle, says("fix.complete"), verdict()]
    account = played(pbr(), made)
    reverted = {change.path: change.reverted for change in account.outputs[2].reverted}
    assert set(reverted) == {"src/a.py", "README.md"} and "reviewer may write nothing only" in reverted.values()
    assert made.workplace.files == {"README.md": "hello"} and made.workplace.head == {"README.md": "hello"}
    assert "src/a.py" in made.agent.prompts[3]


def test_foreign_changes_and_mended_files_are_in_the_record():
    made = world(lambda _: setattr(made.workplace, "foreign", (Change(".git/hooks/x", "added", "a hook"),)), DONE,
                 mended=(Change("progress.txt", "cut short", "the log's past"),))  # fmt: skip  # a world
    account = played(order(), made)
    assert {change.path for change in account.outputs[0].reverted} == {".git/hooks/x", "progress.txt"}


def test_models_are_the_hats_own_before_the_runs():
    hats = (Hat("a", (START,), ("next",), model="large"), Hat("b", ("next",), ("LOOP_COMPLETE",)))
    made = world(says("next"), says("LOOP_COMPLETE"))
    played(order(Preset("hats", hats=hats), model="small"), made)
    assert [session.model for session in made.agent.sessions] == ["large", "small"]


def test_what_sessions_took_is_kept_by_hat_and_by_item():
    took = Usage(1, 100, 10, 0.5)
    made = world(replace(says("next"), usage=took), replace(says("LOOP_COMPLETE"), usage=took),
                 tasks=(Task("t-1", "x", "ready"),))  # fmt: skip  # a world
    hats = (Hat("a", (START,), ("next",)), Hat("b", ("next",), ("LOOP_COMPLETE",)))
    state = played(order(Preset("hats", hats=hats), open_tasks="trust"), made).state
    assert dict(state.by_hat) == {"a": took, "b": took} and dict(state.by_item)["t-1"] == took + took


# --- persistent ---------------------------------------------------------------------------


PERSISTENT = Preset("hats", hats=(Hat("finder", (START, RESUME), ("LOOP_COMPLETE",)),))


def test_a_persistent_loop_takes_completion_as_a_new_beginning():
    made = world(says("LOOP_COMPLETE", "a"), forever=True)
    account = played(order(PERSISTENT, persistent=True, iterations=3), made)
    assert account.ending.reason == "iterations" and made.desk.tidied == 3
    assert made.agent.hats == ["finder"] * 3 and "EVENT: task.resume" in made.agent.prompts[1]


def test_limits_of_a_persistent_loop_are_hard():
    made = world(replace(says("LOOP_COMPLETE"), usage=Usage(1, 1, 1, 30.0)), forever=True)
    assert played(order(PERSISTENT, persistent=True, usd=50.0), made).ending.reason == "cost"


def test_a_persistent_loop_that_finds_nothing_does_not_burn_for_ever():
    made = world(says("LOOP_COMPLETE"), forever=True)
    assert played(order(PERSISTENT, persistent=True, iterations=10_000), made).ending.reason == "idle"


def test_the_cooldown_is_skipped_when_a_person_said_something():
    made = world(says("LOOP_COMPLETE"), forever=True)

    def speak(session):
        if session.iteration == 2:
            made.desk.words.append(Guidance("g-1", "look at issue 7", START_OF_TIME))
        return says("LOOP_COMPLETE")

    made.agent.turns = [speak]
    played(order(PERSISTENT, persistent=True, cooldown=30.0, iterations=3), made)
    assert made.clock.slept == [30.0]


# --- providers ----------------------------------------------------------------------------


def test_a_rate_limit_is_waited_for_and_costs_no_iteration():
    limited = Turn(failure="rate_limit", detail="429", retry_after=90.0)
    made = world(limited, limited, DONE)
    account = played(order(), made)
    assert (account.ending.reason, len(account.outputs), made.clock.slept) == ("complete", 1, [90.0, 90.0])
    assert account.state.usage.sessions == 3 and made.voice.waits == [90.0, 90.0]


def test_a_wait_that_nobody_names_doubles():
    limited = Turn(failure="rate_limit", detail="429")
    made = world(limited, limited, limited, DONE)
    played(order(), made)
    assert made.clock.slept == [60.0, 120.0, 240.0]


def test_a_fault_of_the_provider_is_tried_again_three_times():
    fault = Turn(failure="server", detail="API Error: 400 due to tool use concurrency issues")
    made = world(fault, fault, fault, DONE)
    assert played(order(), made).ending.reason == "complete" and made.clock.slept == [5.0] * 3
    made = world(fault, forever=True)
    assert played(order(failures=1), made).ending.reason == "failures" and len(made.agent.sessions) == 4


def test_a_timeout_goes_on_with_the_next_session_and_is_not_waited_for():
    made = world(Turn(failure="timeout", detail="not done after 2700 s"), DONE)
    account = played(order(), made)
    assert (account.ending.reason, len(account.outputs), made.clock.slept) == ("complete", 2, [])


def test_no_wait_is_longer_than_what_is_left_of_the_run():
    made = world(Turn(failure="rate_limit", detail="429", retry_after=1_800.0), forever=True)
    made.desk.left = State("run-1", "Build the thing", START_OF_TIME, 4, elapsed=14_000.0)
    account = played(order(failures=1), made)
    assert account.ending.reason == "failures" and made.clock.slept == []


def test_a_stop_ends_the_wait():
    made = world(Turn(failure="rate_limit", detail="429"))
    made.voice.waiting = lambda seconds, why: setattr(made.desk, "asked", "stop")
    made.agent.turns.append(Turn(failure="rate_limit", detail="429"))
    assert played(order(), made).ending.reason == "stop"


# --- people -------------------------------------------------------------------------------


@pytest.mark.parametrize(("signal", "code"), [("stop", 1), ("cancel", 1), ("restart", 3)])
def test_a_signal_ends_it_after_the_session(signal, code):
    made = world(lambda _: setattr(made.desk, "asked", signal))
    account = played(order(), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == (signal, code, 1)


def test_work_that_is_done_counts_before_a_signal():
    made = world(lambda _: (setattr(made.desk, "asked", "stop"), DONE)[1])
    assert played(order(), made).ending.reason == "complete"


def test_an_interrupt_keeps_the_mark_of_the_session_it_cut_off():
    made = world(NOTHING, KeyboardInterrupt())
    account = played(order(), made)
    assert (account.ending.reason, account.ending.code) == ("interrupted", 130)
    state, output = made.desk.kept[-1]
    assert state.mark and state.iteration == 1 and output is None and not made.desk.held


def test_guidance_reaches_the_next_session_once():
    made = world(NOTHING, NOTHING, DONE, words=[Guidance("g-1", "Wrap the existing code", START_OF_TIME)])
    played(order(), made)
    assert ["Wrap the existing code" in prompt for prompt in made.agent.prompts] == [True, False, False]
    assert [word.id for word in made.desk.given] == ["g-1"]


@pytest.mark.parametrize("failure", ["missing", "server"])
def test_guidance_is_kept_while_no_agent_has_read_it(failure):
    made = world(Turn(failure=failure, detail="x"), Turn("ok"), DONE, words=[Guidance("g-1", "Wrap it", START_OF_TIME)])
    played(order(retries=0), made)
    assert ["Wrap it" in prompt for prompt in made.agent.prompts] == [True, True, False]


def test_a_checkout_that_is_taken_starts_nothing():
    made = world(taken=True)
    with pytest.raises(Trouble, match="another loop runs"):
        played(order(), made)
    assert made.agent.sessions == []


# --- going on -----------------------------------------------------------------------------


def left(**options) -> State:
    return replace(State("run-1", "Build the thing", START_OF_TIME - timedelta(hours=1), 6), **options)


def test_a_run_goes_on_with_the_next_number_and_who_was_next():
    made = world(says("build.complete"), verdict(), left=left(pending=Event(PLANNED, "step 3")))
    account = played(pbr(), made)
    assert [session.iteration for session in made.agent.sessions] == [7, 8] and made.agent.hats[0] == "builder"
    assert account.ending.reason == "complete" and made.voice.told[0] == "began 6"


def test_what_a_killed_session_left_is_put_aside_and_told():
    made = world(DONE, files={"a.py": "whole"})
    made.desk.left = left(mark=made.workplace.remember("mark-of-7"))
    made.workplace.write("a.py", "half")
    played(order(), made)
    assert made.workplace.files == {"a.py": "whole"} and made.workplace.aside == {"a.py": "half"}
    assert "cut off; 1 files" in made.agent.prompts[0]


def test_after_a_limit_a_higher_one_goes_on():
    made = world(DONE, left=left(iteration=10))
    assert played(order(iterations=10), world(left=left(iteration=10))).ending.reason == "iterations"
    assert played(order(iterations=11), made).ending.reason == "complete"


def test_time_of_earlier_processes_counts():
    made = world(left=left(elapsed=14_400.0))
    assert played(order(), made).ending.reason == "runtime" and made.agent.sessions == []


def test_the_state_is_on_disk_before_the_next_session_starts():
    made = world()
    seen: list[int] = []

    def look(session):
        seen.append(made.desk.kept[-1][0].iteration)
        assert made.desk.kept[-1][0].mark and made.desk.prompts[-1] == session.prompt

    made.agent.turns, made.agent.forever = [look], True
    played(order(iterations=3), made)
    assert seen == [0, 1, 2] and made.desk.kept[-1][0].iteration == 3


# --- what nobody told, what was refused, whose files are whose -----------------------


def test_one_session_of_unknown_cost_makes_the_whole_unknown_to_a_cost_limit():
    told = Turn("more to do", usage=Usage(1, 5, 5, 0.1))
    account = played(order(usd=1.0), world(told, NOTHING, forever=True))
    assert account.ending.reason == "cost" and "1 of 2 sessions" in account.ending.detail
    assert (account.state.usage.cost_usd, account.state.usage.untold) == (0.1, 1)


def test_sessions_of_unknown_cost_stay_counted_in_any_order_of_adding():
    told, silent = Usage(1, cost_usd=0.5), Usage(2)
    assert (told + silent).untold == (silent + told).untold == 2
    assert (silent + silent).untold == 4 and (Usage() + told).untold == 0


def test_an_event_said_by_a_command_and_in_the_last_message_is_one():
    hat = Hat("builder", ("loop.start",), ("build.complete",))
    made = world(Turn('<event topic="build.complete">done</event>'), forever=True)
    made.desk.saying = [Event("build.complete", "done", hat="builder", iteration=1, at=START_OF_TIME)]
    played(order(Preset("hats", hats=(hat,)), iterations=1), made)
    assert [event.topic for event in made.desk.events] == ["build.complete"]


def test_who_only_flips_stories_with_red_checks_for_ever_is_idle():
    made = world(forever=True, prd=stories(False, False), checks=(RED,))

    def flips(session):
        made.desk.passes("US-1")
        made.workplace.write("prd.json", str(session.iteration))
        made.workplace.commit("it passes")

    made.agent.turns = [flips]
    account = played(order("prd", idle=3, stuck=50), made)
    assert (account.ending.reason, account.state.iteration) == ("idle", 3)


def test_stories_in_a_folder_of_their_own_are_the_engines_too():
    made = world(forever=True, prd=stories(False), checks=(RED,), paths=Paths("plans/shop.json", "plans/progress.txt"))
    reviewer = Hat("reviewer", ("loop.start",), ("seen",), write_allowed=())

    def writes(session):
        made.workplace.write("plans/shop.json", str(session.iteration))
        made.workplace.write("plans/other.json", "x")
        return Turn('<event topic="seen">x</event>')

    made.agent.turns = [writes]
    account = played(order(replace(PRESETS["prd"], hats=(reviewer,)), iterations=1), made)
    assert [change.path for change in account.outputs[0].reverted] == ["plans/other.json"]


def test_commands_that_were_refused_are_in_the_record_and_told_to_the_next_session():
    made = world(Turn("I pushed", refused=("git push --force is denied",)), NOTHING)
    account = played(order(iterations=2), made)
    assert account.outputs[0].refused == ("git push --force is denied",)
    assert "> - git push --force is denied" in made.agent.prompts[1]


def test_guidance_that_a_prompt_had_no_room_for_goes_to_the_next_session():
    words = [Guidance(f"g-{number}", f"word {number}", START_OF_TIME) for number in range(45)]
    made = world(NOTHING, NOTHING, words=words)
    played(order(iterations=2), made)
    assert "g-44:" not in made.agent.prompts[0] and "g-44:" in made.agent.prompts[1] and not made.desk.words


def test_rounds_of_review_over_one_task_are_not_mistaken_for_being_stuck():
    made = world(tasks=(Task("t-1", "long", "ready"),))

    def turn(session):
        if session.hat.name == "reviewer":
            rounds = made.agent.hats.count("reviewer")
            made.desk.tasks = (Task("t-1", "long", "done" if rounds > 5 else "ready"),)
            return verdict(*(["no"] if rounds < 6 else []))
        made.workplace.write("a.py", str(session.iteration))
        return says({"planner": PLANNED, "builder": "build.complete"}.get(session.hat.name, "fix.complete"))

    made.agent.turns, made.agent.forever = [turn], True
    account = played(order(PRESETS["plan-build-review"]), made)
    assert account.ending.reason == "complete" and account.state.skipped == frozenset()


def test_a_run_whose_open_tasks_were_all_skipped_is_stuck():
    tasks = (Task("t-1", "Hard"), Task("t-2", "After it", "pending", needs=("t-1",)))
    made = world(Turn(""), forever=True, tasks=tuple(replace(t, status="ready") if t.id == "t-1" else t for t in tasks))
    made.agent.turns = [lambda session: made.workplace.write(f"file-{session.iteration}")]
    account = played(order(stuck=1, iterations=20), made)
    assert account.ending.reason == "stuck" and "t-1 Hard" in account.ending.detail


def test_a_run_is_closed_while_nobody_else_can_work_there():
    made = world(DONE)
    account = played(order(), made)
    assert made.desk.closed == account and not made.desk.held


def test_a_run_that_ends_with_issues_left_asks_for_a_persons_verdict():
    verdict = '{"issues": [{"severity": "minor", "message": "a name"}]}'
    hat = Hat("reviewer", ("loop.start",), (VERDICT,))
    made = world(Turn(f'<event topic="{VERDICT}">{verdict}</event>'))
    account = played(order(Preset("hats", hats=(hat,)), threshold=1), made)
    assert account.ending.reason == "complete" and "1 issues left" in account.ending.detail
    assert "ralph verdict" in account.ending.next_step
