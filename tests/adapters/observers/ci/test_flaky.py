"""What fails by chance: only what failed and passed on the same code, and on more than one commit."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.observers.ci import failed_tests
from ralph_mission.adapters.observers.ci.history import ChanceFailure, CiCursor, chance_failures
from ralph_mission.adapters.sandbox.excerpt import failing_lines
from ralph_mission.mission.model.forge import WorkflowRun
from ralph_mission.mission.model.mission import Signal
from tests.adapters.observers.ci.ci_world import LOG, NIGHTLY, CiWorld, ci_world

REPORT = b"""<?xml version="1.0"?><testsuites><testsuite name="s"><testcase classname="a.B" name="ok"/>
<testcase classname="a.B" name="late"><failure message="x">boom</failure></testcase>
<testcase classname="a.B" name="left"><skipped/></testcase>
<testcase name="lucky"><flakyFailure message="x"/></testcase></testsuite></testsuites>"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CiWorld]:
    with ci_world(tmp_path) as made:
        yield made


def kinds(world: CiWorld) -> list[str]:
    return [signal.kind for signal in world.look().signals]


def flaky(world: CiWorld) -> Signal:
    (signal,) = world.look().signals
    assert signal.kind == "flaky-check"
    return signal


def retried(world: CiWorld, **rest: object) -> int:
    """A push that fails and passes when it is tried again; the observer looks at neither."""
    world.push("failure", **rest)
    number = 1000 + world.runs
    world.again(number, "success")
    return number


def test_a_step_that_passed_at_the_second_try_on_two_commits_is_flaky(world: CiWorld) -> None:
    world.push()
    retried(world)
    assert kinds(world) == []
    retried(world)
    world.hub.fake.clock.advance(86_400)
    told = flaky(world)
    assert told.title == "ci, test, Run pytest: failed and passed on the same code at 2 commits"
    assert flaky(world) == told


def test_a_nightly_run_that_passed_at_the_second_try_on_two_commits_is_flaky(world: CiWorld) -> None:
    for _ in range(2):
        world.commit()
        world.again(world.nightly("failure"), "success")
    assert flaky(world).essence[1:3] == (NIGHTLY, "test")


def test_many_tries_of_one_commit_are_one(world: CiWorld) -> None:
    world.push("failure")
    for conclusion in ("failure", "failure", "success"):
        world.again(1001, conclusion)
    assert kinds(world) == []


def test_a_second_run_of_the_same_commit_that_passes_is_the_same_as_a_second_try(world: CiWorld) -> None:
    for _ in range(2):
        world.commit()
        world.nightly("failure"), world.nightly("success")
    assert flaky(world).essence[2:] == ("test", "Run pytest")


def test_places_in_a_matrix_are_one_step(world: CiWorld) -> None:
    retried(world, jobs=[("test (3.11)", "Run pytest")])
    retried(world, jobs=[("test (3.12)", "Run pytest")])
    assert flaky(world).essence[2:] == ("test", "Run pytest")


def test_other_steps_are_counted_by_themselves(world: CiWorld) -> None:
    retried(world, jobs=[("test", "Run pytest")])
    retried(world, jobs=[("test", "Install")])
    assert kinds(world) == []


def test_what_was_cancelled_and_passed_later_is_not_flaky(world: CiWorld) -> None:
    for _ in range(2):
        world.push("cancelled")
        world.again(1000 + world.runs, "success")
    assert kinds(world) == []


def test_broken_and_mended_again_and_again_is_not_flaky(world: CiWorld) -> None:
    for _ in range(4):
        world.push(), world.push("failure"), world.push()
    assert kinds(world) == []


def test_one_red_run_in_a_step_known_to_be_flaky_is_no_alarm_and_a_second_is(world: CiWorld) -> None:
    retried(world), retried(world)
    world.push("failure")
    assert kinds(world) == ["flaky-check"]
    world.push("failure")
    assert kinds(world) == ["broken-build", "flaky-check"]


def test_another_step_of_a_flaky_workflow_is_an_alarm(world: CiWorld) -> None:
    retried(world), retried(world)
    world.push("failure", jobs=[("test", "Run pytest"), ("lint", "Run ruff")])
    assert kinds(world) == ["broken-build", "flaky-check"]


def test_it_is_forgotten_after_a_month_without(world: CiWorld) -> None:
    retried(world), retried(world)
    assert kinds(world) == ["flaky-check"]
    assert world.look(days=31).signals == ()


def test_tests_are_named_where_a_run_kept_a_report(world: CiWorld) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("results/junit.xml", REPORT)
    for _ in range(2):
        world.hub.fake.artifact(retried(world), "test-results", made.getvalue())
    told = flaky(world)
    assert told.title.endswith("in a.B::late") and "test: lucky" in told.detail and "a.B::left" not in told.detail


# --- lone failures --------------------------------------------------------------------

START = datetime(2026, 5, 4, tzinfo=UTC)


def history(*conclusions: str, name: str = "ci") -> list[WorkflowRun]:
    """Pushes a, b, c, …, an hour apart."""
    times = [START + timedelta(hours=number) for number in range(len(conclusions))]
    return [
        WorkflowRun(number, 7, name, "ci.yml", "push", "abcdef"[number], conclusion, at, at, "")
        for number, (conclusion, at) in enumerate(zip(conclusions, times, strict=True))
    ]


def changes(**files: str) -> object:
    """What each commit changed; comparing it with the one before."""
    return lambda one, other: set(files[other].split()) if other in files else None


GREEN_RED_GREEN = ("success", "failure", "success")


@pytest.mark.parametrize(
    ("name", "files", "flaky"),
    [
        ("ci", {"b": "README.md", "c": "docs/x.md"}, True),
        ("ci", {"b": "README.md", "c": "README.md"}, False),
        ("ci", {"b": "src/a.py", "c": "README.md"}, False),
        ("ci", {"b": "README.md", "c": "src/a.py"}, False),
        ("ci", {"b": "README.md"}, False),
        ("docs", {"b": "README.md", "c": "docs/x.md"}, False),
        ("lint", {"b": "README.md", "c": "docs/x.md"}, False),
    ],
)
def test_a_lone_failure_is_by_chance_where_nothing_but_other_documentation_changed(name, files, flaky):
    found = chance_failures(history(*GREEN_RED_GREEN, name=name), changes(**files))
    assert [run.sha for run in found] == (["b"] if flaky else [])


def test_two_failures_in_a_row_are_not_lone():
    files = {"b": "README.md", "c": "docs/x.md", "d": "docs/y.md"}
    assert chance_failures(history("success", "failure", "failure", "success"), changes(**files)) == ()


# --- logs, reports, memory ------------------------------------------------------------


def test_a_log_gives_the_failure_of_the_step_that_failed():
    assert failing_lines(LOG.decode()) == "E       assert 1 == 2\nFAILED tests/test_errors.py::test_sum".replace(
        "E       ", "E "
    )


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("", ""),
        ("##[group]Run make\n##[endgroup]\ncc a.c\na.c:3:1: error: no ;\n##[error]Process completed", "a.c:3:1: error"),
        ("##[group]Run go\n##[endgroup]\nok  x\n--- FAIL: TestA (0.0s)\n##[error]Process completed", "--- FAIL: TestA"),
        ("##[group]Run x\n##[endgroup]\nfine\n##[error]No space left on device", "error: No space left on device"),
        ("nothing\nspecial\nthat cannot be done\n", "that cannot be done"),
    ],
)  # fmt: skip  # one case a line
def test_what_says_why_comes_first(log, first):
    assert failing_lines(log).startswith(first)


@pytest.mark.parametrize(
    "report",
    [b"", b"<a>", b"\xff\xfe", b"{}", b'<!DOCTYPE a [<!ENTITY b "c">]><testcase name="&b;"><failure/></testcase>'],
)
def test_what_is_no_report_names_no_tests(report):
    assert failed_tests(report) == ()


def test_what_is_remembered_is_read_as_it_was_written():
    chance = ChanceFailure("ci.yml", "CI", "test", "pytest", "a" * 40, 5, START, ("t",))
    cursor = CiCursor(frozenset({"1.1", "2.3"}), ((7, "run 3"),), (chance,), "2026-05-04")
    assert CiCursor.parse(cursor.dump()) == cursor
    assert [CiCursor.parse(text) for text in ("", "[]", "{}", '{"seen": 1}')] == [CiCursor()] * 4
