"""Team: owners of disjoint files, a Lead who hears what went wrong, a Tester, and fix loops that end."""

from __future__ import annotations

import json

import pytest

from ralph_mission.loop.model.state import CheckResult
from ralph_mission.loop.teams import team
from tests.loop.fakes import FakeWorkplace
from tests.loop.scripted_hats import CRASH, Cast, World, played, says, spec

MEMBERS = [{"name": "backend", "files": ["api/**"]}, {"name": "frontend", "files": ["web/**"]}]
WORKS = says("verification.passed", "all of it works")


def task(id, owner, *needs):
    return {"id": id, "title": f"Build {id}", "description": f"The {id}.", "owner": owner, "needs": list(needs)}


def plan(*tasks, members=MEMBERS):
    return says("plan.complete", {"members": members, "tasks": list(tasks)})


BOTH = plan(task("users", "backend"), task("page", "frontend"))


def built(*paths, text="built", payload="built"):
    return says("build.complete", payload, dict.fromkeys(paths, text))


def fails(*issues):
    rows = [{"file": file, "severity": "critical", "message": message} for file, message in issues]
    return says("verification.failed", {"issues": rows})


def decides(advice="", *tasks):
    return says("lead.decision", {"advice": advice, "tasks": list(tasks)})


def play(world, fixes=team.FIXES, **limits):
    return team.run_team(spec(**limits), world.ports, world, world, fixes)


# --- the way it goes -----------------------------------------------------------------


def test_the_lead_delegates_the_owners_build_apart_the_tester_verifies():
    world = World(Cast(lead=[BOTH], users=[built("api/a")], page=[built("web/a")], tester=[WORKS]))
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("complete", 0)
    assert played(account.outputs) == ["lead", "backend", "frontend", "tester"]
    assert world.batches == [["users", "page"]]
    assert [session.hat.write_allowed for session in world.cast.of("users")] == [("api/**",)]
    assert set(world.workplace.head) >= {"api/a", "web/a"}


def test_a_task_waits_for_what_it_needs_and_an_owner_has_one_at_a_time():
    world = World(
        Cast(
            lead=[plan(task("page", "frontend", "users"), task("users", "backend"), task("orders", "backend"))],
            users=[built("api/a")],
            orders=[built("api/b")],
            page=[built("web/a")],
            tester=[WORKS],
        )
    )
    assert play(world).ending.reason == "complete"
    assert world.batches == [["users"], ["page", "orders"]]


# --- the lead ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        "we will see",
        {"members": [], "tasks": [task("a", "backend")]},
        {"members": MEMBERS, "tasks": []},
        {"members": MEMBERS, "tasks": [task("a", "nobody")]},
        {"members": MEMBERS, "tasks": [task("a", "backend", "ghost")]},
        {"members": MEMBERS, "tasks": [task("a", "backend", "b"), task("b", "frontend", "a")]},
        {"members": [*MEMBERS, {"name": "other", "files": ["api/users.py"]}], "tasks": [task("a", "backend")]},
        {"members": [{"name": "tester", "files": ["api/**"]}], "tasks": [task("a", "tester")]},
        {"members": [{"name": "all", "files": []}], "tasks": [task("a", "all")]},
    ],
)
def test_a_plan_that_cannot_be_handed_out_twice_ends_it(payload):
    world = World(Cast(lead=[says("plan.complete", payload)] * 2))
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("stuck", 1)
    assert "the lead made no plan" in account.ending.detail and len(account.outputs) == 2


def test_a_plan_that_was_refused_comes_back_with_the_reason():
    shared = plan(task("a", "backend"), members=[*MEMBERS, {"name": "ops", "files": ["api/Makefile"]}])
    world = World(Cast(lead=[shared, BOTH], users=[built("api/a")], page=[built("web/a")], tester=[WORKS]))
    assert play(world).ending.reason == "complete"
    assert "backend and ops would write the same files" in world.cast.of("lead")[1].prompt


def test_what_an_owner_writes_outside_is_undone_and_told_to_the_lead_whose_task_goes_to_the_owner():
    world = World(
        Cast(
            lead=[BOTH, decides("the page needs a route", task("route", "backend"))],
            users=[built("api/a")],
            page=[built("web/a", "api/route")],
            route=[built("api/route", text="mine")],
            tester=[WORKS],
        )
    )
    account = play(world)
    assert account.ending.reason == "complete"
    assert [change.path for change in account.outputs[2].reverted] == ["api/route"]
    assert (
        "frontend, page" in world.cast.of("lead")[1].prompt and "api/route: undone" in world.cast.of("lead")[1].prompt
    )
    assert "the page needs a route" in world.cast.of("route")[0].prompt
    assert world.workplace.head["api/route"] == "mine" and "web/a" in world.workplace.head


def test_a_conflict_is_told_to_the_lead_and_the_task_goes_again_with_the_advice():
    world = World(
        Cast(
            lead=[BOTH, decides("frontend writes the notes last")],
            tester=[WORKS],
            users=[built("api/a", "progress.txt")],
            page=[built("web/a", "progress.txt"), built("web/a", "progress.txt", text="both")],
        )
    )
    assert play(world).ending.reason == "complete"
    assert world.batches == [["users", "page"], ["page"]]
    assert "progress.txt: users had it first" in world.cast.of("lead")[1].prompt
    assert "frontend writes the notes last" in world.cast.of("page")[1].prompt
    assert world.workplace.head["progress.txt"] == "both"


@pytest.mark.parametrize(
    "decision",
    [
        "just go on",
        {"advice": "x", "tasks": [task("users", "backend")]},
        {"tasks": [task("new", "nobody")]},
        {"tasks": "all"},
    ],
)
def test_a_decision_that_cannot_be_handed_out_is_advice_and_no_more(decision):
    world = World(
        Cast(
            lead=[BOTH, says("lead.decision", decision)],
            users=[CRASH, built("api/a")],
            page=[built("web/a")],
            tester=[WORKS],
        )
    )
    assert play(world).ending.reason == "complete"
    assert world.batches == [["users", "page"], ["users"]]


# --- fix loops -----------------------------------------------------------------------


def test_what_the_tester_finds_goes_to_the_owner_of_the_file():
    world = World(
        Cast(
            lead=[BOTH],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[fails(("web/a", "the button is dead")), WORKS],
            fix_1_frontend=[built("web/a", text="mended")],
        )
    )
    account = play(world)
    assert account.ending.reason == "complete" and world.batches == [["users", "page"], ["fix-1-frontend"]]
    assert "the button is dead" in world.cast.of("fix-1-frontend")[0].prompt
    assert world.workplace.head["web/a"] == "mended"


def test_several_owners_mend_at_the_same_time():
    world = World(
        Cast(
            lead=[BOTH],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[fails(("./web/a", "dead"), ("api/a", "slow")), WORKS],
            frontend=[built("web/a", text="m")],
            backend=[built("api/a", text="m")],
        )
    )
    assert play(world).ending.reason == "complete"
    assert world.batches[1] == ["fix-1-backend", "fix-1-frontend"]


def test_what_nobody_owns_is_the_leads_to_give_away():
    world = World(
        Cast(
            lead=[BOTH, decides("", task("docs", "backend"))],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[fails(("README", "it lies")), WORKS],
            docs=[built("api/README")],
        )
    )
    assert play(world).ending.reason == "complete"
    assert "nobody owns this: - [critical] README: it lies" in world.cast.of("lead")[1].prompt
    assert world.batches[1] == ["docs"]


def test_what_the_lead_gives_to_nobody_is_everybodys():
    world = World(
        Cast(
            lead=[BOTH, decides("look at it")],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[says("verification.failed", "it does not start"), WORKS],
            backend=[built("api/a", text="m")],
            frontend=[built("web/b")],
        )
    )
    assert play(world).ending.reason == "complete"
    assert world.batches[1] == ["fix-1-backend", "fix-1-frontend"]


def test_fix_loops_are_bounded():
    world = World(
        Cast(
            lead=[BOTH],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[fails(("web/a", "the button is dead"))] * 4,
            frontend=[built("web/a", text=str(n)) for n in range(3)],
        )
    )
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("rounds", 2)
    assert "3 fix loops" in account.ending.detail and "the button is dead" in account.ending.detail
    assert played(account.outputs).count("tester") == 4


def test_red_checks_are_a_fault_even_when_the_tester_passes():
    world = World(
        Cast(
            lead=[BOTH, decides("backend", task("mend", "backend"))],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[WORKS, WORKS],
            mend=[built("api/a", text="m")],
        ),
        FakeWorkplace({}, CheckResult(False, True, "2 failed"), CheckResult(True, True)),
    )
    assert play(world).ending.reason == "complete"
    assert "2 failed" in world.cast.of("lead")[1].prompt


@pytest.mark.parametrize("payload", ["", {"issues": []}])
def test_a_failure_that_names_nothing_is_still_one(payload):
    world = World(
        Cast(
            lead=[BOTH, decides()],
            users=[built("api/a")],
            page=[built("web/a")],
            tester=[says("verification.failed", payload)] * 2,
            backend=[built("api/b")],
            frontend=[built("web/b")],
        )
    )
    assert play(world, fixes=1).ending.reason == "rounds"


# --- what goes wrong with one ---------------------------------------------------------


def test_a_teammate_that_crashes_is_tried_once_more_and_the_others_are_kept():
    world = World(Cast(lead=[BOTH, decides()], users=[CRASH, built("api/a")], page=[built("web/a")], tester=[WORKS]))
    account = play(world)
    assert account.ending.reason == "complete" and world.batches == [["users", "page"], ["users"]]


def test_a_task_that_fails_takes_down_only_what_needs_it():
    world = World(
        Cast(
            lead=[
                plan(task("users", "backend"), task("page", "frontend"), task("list", "frontend", "users")),
                decides(),
                decides(),
            ],
            users=[CRASH, CRASH],
            page=[built("web/a")],
            tester=[WORKS],
        )
    )
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("stuck", 1)
    assert "users (backend)" in account.ending.detail and "list (frontend): it waits for users" in account.ending.detail
    assert "web/a" in world.workplace.head


def test_when_everything_fails_nobody_tests_nothing():
    world = World(Cast(lead=[plan(task("users", "backend")), decides(), decides()], users=[CRASH, CRASH]))
    assert play(world).ending.reason == "stuck"


# --- limits, and going on ------------------------------------------------------------


def test_no_teammate_starts_beyond_the_cost_limit():
    lead = says(
        "plan.complete", {"members": MEMBERS, "tasks": [task("users", "backend"), task("page", "frontend")]}, usd=0.0
    )
    world = World(Cast(lead=[lead], users=[says("build.complete", writes={"api/a": "a"}, usd=2.0)]))
    account = play(world, usd=2.0)
    assert account.ending.reason == "cost" and len(account.outputs) == 2


@pytest.mark.parametrize("signal", ["stop", "cancel"])
def test_a_persons_word_ends_it_before_the_next_session(signal):
    def asks(session, workplace, artifacts):
        world.store.asked = signal
        return built("api/a")(session, workplace, artifacts)

    world = World(Cast(lead=[BOTH], users=[asks]))
    account = play(world)
    assert account.ending.reason == signal and len(account.outputs) == 2


def test_a_run_goes_on_with_the_tasks_that_are_left():
    cut = World(Cast(lead=[BOTH], users=[built("api/a")]))
    first = play(cut, iterations=2)
    assert first.ending.reason == "iterations"
    assert [row["status"] for row in json.loads(cut.pages["team.json"])["tasks"]] == ["done", "todo"]
    world = World(Cast(page=[built("web/a")], tester=[WORKS]), cut.workplace, pages=cut.pages)
    world.store.left = first.state
    account = play(world)
    assert account.ending.reason == "complete" and played(account.outputs) == ["frontend", "tester"]


def test_an_interrupt_is_an_ending_of_its_own():
    def interrupted(session, workplace, artifacts):
        raise KeyboardInterrupt

    account = play(World(Cast(lead=[BOTH], users=[interrupted])))
    assert (account.ending.reason, account.ending.code) == ("interrupted", 130)


def test_who_tries_again_does_so_alone():
    tasks = plan(task("users", "backend"), task("page", "frontend"), task("list", "frontend"))
    world = World(Cast(lead=[tasks, decides()], users=[CRASH, built("api/a")], page=[built("web/a")],
                       list=[built("web/b")], tester=[WORKS]))  # fmt: skip  # one call
    assert play(world).ending.reason == "complete"
    assert world.batches == [["users", "page"], ["users"], ["list"]]
