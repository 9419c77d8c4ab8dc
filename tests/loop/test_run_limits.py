"""What ends or holds up a loop: limits, failures, providers, and completion that only begins anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.loop.model.spec import LoopPreset
from ralph_mission.loop.model.state import RESUME, START, AgentTurn, Guidance, Hat, LoopTask, RunState, SessionUsage
from tests.loop.fakes import START_OF_TIME
from tests.loop.making import DONE, NOTHING, played, says, spec, world


def test_runtime_ends_it_before_the_next_session():
    made = world()
    made.agent.turns, made.agent.forever = [lambda _: made.clock.pass_by(3_000)], True
    account = played(spec(runtime=7_000), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("runtime", 2, 3)


def test_cost_ends_it_before_the_next_session():
    made = world(replace(NOTHING, usage=SessionUsage(1, 10, 5, 0.40)), forever=True)
    account = played(spec(usd=1.0), made)
    assert (account.ending.reason, len(account.outputs)) == ("cost", 3)
    assert account.state.usage.cost_usd == pytest.approx(1.2)


def test_a_cost_limit_that_nobody_can_tell_ends_it_instead_of_being_ignored():
    account = played(spec(usd=1.0), world(NOTHING, forever=True))
    assert account.ending.reason == "cost" and "cost is unknown" in account.ending.detail and len(account.outputs) == 1


def test_three_failures_in_a_row_end_it_and_one_success_between_does_not():
    crash = AgentTurn(failure="exit", detail="exit code 3")
    account = played(spec(), world(crash, crash, NOTHING, crash, crash, crash))
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("failures", 1, 6)
    assert "exit code 3" in account.ending.detail


def test_a_failed_session_tells_the_next_why():
    made = world(AgentTurn(failure="exit", detail="exit code 3\nno such module"), DONE)
    played(spec(), made)
    assert "no such module" in made.agent.prompts[1]


def test_sessions_that_move_nothing_end_it():
    account = played(spec(idle=4), world(NOTHING, forever=True))
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("idle", 1, 4)


def test_the_idle_breaker_sees_committed_work_as_progress():
    made = world(forever=True)

    def commits(session):
        made.workplace.write("same.py", str(session.iteration))
        made.workplace.messages = ("step",)  # the tree is clean after each of them

    made.agent.turns = [commits]
    assert played(spec(idle=2, iterations=9), made).ending.reason == "iterations"
    assert len(made.workplace.history) == 9


def test_a_run_that_ends_at_its_limit_names_the_promise_that_its_agent_never_made():
    made = world()
    made.agent.turns, made.agent.forever = [lambda session: made.workplace.write(f"f{session.iteration}")], True
    ending = played(spec(iterations=2), made).ending
    assert ending.reason == "iterations"
    assert ending.detail.endswith("the agent never ended with LOOP_COMPLETE, which says that it is done")


def test_a_run_that_ends_at_its_limit_after_an_empty_claim_says_so():
    ending = played(spec(iterations=1, require_change=True), world(DONE)).ending
    assert ending.detail == "1 session; it ended with LOOP_COMPLETE, but no file has changed"


def test_a_provider_s_limit_that_outlasts_the_run_ends_it_without_further_sessions():
    limited = AgentTurn(failure="rate_limit", detail="HTTP 429", retry_after=9_000.0)
    account = played(spec(runtime=7_000), world(limited, forever=True))
    assert (account.ending.reason, len(account.outputs)) == ("runtime", 1)
    assert "before the provider's limit is: HTTP 429" in account.ending.detail


def test_the_idle_breaker_sees_tasks_as_progress():
    made = world()

    def plan(session):
        made.store.tasks = (*made.store.tasks, LoopTask(f"t-{session.iteration}", "more"))

    made.agent.turns, made.agent.forever = [plan], True
    assert played(spec(idle=2, iterations=5), made).ending.reason == "iterations"


def test_work_that_is_undone_is_no_progress():
    hats = (Hat("writer", (START,), ("again",), write_allowed=("src/**",)), Hat("other", ("again",), (START,)))
    made = world(lambda _: (made.workplace.write("docs/x"), says("again"))[1], says(START), forever=True)
    made.agent.turns = [lambda s: (made.workplace.write("docs/x") if s.hat.name == "writer" else None,
                                   says("again" if s.hat.name == "writer" else START))[1]]  # fmt: skip  # one turn
    account = played(spec(LoopPreset("hats", hats=hats), idle=4), made)
    assert account.ending.reason == "idle" and "docs/x" not in made.workplace.files


PERSISTENT = LoopPreset("hats", hats=(Hat("finder", (START, RESUME), ("LOOP_COMPLETE",)),))


def test_a_persistent_loop_takes_completion_as_a_new_beginning():
    made = world(says("LOOP_COMPLETE", "a"), forever=True)
    made.store.news = lambda: f"look {made.store.looks}"  # there is always something new
    account = played(spec(PERSISTENT, persistent=True, iterations=3), made)
    assert account.ending.reason == "iterations" and made.store.tidied == 3
    assert made.agent.hats == ["finder"] * 3 and "EVENT: task.resume" in made.agent.prompts[1]


def test_limits_of_a_persistent_loop_are_hard():
    made = world(replace(says("LOOP_COMPLETE"), usage=SessionUsage(1, 1, 1, 30.0)), forever=True)
    made.store.news = lambda: f"look {made.store.looks}"
    assert played(spec(PERSISTENT, persistent=True, usd=50.0), made).ending.reason == "cost"


def test_a_persistent_loop_that_finds_nothing_does_not_burn_for_ever():
    made = world(says("LOOP_COMPLETE"), forever=True)
    ended = played(spec(PERSISTENT, persistent=True, iterations=10_000, runtime=86_400.0), made)
    assert (ended.ending.reason, len(made.agent.sessions)) == ("runtime", 1)  # a day without work: one model call
    assert made.clock.slept[:6] == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0] and sum(made.clock.slept) == 86_400
    assert made.store.looks < 110 and len(made.progress.waits) < 10  # cheap, and it does not say so all the time


def test_a_persistent_loop_without_work_goes_on_when_something_changes():
    made = world(says("LOOP_COMPLETE"), forever=True)
    made.store.news = lambda: "issue 7" if made.store.looks > 4 else ""
    played(spec(PERSISTENT, persistent=True, iterations=2), made)
    assert made.clock.slept == [60.0, 120.0, 240.0, 480.0]
    assert made.agent.sessions[1].iteration == 2 and made.store.tidied == 2


def test_a_word_ends_the_wait_of_a_persistent_loop_at_once():
    made = world(says("LOOP_COMPLETE"), forever=True)
    made.clock.sleep = lambda seconds, until: made.store.words.append(Guidance("g-1", "look at issue 7", START_OF_TIME))
    played(spec(PERSISTENT, persistent=True, iterations=2), made)
    assert "look at issue 7" in made.agent.prompts[1]


def test_a_persistent_loop_whose_sessions_fail_waits_longer_each_time_and_tries_again():
    made = world(AgentTurn(failure="exit", detail="API hiccup (exit code 1)\nmore"), forever=True)
    reasons = []
    made.progress.waiting = lambda seconds, why: reasons.append(why)
    account = played(spec(PERSISTENT, persistent=True, iterations=9), made)
    assert account.ending.reason == "iterations"
    assert made.clock.slept == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0]
    assert reasons[0] == "API hiccup (exit code 1); 3 sessions in a row failed, it tries again"


def test_a_persistent_loop_whose_sessions_succeed_again_calls_the_next_hat_at_once():
    crash = AgentTurn(failure="exit", detail="API hiccup")
    made = world(crash, crash, crash, says("work.ready"), crash, crash, says("LOOP_COMPLETE"))
    hats = (Hat("finder", (START, RESUME), ("work.ready",)), Hat("doer", ("work.ready",), ("LOOP_COMPLETE",)))
    account = played(spec(LoopPreset("hats", hats=hats), persistent=True, iterations=7), made)
    assert account.ending.reason == "iterations" and made.clock.slept == [60.0]
    assert made.agent.hats == ["finder"] * 4 + ["doer"] * 3


def test_a_person_ends_the_wait_of_a_persistent_loop_whose_sessions_fail():
    made = world(AgentTurn(failure="event", detail="two events"), forever=True)
    made.clock.sleep = lambda seconds, until: setattr(made.store, "asked", "stop")
    account = played(spec(PERSISTENT, persistent=True), made)
    assert (account.ending.reason, len(made.agent.sessions)) == ("stop", 3)


@pytest.mark.parametrize(("failure", "sessions"), [("auth", 1), ("missing", 3)])
def test_a_persistent_loop_ends_at_a_failure_that_only_a_person_can_fix(failure, sessions):
    made = world(AgentTurn(failure=failure, detail="no such program"), forever=True)
    account = played(spec(PERSISTENT, persistent=True), made)
    assert (account.ending.reason, len(made.agent.sessions)) == ("failures", sessions)
    assert made.clock.slept == []


def test_a_persistent_loop_hands_an_open_task_over():
    made = world(says("LOOP_COMPLETE"), forever=True)

    def leaves(session):
        made.store.tasks = (LoopTask("t-1", "mend the door", "ready"),)
        return says("LOOP_COMPLETE")

    made.agent.turns = [leaves, says("LOOP_COMPLETE")]
    played(spec(PERSISTENT, persistent=True, iterations=2), made)
    assert made.store.tidied == 2 and "t-1 mend the door" in made.agent.prompts[1]


def test_a_hat_that_is_called_by_name_is_not_kept_waiting():
    hats = (Hat("finder", (START, RESUME), ("work.ready",)), Hat("doer", ("work.ready",), ("LOOP_COMPLETE",)))
    made = world(says('<event topic="work.ready">x</event>'), says("LOOP_COMPLETE"))
    played(spec(LoopPreset("hats", hats=hats), persistent=True, iterations=2), made)
    assert made.agent.hats == ["finder", "doer"] and made.clock.slept == []


def test_a_hat_of_a_persistent_loop_that_finds_no_work_says_nothing_and_the_run_rests():
    hats = (Hat("finder", (START, RESUME), ("work.ready",)), Hat("doer", ("work.ready",), ("work.failed",)))
    made = world(NOTHING, says("work.ready"), lambda _: made.workplace.write("a.py"), NOTHING)
    made.store.news = lambda: "issue 7" if made.store.looks > 2 else ""
    account = played(spec(LoopPreset("hats", hats=hats), persistent=True, iterations=4), made)
    assert made.agent.hats == ["finder", "finder", "doer", "finder"] and made.clock.slept[:2] == [60.0, 120.0]
    assert account.ending.reason == "iterations" and account.state.failures == 0
    assert "called nobody" in made.agent.prompts[1] and "the run waits" in made.agent.prompts[0]


def test_a_persistent_loop_whose_hats_wait_to_be_called_looks_for_work_without_a_hat():
    made = world(says("work.ready"), lambda _: made.workplace.write("a.py"), DONE, DONE)
    made.store.news = lambda: "issue 7" if made.store.looks > 2 else ""
    doer = Hat("doer", ("work.ready",), ("work.failed",))
    played(spec(LoopPreset("hats", hats=(doer,)), persistent=True, iterations=4), made)
    assert [name for name in made.agent.hats if name == "doer"] == ["doer"] and made.agent.hats[1] == "doer"
    assert made.store.tidied == 2


def test_the_cooldown_is_skipped_when_a_person_said_something():
    made = world(says("LOOP_COMPLETE"), forever=True)

    def speak(session):
        if session.iteration == 2:
            made.store.words.append(Guidance("g-1", "look at issue 7", START_OF_TIME))
        made.store.tasks = (LoopTask(f"t-{session.iteration}", "one", "done"),)
        return says("LOOP_COMPLETE")

    made.agent.turns = [speak]
    played(spec(PERSISTENT, persistent=True, cooldown=30.0, iterations=3), made)
    assert made.clock.slept == [30.0]


def test_a_rate_limit_is_waited_for_and_costs_no_iteration():
    limited = AgentTurn(failure="rate_limit", detail="429", retry_after=90.0)
    made = world(limited, limited, DONE)
    account = played(spec(), made)
    assert (account.ending.reason, len(account.outputs), made.clock.slept) == ("complete", 1, [90.0, 90.0])
    assert account.state.usage.sessions == 3 and made.progress.waits == [90.0, 90.0]


def test_a_wait_that_nobody_names_doubles():
    limited = AgentTurn(failure="rate_limit", detail="429")
    made = world(limited, limited, limited, DONE)
    played(spec(), made)
    assert made.clock.slept == [60.0, 120.0, 240.0]


def test_a_fault_of_the_provider_is_tried_again_three_times():
    fault = AgentTurn(failure="server", detail="API Error: 400 due to tool use concurrency issues")
    made = world(fault, fault, fault, DONE)
    assert played(spec(), made).ending.reason == "complete" and made.clock.slept == [5.0] * 3
    made = world(fault, forever=True)
    assert played(spec(failures=1), made).ending.reason == "failures" and len(made.agent.sessions) == 4


def test_a_timeout_goes_on_with_the_next_session_and_is_not_waited_for():
    made = world(AgentTurn(failure="timeout", detail="not done after 2700 s"), DONE)
    account = played(spec(), made)
    assert (account.ending.reason, len(account.outputs), made.clock.slept) == ("complete", 2, [])


def test_no_wait_is_longer_than_what_is_left_of_the_run():
    made = world(AgentTurn(failure="rate_limit", detail="429", retry_after=1_800.0), forever=True)
    made.store.left = RunState("run-1", "Build the thing", START_OF_TIME, 4, elapsed=14_000.0)
    account = played(spec(failures=1), made)
    assert account.ending.reason == "runtime" and made.clock.slept == []


def test_a_stop_ends_the_wait():
    made = world(AgentTurn(failure="rate_limit", detail="429"))
    made.progress.waiting = lambda seconds, why: setattr(made.store, "asked", "stop")
    made.agent.turns.append(AgentTurn(failure="rate_limit", detail="429"))
    assert played(spec(), made).ending.reason == "stop"


def test_one_session_of_unknown_cost_makes_the_whole_unknown_to_a_cost_limit():
    told = AgentTurn("more to do", usage=SessionUsage(1, 5, 5, 0.1))
    account = played(spec(usd=1.0), world(told, NOTHING, forever=True))
    assert account.ending.reason == "cost" and "1 of 2 sessions" in account.ending.detail
    assert (account.state.usage.cost_usd, account.state.usage.untold) == (0.1, 1)


def test_sessions_of_unknown_cost_stay_counted_in_any_order_of_adding():
    told, silent = SessionUsage(1, cost_usd=0.5), SessionUsage(2)
    assert (told + silent).untold == (silent + told).untold == 2
    assert (silent + silent).untold == 4 and (SessionUsage() + told).untold == 0


class Holder:
    """A person who pauses before the session `at`, and lets it go on after an hour."""

    def __init__(self, made, at: int, then: str = "") -> None:
        self.made, self.at, self.then = made, at, then

    def tell(self, event, prompt="") -> None:
        """Nothing."""

    def current_order(self):
        if len(self.made.agent.sessions) < self.at:
            return ""
        over = self.made.clock.slept and sum(self.made.clock.slept) >= 3600
        return self.then if over else "pause"


def test_a_pause_takes_no_session_and_none_of_the_runs_time():
    made = world(NOTHING, NOTHING, DONE, files={"a": "1"})
    made.progress.watch = Holder(made, 1)
    account = played(spec(runtime=1800.0, require_change=False), made)
    assert (account.ending.reason, account.state.iteration, account.state.elapsed) == ("complete", 3, 0.0)
    assert made.progress.told.count("paused") == made.progress.told.count("resumed") == 1
    assert made.clock.slept == [3600.0]


def test_who_stops_a_paused_run_starts_no_session():
    made = world(NOTHING, forever=True)
    made.progress.watch = Holder(made, 1)
    made.clock.sleep = lambda seconds, until: setattr(made.store, "asked", "stop")
    account = played(spec(), made)
    assert (account.ending.reason, len(made.agent.sessions)) == ("stop", 1)
