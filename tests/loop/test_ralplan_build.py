"""Ralplan that builds: what is approved while the rest is revised, the rest after it, until the checks are green."""

from __future__ import annotations

import json

from ralph_mission.loop.model.state import CheckResult, LoopTask
from ralph_mission.loop.teams import ralplan
from tests.loop.scripted_hats import CRASH, Cast, World, played, says, spec
from tests.loop.teams.test_ralplan import BETTER, EXPIRY, PLAN, YES, advised, judged, plans, verdict

RED, GREEN = CheckResult(False, True, "a test fails"), CheckResult(True, True)


def play(world, **limits):
    return ralplan.run_ralplan(spec(**limits), world.ports, world, world, build=True)


def agreed(*builders, checks=()):
    """A plan that is approved at once, and who builds it."""
    world = World(Cast(planner=plans(PLAN), architect=[advised()], critic=[verdict(**YES)], builder=list(builders)))
    world.workplace.checks = list(checks)
    return world


def test_approved_sections_are_built_while_the_rest_is_revised():
    world = World(
        Cast(
            planner=plans(PLAN, BETTER),
            architect=[advised()] * 2,
            critic=[judged(Store=[], Refresh=[EXPIRY]), judged(Refresh=[])],
            builder=[says("build.complete", "done", {"store.py": "s"}), says("build.complete")],
        )
    )
    account = play(world)
    assert account.ending.reason == "complete"
    assert world.batches[2] == ["planner", "builder"]
    prompt = world.cast.of("builder")[0].prompt
    assert "Keep tokens." in prompt and "Refresh them." not in prompt
    assert world.workplace.head["store.py"] == "s"
    rest = world.cast.of("builder")[1].prompt
    assert "an expired one is asked for anew" in rest and "Keep tokens." not in rest
    assert json.loads(world.pages["plan.json"])["built"] == ["Store", "Refresh"]


def test_a_builder_that_crashes_does_not_hold_up_the_plan():
    world = World(
        Cast(
            planner=plans(PLAN, BETTER),
            architect=[advised()] * 2,
            builder=[CRASH, says("build.complete")],
            critic=[judged(Store=[], Refresh=[EXPIRY]), judged(Refresh=[])],
        )
    )
    assert play(world).ending.reason == "complete"
    assert "Keep tokens." in world.cast.of("builder")[1].prompt
    assert json.loads(world.pages["plan.json"])["built"] == ["Store", "Refresh"]


def test_what_is_built_cannot_be_unapproved_the_plan_has_to_mend_it():
    mended = BETTER + "\n## Safety\nEncrypt.\n"
    world = World(
        Cast(
            planner=plans(PLAN, BETTER, mended),
            architect=[advised()] * 3,
            builder=[says("build.complete")] * 3,
            critic=[judged(Store=[], Refresh=[EXPIRY]), judged(Store=["not safe"], Refresh=[]), judged(Safety=[])],
        )
    )
    assert play(world).ending.reason == "complete"
    assert "the plan: Store is built already: not safe" in world.cast.of("planner")[2].prompt


def test_red_checks_at_the_end_are_the_builders_until_they_are_green():
    world = agreed(*[says("build.complete")] * 3, checks=[RED, RED, GREEN])
    account = play(world)
    assert account.ending.reason == "complete" and "all of it is built" in account.ending.detail
    assert played(account.outputs) == ["planner", "critic", "architect", "builder", "builder", "builder"]
    assert "a test fails" in world.cast.of("builder")[1].prompt


def test_checks_that_stay_red_end_with_rounds_and_are_looked_at_again():
    world = agreed(*[says("build.complete")] * 4, checks=[RED])
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("rounds", 2)
    assert "a test fails" in account.ending.detail and len(world.cast.of("builder")) == 4
    again = World(Cast(builder=[says("build.complete")]), workplace=world.workplace, pages=world.pages)
    again.store.left = account.state
    again.workplace.checks, again.workplace.verified = [RED, GREEN], 0
    assert play(again).ending.reason == "complete"
    assert played(again.progress.account.outputs) == ["builder"]


def test_open_tasks_keep_a_built_plan_from_being_complete():
    world = agreed(says("build.complete"))
    world.store.tasks = (LoopTask("t-1", "write the docs", "ready"),)
    assert play(world).ending.reason == "stuck"


def test_without_build_nobody_builds():
    world = agreed()
    account = ralplan.run_ralplan(spec(), world.ports, world, world)
    assert account.ending.reason == "complete" and "builder" not in played(account.outputs)
