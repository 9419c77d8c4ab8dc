"""Ultrawork: builders apart on files of their own, one merge, one reviewer; nobody's fault is another one's."""

from __future__ import annotations

import json

import pytest

from ralph_mission.loop.model.state import CheckResult, LoopTask
from ralph_mission.loop.rules import scope
from ralph_mission.loop.teams import assignments, ultrawork
from ralph_mission.loop.teams.assignments import UnclearAssignment
from tests.loop.fakes import FakeWorkplace
from tests.loop.scripted_hats import CRASH, Cast, World, played, says, spec

CLEAN = says("review.verdict", {"issues": []})
BAD = says("review.verdict", {"issues": [{"file": "a.py", "line": 1, "severity": "critical", "message": "a race"}]})
FIX = says("fix.complete", "mended", {"a.py": "mended"})


def task(id, *files, **more):
    return {"id": id, "title": f"Build {id}", "files": files or [f"{id}.py"], **more}


def planned(*tasks):
    return says("plan.complete", {"tasks": tasks})


AB = planned(task("a"), task("b"))


def built(**files):
    return says("build.complete", "built", {f"{name}.py": text for name, text in files.items()})


def play(world, fixes=ultrawork.FIXES, **limits):
    return ultrawork.run_ultrawork(spec(**limits), world.ports, world, world, fixes)


# --- the way it goes -----------------------------------------------------------------


def test_builders_play_apart_and_one_reviewer_sees_the_whole():
    seen = {}

    def reviews(session, workplace, artifacts):
        seen.update(workplace.files)
        return CLEAN(session, workplace, artifacts)

    world = World(Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[reviews]))
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("complete", 0)
    assert played(account.outputs) == ["planner", "builder", "builder", "reviewer"]
    assert world.batches == [["a", "b"]]
    assert (seen["a.py"], seen["b.py"]) == ("A", "B")
    assert [commit.message for commit in world.workplace.history] == ["a", "b"]


def test_each_builder_may_write_its_files_and_is_counted_for_its_task():
    world = World(Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN]))
    account = play(world)
    assert [session.hat.write_allowed for session in world.cast.of("a") + world.cast.of("b")] == [
        ("/a.py",),
        ("/b.py",),
    ]
    assert [name for name, _ in account.state.by_item] == ["a", "b"]
    assert [output.iteration for output in account.outputs] == [1, 2, 3, 4]


def test_work_is_merged_in_the_order_of_the_tasks():
    world = World(Cast(planner=[planned(task("b"), task("a"))], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN]))
    play(world)
    assert [commit.message for commit in world.workplace.history] == ["b", "a"]


def test_what_the_reviewer_finds_is_fixed_and_reviewed_again():
    world = World(Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[BAD, CLEAN], fixer=[FIX]))
    account = play(world)
    assert account.ending.reason == "complete" and played(account.outputs)[3:] == ["reviewer", "fixer", "reviewer"]
    assert "a race" in world.cast.of("fixer")[0].prompt


def test_fixes_are_bounded():
    world = World(Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[BAD] * 4, fixer=[FIX] * 3))
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("rounds", 2)
    assert "3 fixes" in account.ending.detail and "a race" in account.ending.detail


def test_red_checks_are_fixed_whatever_the_reviewer_says():
    red = CheckResult(False, True, "1 test failed")
    world = World(
        Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN, CLEAN], fixer=[FIX]),
        FakeWorkplace({}, red, CheckResult(True, True)),
    )
    assert play(world).ending.reason == "complete"
    assert "1 test failed" in world.cast.of("fixer")[0].prompt
    assert "1 test failed" in world.cast.of("reviewer")[0].prompt


def test_checks_that_stay_red_never_end_well():
    world = World(
        Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN] * 4, fixer=[FIX] * 3),
        FakeWorkplace({}, CheckResult(False, True, "1 test failed")),
    )
    account = play(world)
    assert account.ending.reason == "rounds" and "1 test failed" in account.ending.detail


# --- dividing ------------------------------------------------------------------------


def test_tasks_that_would_write_the_same_files_are_refused_and_the_planner_is_asked_again():
    overlapping = planned(task("a", "src/**"), task("b", "src/b.py"))
    world = World(Cast(planner=[overlapping, AB], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN]))
    assert play(world).ending.reason == "complete"
    assert "a and b would write the same files: src/** and src/b.py" in world.cast.of("planner")[1].prompt


@pytest.mark.parametrize(
    "payload",
    [
        "tasks follow",
        "[]",
        '{"tasks": []}',
        '{"tasks": [1]}',
        {"tasks": [{"id": "a", "title": "A"}]},
        {"tasks": [task("a"), task("a", "other.py")]},
        {"tasks": [task("../a", "a.py")]},
        {"tasks": [task("a", "../b")]},
        {"tasks": [task("a", "!b")]},
        {"tasks": [task("a", title="")]},
        {"tasks": [task("a", files="a.py")]},
    ],
)
def test_a_plan_that_cannot_be_divided_twice_ends_it(payload):
    world = World(Cast(planner=[says("plan.complete", payload)] * 2))
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("stuck", 1)
    assert "could not be divided" in account.ending.detail and len(account.outputs) == 2 and world.batches == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/**", "src/a.py"),
        ("src", "src/a/b.py"),
        ("src/", "src/a.py"),
        ("*.py", "deep/down/x.py"),
        ("a*", "*b"),
        ("src/*/x.py", "src/[ab]/?.py"),
        ("/src/a.py", "src/a.py"),
        ("SRC/a.py", "src/A.py"),
        ("**/x", "y/x"),
        ("./a.py", "a.py"),
        ("**/a", "deep/a"),
        ("src/**/x", "src/x"),
        ("**", "anything"),
        ("a**b", "ab"),
    ],
)
def test_globs_that_can_name_the_same_path_meet(one, other):
    assert scope.meet([one], [other]) and scope.meet([other], [one])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/a.py", "src/b.py"),
        ("src/**", "tests/**"),
        ("*.py", "*.ts"),
        ("src/a/**", "src/ab/**"),
        ("/a?c", "abbc"),
        ("src/*/x.py", "src/*/y.py"),
        ("/a.py", "b/a.py"),
        ("README.md", "docs/**"),
        ("a.py", "b.py"),
        ("Makefile", "src"),
    ],
)
def test_globs_of_strangers_do_not_meet(one, other):
    assert scope.meet([one], [other]) is None and scope.meet([other], [one]) is None


def test_many_stars_take_no_time():
    assert scope.meet(["*a" * 90 + "x"], ["a*" * 90 + "y"]) is None


def test_a_plan_in_a_fence_is_a_plan():
    assert assignments.parse_independent_tasks(f"```json\n{json.dumps({'tasks': [task('a')]})}\n```")[0].id == "a"
    with pytest.raises(UnclearAssignment, match="not the requested JSON"):
        assignments.parse_independent_tasks("[" * 100_000)


# --- what goes wrong with one ---------------------------------------------------------


def test_a_builder_that_crashes_is_tried_once_more_alone_and_the_others_are_kept():
    world = World(Cast(planner=[AB], a=[CRASH, built(a="A")], b=[built(b="B")], reviewer=[CLEAN]))
    account = play(world)
    assert account.ending.reason == "complete" and world.batches == [["a", "b"], ["a"]]
    assert "it crashed" in world.cast.of("a")[1].prompt
    assert world.workplace.head["a.py"] == "A" and world.workplace.head["b.py"] == "B"


def test_half_of_what_a_crashed_builder_wrote_is_not_taken_over():
    half = says("", writes={"a.py": "half"}, failure="exit")
    world = World(Cast(planner=[AB], a=[half, half], b=[built(b="B")], reviewer=[CLEAN]))
    play(world)
    assert "a.py" not in world.workplace.files


def test_a_task_that_fails_twice_is_failed_and_the_run_says_so_after_the_review_of_the_rest():
    world = World(Cast(planner=[AB], a=[CRASH, CRASH], b=[built(b="B")], reviewer=[CLEAN]))
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("stuck", 1)
    assert account.ending.detail.startswith("tasks failed: a: The last attempt failed (exit): it crashed")
    assert played(account.outputs)[-1] == "reviewer"
    assert "a (failed)" in world.cast.of("reviewer")[0].prompt


def test_when_all_builders_fail_nobody_reviews_nothing():
    world = World(Cast(planner=[planned(task("a"))], a=[CRASH, CRASH]))
    account = play(world)
    assert account.ending.reason == "stuck" and played(account.outputs) == ["planner", "builder", "builder"]


def test_three_steps_in_which_nobody_gets_through_end_as_failures():
    world = World(
        Cast(planner=[planned(task("a"), task("b"), task("c"))], a=[CRASH, CRASH], b=[CRASH, CRASH], c=[CRASH])
    )
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("failures", 1)
    assert world.batches == [["a", "b", "c"], ["a"], ["b"]]


def test_what_a_builder_writes_outside_of_its_files_is_undone_and_it_is_tried_once_more():
    strays = built(a="A", b="stolen")
    world = World(Cast(planner=[AB], a=[strays, built(a="A2")], b=[built(b="B")], reviewer=[CLEAN]))
    account = play(world)
    assert account.ending.reason == "complete" and world.workplace.head["b.py"] == "B"
    assert [change.path for change in account.outputs[1].reverted] == ["b.py"]
    assert "b.py: undone" in world.cast.of("a")[1].prompt


def test_a_builder_that_always_strays_is_failed():
    strays = built(a="A", b="stolen")
    world = World(Cast(planner=[AB], a=[strays, strays], b=[built(b="B")], reviewer=[CLEAN]))
    account = play(world)
    assert account.ending.reason == "stuck" and "left its files" in account.ending.detail
    assert world.workplace.head["b.py"] == "B"


def test_a_conflict_is_told_and_the_task_goes_again_alone_on_what_was_merged():
    notes = {"progress.txt": "mine"}
    seen = {}

    def again(session, workplace, artifacts):
        seen.update(workplace.files)
        return says("build.complete", "", {"b.py": "B", "progress.txt": "both"})(session, workplace, artifacts)

    world = World(
        Cast(
            planner=[AB],
            a=[says("build.complete", "", {"a.py": "A"} | notes)],
            b=[says("build.complete", "", {"b.py": "B"} | notes), again],
            reviewer=[CLEAN],
        )
    )
    account = play(world)
    assert account.ending.reason == "complete" and world.batches == [["a", "b"], ["b"]]
    assert seen["a.py"] == "A" and "progress.txt: a had it first" in world.cast.of("b")[1].prompt
    assert world.workplace.head["progress.txt"] == "both"


# --- limits, and going on ------------------------------------------------------------


def test_no_builder_starts_beyond_the_cost_limit():
    paid = says("build.complete", "", {"a.py": "A"}, usd=1.0)
    world = World(Cast(planner=[says("plan.complete", {"tasks": [task("a"), task("b")]}, usd=0.0)], a=[paid]))
    account = play(world, usd=1.0)
    assert account.ending.reason == "cost" and len(account.outputs) == 2
    assert world.workplace.head["a.py"] == "A"


def test_no_builder_starts_beyond_the_number_of_sessions():
    world = World(Cast(planner=[AB], a=[built(a="A")]))
    account = play(world, iterations=2)
    assert account.ending.reason == "iterations" and len(account.outputs) == 2


@pytest.mark.parametrize("signal", ["stop", "cancel", "restart"])
def test_a_persons_word_keeps_the_others_from_starting(signal):
    def asks(session, workplace, artifacts):
        world.store.asked = signal
        return built(a="A")(session, workplace, artifacts)

    world = World(Cast(planner=[AB], a=[asks]))
    account = play(world)
    assert account.ending.reason == signal and len(account.outputs) == 2


def test_a_run_goes_on_with_the_tasks_that_are_left():
    cut = World(Cast(planner=[AB], a=[built(a="A")]))
    first = play(cut, iterations=2)
    world = World(Cast(b=[built(b="B")], reviewer=[CLEAN]), cut.workplace, pages=cut.pages)
    world.store.left = first.state
    account = play(world)
    assert account.ending.reason == "complete" and played(account.outputs) == ["builder", "reviewer"]


def test_what_failed_is_tried_again_when_a_person_goes_on():
    cut = World(Cast(planner=[AB], a=[CRASH, CRASH], b=[built(b="B")], reviewer=[CLEAN]))
    first = play(cut)
    world = World(Cast(a=[built(a="A")], reviewer=[CLEAN]), cut.workplace, pages=cut.pages)
    world.store.left = first.state
    assert play(world).ending.reason == "complete" and world.batches == [["a"]]


def test_open_tasks_of_the_list_keep_it_from_being_complete():
    world = World(Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN]))
    world.store.tasks = (LoopTask("t1", "left", "ready"),)
    account = play(world)
    assert account.ending.reason == "stuck" and "t1 (ready)" in account.ending.detail


def test_every_event_of_a_session_apart_is_in_the_log():
    world = World(Cast(planner=[AB], a=[built(a="A")], b=[built(b="B")], reviewer=[CLEAN]))
    play(world)
    assert [(event.topic, event.hat, event.iteration) for event in world.store.events] == [
        ("plan.complete", "planner", 1),
        ("build.complete", "builder", 2),
        ("build.complete", "builder", 3),
        ("review.verdict", "reviewer", 4),
    ]
