"""Hats that take turns over fakes: who is next, what they may say and write, what they are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.loop.hats import PATTERNS, PRESETS
from ralph_mission.loop.model.spec import LoopPreset
from ralph_mission.loop.model.state import (
    CONVERGED,
    PLANNED,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    AgentTurn,
    Hat,
    LoopEvent,
    LoopTask,
    PathChange,
    SessionUsage,
)
from tests.loop.fakes import START_OF_TIME
from tests.loop.making import DONE, GREEN, NOTHING, RED, pbr, played, says, spec, verdict, world


def test_a_pattern_runs_as_the_protocol_says_until_the_reviewer_has_nothing_left_to_say():
    made = world(says(PLANNED), says("build.complete"), verdict("a", "b"), says("fix.complete"), verdict())
    account = played(pbr(), made)
    assert account.ending.reason == "complete" and account.state.pending.topic == CONVERGED
    assert made.agent.hats == ["planner", "builder", "reviewer", "fixer", "reviewer"]
    assert [len(output.issues) for output in account.outputs] == [0, 0, 2, 0, 0]
    assert [event.topic for event in made.store.events][:2] == [PLANNED, "build.complete"]


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
    made = world(AgentTurn("LOOP_COMPLETE"), forever=True)
    assert played(pbr(iterations=2), made).ending.reason == "iterations"


CHAIN = (Hat("builder", (START,), ("build.done",)), Hat("closer", ("build.done",), ("build.open", "LOOP_COMPLETE")))


def test_a_hat_whose_last_line_is_the_promise_has_said_it():
    made = world(says("build.done"), DONE)
    account = played(spec(LoopPreset("hats", hats=CHAIN)), made)
    assert account.ending.reason == "complete" and made.agent.hats == ["builder", "closer"]
    assert made.store.events[-1].topic == "LOOP_COMPLETE"


def test_a_hat_may_say_the_promise_of_a_set_in_which_no_hat_is_there_to_say_it():
    hats = (CHAIN[0], replace(CHAIN[1], publishes=("build.open",)))
    assert played(spec(LoopPreset("hats", hats=hats)), world(DONE)).ending.reason == "complete"


@pytest.mark.parametrize("text", ["LOOP_COMPLETE", '<event topic="build.done">it</event>\nLOOP_COMPLETE'])
def test_the_promise_on_a_last_line_does_not_pass_over_the_hat_that_says_it(text):
    made = world(AgentTurn(text), says("build.done", "at last"), DONE)
    account = played(spec(LoopPreset("hats", hats=CHAIN)), made)
    assert account.ending.reason == "complete" and made.agent.hats[-1] == "closer" and len(account.outputs) > 1
    assert not account.outputs[0].promised


def test_a_quoted_promise_of_a_hat_is_no_event():
    made = world(AgentTurn("I may not say `LOOP_COMPLETE` yet.\n> LOOP_COMPLETE"), forever=True)
    account = played(spec(LoopPreset("hats", hats=(replace(CHAIN[1], triggers=(START,)),)), failures=1), made)
    assert account.ending.reason == "failures" and "no event was emitted" in account.ending.detail


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
    assert played(spec(replace(PRESETS["hats"], hats=hats)), made).ending.reason == "complete"
    assert made.agent.hats[3] == "builder" and "2 tests failed" in made.agent.prompts[3]


def test_open_tasks_after_a_clean_verdict_call_the_builder_again():
    made = world(says(PLANNED), says("build.complete"), verdict(), tasks=(LoopTask("t-1", "more", "ready"),))

    def close(_):
        made.store.tasks = (LoopTask("t-1", "more", "done"),)
        return says("build.complete", "again")

    made.agent.turns += [close, verdict()]
    assert played(pbr(), made).ending.reason == "complete" and made.agent.hats[3] == "builder"


@pytest.mark.parametrize(
    ("turn", "why"),
    [(NOTHING, "no event was emitted"), (AgentTurn(f"{says(PLANNED, 'a').text} {says('x').text}"), "one event"),
     (says("build.complete"), "planner may say plan.complete")],
)  # fmt: skip  # one table
def test_a_session_ends_with_exactly_one_event_of_its_hat_or_it_failed_and_hears_why(turn, why):
    made = world(turn, says(PLANNED), says("build.complete"), verdict())
    account = played(pbr(), made)
    assert account.ending.reason == "complete" and account.outputs[0].failure == "event"
    assert made.agent.hats[:2] == ["planner", "planner"] and why in made.agent.prompts[1]


def test_an_event_said_through_files_and_again_in_the_same_words_is_one():
    made = world(lambda _: (made.store.saying.append(LoopEvent(PLANNED, "go")), says(PLANNED, "go"))[1],
                 says("build.complete"), verdict())  # fmt: skip  # three turns
    assert played(pbr(), made).ending.reason == "complete"


def test_an_event_through_files_alone_is_heard():
    made = world(lambda _: made.store.saying.append(LoopEvent(PLANNED, "go")), says("build.complete"), verdict())
    assert played(pbr(), made).ending.reason == "complete"


def test_what_a_failed_session_said_is_not_acted_upon():
    made = world(
        replace(says(PLANNED), failure="timeout", detail="not done"), says(PLANNED), says("build.complete"), verdict()
    )
    played(pbr(), made)
    assert made.agent.hats[:2] == ["planner", "planner"] and len(made.store.events) == 3


def test_a_default_event_is_said_for_a_hat_that_says_nothing():
    hats = (Hat("first", (START,), ("one.done",), "one.done"), Hat("second", ("one.done",), ("LOOP_COMPLETE",)))
    made = world(NOTHING, says("LOOP_COMPLETE"))
    account = played(spec(LoopPreset("hats", hats=hats)), made)
    assert account.ending.reason == "complete" and account.outputs[0].event.topic == "one.done"


def test_handing_the_same_event_out_again_and_again_is_thrash():
    echo = (Hat("echo", ("ping", START), ("ping",)),)
    account = played(spec(LoopPreset("hats", hats=echo)), world(says("ping", "same"), forever=True))
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("thrash", 1, 4)


def test_the_same_event_with_progress_between_is_no_thrash():
    echo = (Hat("echo", ("ping", START), ("ping",)),)
    made = world()
    made.agent.turns = [lambda s: (made.workplace.write("a", str(s.iteration)), says("ping", "same"))[1]]
    made.agent.forever = True
    assert played(spec(LoopPreset("hats", hats=echo), iterations=9), made).ending.reason == "iterations"


def test_an_event_that_nobody_listens_to_goes_to_nobody_in_particular():
    hats = (Hat("only", (START,), ("lost.topic",)),)
    made = world(says("lost.topic"), AgentTurn("LOOP_COMPLETE"))
    assert played(spec(LoopPreset("hats", hats=hats)), made).ending.reason == "complete"
    assert made.agent.hats == ["only", "ralph"]


def test_what_a_hat_writes_elsewhere_is_undone_recorded_and_told():
    made = world(says(PLANNED), says("build.complete"))

    def meddle(_):
        made.workplace.write("src/a.py", "mine now")
        made.workplace.delete("README.md")
        return verdict("x")

    made.workplace.files |= {"README.md": "hello"}
    made.workplace.head = dict(made.workplace.files)
    made.agent.turns += [meddle, says("fix.complete"), verdict()]
    account = played(pbr(), made)
    reverted = {change.path: change.reverted for change in account.outputs[2].reverted}
    assert set(reverted) == {"src/a.py", "README.md"} and "reviewer may write nothing only" in reverted.values()
    assert made.workplace.files == {"README.md": "hello"} and made.workplace.head == {"README.md": "hello"}
    assert made.workplace.history == []
    assert "src/a.py" in made.agent.prompts[3]


def test_foreign_changes_and_mended_files_are_in_the_record():
    made = world(lambda _: setattr(made.workplace, "foreign", (PathChange(".git/hooks/x", "added", "a hook"),)), DONE,
                 mended=(PathChange("progress.txt", "cut short", "the log's past"),))  # fmt: skip  # a world
    account = played(spec(), made)
    assert {change.path for change in account.outputs[0].reverted} == {".git/hooks/x", "progress.txt"}


def test_models_are_the_hats_own_before_the_runs():
    hats = (Hat("a", (START,), ("next",), model="large"), Hat("b", ("next",), ("LOOP_COMPLETE",)))
    made = world(says("next"), says("LOOP_COMPLETE"))
    played(spec(LoopPreset("hats", hats=hats), model="small"), made)
    assert [session.model for session in made.agent.sessions] == ["large", "small"]


def test_what_sessions_took_is_kept_by_hat_and_by_item():
    took = SessionUsage(1, 100, 10, 0.5)
    made = world(replace(says("next"), usage=took), replace(says("LOOP_COMPLETE"), usage=took),
                 tasks=(LoopTask("t-1", "x", "ready"),))  # fmt: skip  # a world
    hats = (Hat("a", (START,), ("next",)), Hat("b", ("next",), ("LOOP_COMPLETE",)))
    state = played(spec(LoopPreset("hats", hats=hats), open_tasks="trust"), made).state
    assert dict(state.by_hat) == {"a": took, "b": took} and dict(state.by_item)["t-1"] == took + took


def test_an_event_said_by_a_command_and_in_the_last_message_is_one():
    hat = Hat("builder", ("loop.start",), ("build.complete",))
    made = world(AgentTurn('<event topic="build.complete">done</event>'), forever=True)
    made.store.saying = [LoopEvent("build.complete", "done", hat="builder", iteration=1, at=START_OF_TIME)]
    played(spec(LoopPreset("hats", hats=(hat,)), iterations=1), made)
    assert [event.topic for event in made.store.events] == ["build.complete"]


def test_commands_that_were_refused_are_in_the_record_and_told_to_the_next_session():
    made = world(AgentTurn("I pushed", refused=("git push --force is denied",)), NOTHING)
    account = played(spec(iterations=2), made)
    assert account.outputs[0].refused == ("git push --force is denied",)
    assert "> - git push --force is denied" in made.agent.prompts[1]


def test_what_a_session_called_and_left_running_is_in_the_record_and_earlier_tries_too():
    first = AgentTurn(failure="server", calls=("Bash: ls",), refused=("git push",))
    made = world(first, AgentTurn("did it", calls=("Bash: cat a",), left_running=("sleep 9",)))
    (output,) = played(spec(iterations=1), made).outputs
    assert output.calls == ("Bash: ls", "Bash: cat a")
    assert (output.left_running, output.refused) == (("sleep 9",), ("git push",))


def test_rounds_of_review_over_one_task_are_not_mistaken_for_being_stuck():
    made = world(tasks=(LoopTask("t-1", "long", "ready"),))

    def turn(session):
        if session.hat.name == "reviewer":
            rounds = made.agent.hats.count("reviewer")
            made.store.tasks = (LoopTask("t-1", "long", "done" if rounds > 5 else "ready"),)
            return verdict(*(["no"] if rounds < 6 else []))
        made.workplace.write("a.py", str(session.iteration))
        return says({"planner": PLANNED, "builder": "build.complete"}.get(session.hat.name, "fix.complete"))

    made.agent.turns, made.agent.forever = [turn], True
    account = played(spec(PRESETS["plan-build-review"]), made)
    assert account.ending.reason == "complete" and account.state.skipped == frozenset()


def test_a_run_that_ends_with_issues_left_asks_for_a_persons_verdict():
    verdict = '{"issues": [{"severity": "minor", "message": "a name"}]}'
    hat = Hat("reviewer", ("loop.start",), (VERDICT,))
    made = world(AgentTurn(f'<event topic="{VERDICT}">{verdict}</event>'))
    account = played(spec(LoopPreset("hats", hats=(hat,)), threshold=1), made)
    assert account.ending.reason == "complete" and "1 issues left" in account.ending.detail
    assert "ralph agent verdict" in account.ending.next_step
