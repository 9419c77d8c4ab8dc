"""The project's own checks run after each session that changed something, and the next session hears of it."""

from __future__ import annotations

from ralph_mission.loop.hats import PATTERNS, PRESETS
from ralph_mission.loop.model.spec import RunSpec
from ralph_mission.loop.model.state import AgentTurn, CheckResult, Session
from ralph_mission.loop.run import run_loop
from tests.loop.fakes import FakeStore, FakeWorkplace, FakeWorld, PlannedAgent
from tests.loop.test_patience import issues, says

RED, GREEN = CheckResult(False, True, "2 tests failed"), CheckResult(True, True)


def test_free_form_hears_of_red_checks_in_the_session_after() -> None:
    world = FakeWorld(PlannedAgent(), FakeWorkplace({}, RED, GREEN, GREEN), FakeStore())
    world.agent.turns = [
        lambda _: world.workplace.write("a.py"),
        lambda _: world.workplace.write("b.py"),
        AgentTurn("LOOP_COMPLETE"),
    ]
    assert run_loop(RunSpec("Build the thing", PRESETS["loop"]), world.ports).ending.reason == "complete"
    heard = ["2 tests failed" in prompt for prompt in world.agent.prompts]
    assert heard == [False, True, False]


def test_a_reviewer_is_told_what_the_checks_say_about_what_it_reviews() -> None:
    world = FakeWorld(PlannedAgent(), FakeWorkplace({}, RED, GREEN, GREEN), FakeStore())

    def build(_: Session) -> AgentTurn:
        world.workplace.write("a.py")
        return says("build.complete")

    world.agent.turns = [says("plan.complete"), build, says("review.verdict", issues(0))]
    spec = RunSpec("Build the thing", PRESETS["hats"])
    preset = type(spec.preset)("plan-build-review", spec.limits, hats=PATTERNS["plan-build-review"].hats)
    assert run_loop(RunSpec("Build the thing", preset), world.ports).ending.reason == "complete"
    assert "2 tests failed" in world.agent.prompts[2]


def test_a_session_that_changed_nothing_costs_no_check() -> None:
    world = FakeWorld(PlannedAgent(AgentTurn("I looked around."), forever=True), FakeWorkplace({}, RED), FakeStore())
    run_loop(RunSpec("Build the thing", PRESETS["loop"]), world.ports)
    assert world.workplace.verified == 0
