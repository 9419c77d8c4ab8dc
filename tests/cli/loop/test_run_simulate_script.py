"""The built-in scripts play every pattern, and what is shown is what happened."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.agents.scripted import script as read_script
from ralph_mission.cli.loop import run
from ralph_mission.loop.hats import PATTERNS
from ralph_mission.loop.model.spec import RunEnding, RunResult
from ralph_mission.loop.model.state import HatOutput, LoopEvent, PathChange, ReviewIssue, RunState
from ralph_mission.loop.rules.scope import why_outside
from tests.loop.fakes import START_OF_TIME


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_every_hat_has_steps_that_it_may_take(pattern):
    script = read_script(run.pattern_script(pattern))
    assert set(script) == {hat.name for hat in pattern.hats}
    for hat in pattern.hats:
        for step in script[hat.name]:
            assert step.event is not None and step.event.topic in hat.publishes
            assert [path for path in step.write if why_outside(hat, path)] == []


def account(*outputs: HatOutput, reason="complete") -> RunResult:
    return RunResult(RunEnding(reason, "3 sessions"), RunState("r", "o", START_OF_TIME), outputs)


OUTPUTS = (
    HatOutput("builder", 1, LoopEvent("build.complete"),
              changes=(PathChange("a.py", "added"), PathChange("docs/x", "added", "outside"))),
    HatOutput("reviewer", 2, LoopEvent("review.verdict", issues=(ReviewIssue("bad"),))),
    HatOutput("reviewer", 3, None, failure="event"),
)  # fmt: skip  # one list


def test_a_simulation_is_told_session_by_session():
    assert run.summary_text("debug", account(*OUTPUTS, reason="failures")).splitlines() == [
        "  1  builder     build.complete        a.py  undone: docs/x",
        "  2  reviewer    review.verdict        1 issue",
        "  3  reviewer    failed: event",
        "debug: failures, 3 sessions; issues per review: 1",
    ]


def test_programs_get_the_same():
    given = run.document("debug", account(*OUTPUTS))
    assert given["converged"] and given["issues_per_review"] == [1]
    assert [row["event"] for row in given["sessions"]] == ["build.complete", "review.verdict", None]
    assert given["sessions"][0]["undone"] == ["docs/x"] and given["sessions"][2]["failure"] == "event"
