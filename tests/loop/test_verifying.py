"""The project's own checks run after each session that changed something, and the next session hears of it."""

from __future__ import annotations

from ralph_mission.loop.model import Session, Turn, Verification
from ralph_mission.loop.order import Order
from ralph_mission.loop.patterns import PATTERNS
from ralph_mission.loop.presets import PRESETS
from ralph_mission.loop.run import run
from tests.loop.fakes import FakeDesk, FakeWorkplace, FakeWorld, PlannedAgent
from tests.loop.test_patience import issues, says

RED, GREEN = Verification(False, True, "2 tests failed"), Verification(True, True)


def test_free_form_hears_of_red_checks_in_the_session_after() -> None:
    world = FakeWorld(PlannedAgent(), FakeWorkplace({}, RED, GREEN, GREEN), FakeDesk())
    world.agent.turns = [
        lambda _: world.workplace.write("a.py"),
        lambda _: world.workplace.write("b.py"),
        Turn("LOOP_COMPLETE"),
    ]
    assert run(Order("Build the thing", PRESETS["loop"]), world.ports).ending.reason == "complete"
    heard = ["2 tests failed" in prompt for prompt in world.agent.prompts]
    assert heard == [False, True, False]


def test_a_reviewer_is_told_what_the_checks_say_about_what_it_reviews() -> None:
    world = FakeWorld(PlannedAgent(), FakeWorkplace({}, RED, GREEN, GREEN), FakeDesk())

    def build(_: Session) -> Turn:
        world.workplace.write("a.py")
        return says("build.complete")

    world.agent.turns = [says("plan.complete"), build, says("review.verdict", issues(0))]
    order = Order("Build the thing", PRESETS["hats"])
    preset = type(order.preset)("plan-build-review", order.limits, hats=PATTERNS["plan-build-review"].hats)
    assert run(Order("Build the thing", preset), world.ports).ending.reason == "complete"
    assert "2 tests failed" in world.agent.prompts[2]


def test_a_session_that_changed_nothing_costs_no_check() -> None:
    world = FakeWorld(PlannedAgent(Turn("I looked around."), forever=True), FakeWorkplace({}, RED), FakeDesk())
    run(Order("Build the thing", PRESETS["loop"]), world.ports)
    assert world.workplace.verified == 0
