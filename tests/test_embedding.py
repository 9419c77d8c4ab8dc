"""The loop inside another program: rotation, prompts, convergence, records that nobody can change."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

import ralph_mission
from ralph_mission.app.embedding import RalphLoop, get_hat_prompt
from ralph_mission.errors import UserError
from ralph_mission.loop.hats import PATTERNS
from ralph_mission.loop.model.state import Hat, HatOutput, LoopEvent

DOCUMENT = Path(__file__).parent.parent / "docs" / "extending.md"


def says(topic: str, payload: str = "done") -> str:
    return f'Worked.\n<event topic="{topic}">{payload}</event>'


FOUND = says("review.verdict", '{"issues": [{"file": "a.py", "line": 3, "message": "off by one"}]}')
CLEAN = says("review.verdict", '{"issues": []}')


def played(loop: RalphLoop, *words: str) -> RalphLoop:
    for text in words:
        loop.record(loop.read(text))
    return loop


def test_hats_take_turns_until_the_reviewer_has_nothing_left_to_say():
    loop, worn = RalphLoop("Refuse an empty name", pattern="plan-build-review"), []
    for text in (says("plan.complete"), says("build.complete"), FOUND, says("fix.complete"), CLEAN):
        assert not loop.converged
        worn.append(loop.hat.name)
        loop.record(loop.read(text))
    assert worn == ["planner", "builder", "reviewer", "fixer", "reviewer"]
    assert loop.converged and loop.iteration == 5 and loop.ending.reason == "complete"
    assert [len(output.issues) for output in loop.outputs] == [0, 0, 1, 0, 0]


def test_a_prompt_holds_the_task_the_last_output_and_the_issues():
    loop = played(RalphLoop("Refuse an empty name"), says("plan.complete"), says("build.complete"), FOUND)
    prompt = loop.get_hat_prompt(loop.hat)
    assert loop.hat.name == "fixer" and "Refuse an empty name" in prompt
    assert "off by one" in prompt and "a.py:3" in prompt and "Worked." in prompt
    assert loop.get_hat_prompt() == prompt


def test_the_prompt_of_a_hat_can_be_had_without_a_loop():
    reviewer = PATTERNS["debug"].hats[2]
    before = HatOutput("fixer", 3, LoopEvent("fix.complete", "mended"), "I mended it")
    prompt = get_hat_prompt(reviewer, "Find the leak", before)
    assert "Find the leak" in prompt and "I mended it" in prompt and "YOUR HAT: reviewer" in prompt
    assert "Find the leak" in get_hat_prompt(reviewer, "Find the leak")


def test_an_output_can_be_made_by_hand():
    loop = played(RalphLoop("x"), says("plan.complete"), says("build.complete"))
    assert loop.record(HatOutput("reviewer", 3, LoopEvent("review.verdict", '{"issues": []}'))).name == "ralph"
    assert loop.converged


def test_records_cannot_be_changed():
    loop = played(RalphLoop("x"), says("plan.complete"))
    with pytest.raises(FrozenInstanceError):
        loop.outputs[0].summary = "better"
    assert isinstance(loop.outputs, tuple) and isinstance(loop.outputs[0], HatOutput)


def test_a_record_of_another_hat_or_session_is_refused():
    loop = RalphLoop("x")
    given = loop.read(says("plan.complete"))
    for wrong in (replace(given, hat="builder"), replace(given, iteration=2)):
        with pytest.raises(ValueError, match="session 1 is due, of planner"):
            loop.record(wrong)
    played(loop, says("plan.complete"), says("build.complete"), CLEAN)
    with pytest.raises(ValueError, match="has converged"):
        loop.record(loop.read(CLEAN))


@pytest.mark.parametrize("text", ["nothing", says("build.complete"), says("plan.complete") + says("build.complete")])
def test_not_exactly_one_event_of_the_hat_is_a_failed_session_of_the_same_hat_again(text):
    loop = played(RalphLoop("x"), text)
    assert loop.outputs[0].failure == "event" and loop.hat.name == "planner"
    assert loop.outputs[0].reason in loop.get_hat_prompt()


def test_limits_say_when_to_stop():
    failing = played(RalphLoop("x"), "a", "b", "c")
    assert failing.ending.reason == "failures" and not failing.converged
    short = played(RalphLoop("x", max_iterations=1), says("plan.complete"))
    assert short.ending.reason == "iterations" and RalphLoop("x").ending is None


def test_hats_of_ones_own_end_with_the_promise_where_nobody_reviews():
    hats = (Hat("writer", ("loop.start",), ("draft.done",)), Hat("editor", ("draft.done",), ("LOOP_COMPLETE",)))
    loop = played(RalphLoop("x", hats=hats), says("draft.done"))
    assert loop.hat.name == "editor" and played(loop, says("LOOP_COMPLETE")).converged


def test_hats_that_cannot_work_together_are_refused():
    with pytest.raises(UserError, match="to which no hat listens"):
        RalphLoop("x", hats=(Hat("only", ("loop.start",), ("lost.topic",)),))
    with pytest.raises(UserError, match="no pattern"):
        RalphLoop("x", pattern="nonsense")


def test_the_threshold_counts_what_is_less_than_critical():
    minor = says("review.verdict", '{"issues": [{"message": "a name", "severity": "minor"}]}')
    words = (says("plan.complete"), says("build.complete"), minor)
    assert played(RalphLoop("x", threshold=1), *words).converged and not played(RalphLoop("x"), *words).converged


def test_the_example_in_the_documentation_runs():
    _, example, _ = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "converged after 5 sessions" in done.stdout
    assert "3 reviewer review.verdict 1\n" in done.stdout and "5 reviewer review.verdict 0\n" in done.stdout


def test_the_names_are_imported_only_when_they_are_asked_for():
    code = "import sys, ralph_mission; print([n for n in sys.modules if n.startswith('ralph_mission.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="nonsense"):
        ralph_mission.nonsense  # noqa: B018  # the look-up is the test
