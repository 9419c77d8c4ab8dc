"""The rows say what stands in the product and in the tests (fast; `make guards` plays them all)."""

from __future__ import annotations

import ast
import re

import pytest

from ralph_mission.mission.policy import RULES
from tests.guards import __main__ as runner
from tests.guards.guard import ROOT, Guard, Stale, read_guards
from tests.guards.off import is_broken, switch_off

PROMISES = frozenset(f"I{number}" for number in range(1, 25))
HOLDS = re.compile(r"I(?:[1-9]|1\d|2[0-4])|[1-9]|[1-5]\d|60|proof")
"""A promise, the number of an attack, or the gate of claims about code."""
RULES_PY = "ralph_mission/mission/policy.py"
HERE = "guards/test_registry.py::test_replacements_are_python"


def test_each_guard_stands_once_in_the_product_and_names_a_test_that_there_is() -> None:
    assert {name: fault for name, guard in read_guards().items() if (fault := guard.find_fault())} == {}


def test_each_guard_says_what_it_is_for() -> None:
    rules = {rule.id for rule in RULES}
    assert [
        one.name for one in read_guards().values() if one.holds not in rules and not HOLDS.fullmatch(one.holds)
    ] == []


def test_every_rule_and_every_promise_has_its_guard() -> None:
    assert {rule.id for rule in RULES} | PROMISES <= {guard.holds for guard in read_guards().values()}


def test_replacements_are_python() -> None:
    for guard in list(read_guards().values())[::10]:  # the whole run compiles each of them
        if guard.module:
            ast.parse(guard.switched_off())


@pytest.mark.parametrize(
    ("guard", "fault"),
    [
        (Guard("x", "I1", RULES_PY, "no such text anywhere", "", HERE), f"its text stands 0 times in {RULES_PY}"),
        (Guard("x", "I1", "ralph_mission/gone.py", "import", "", HERE), "there is no file ralph_mission/gone.py"),
        (
            Guard("x", "I1", RULES_PY, "hold, _mission_cap", "", "gone.py"),
            "there is no test tests/gone.py",
        ),
        (Guard("x", "I1", RULES_PY, "hold, _mission_cap", "", f"{HERE}_x"), f"there is no test tests/{HERE}_x"),
        (Guard("x", "I1", RULES_PY, "hold, _mission_cap", "", HERE), ""),
    ],
)
def test_a_stale_row_is_told_in_words(guard: Guard, fault: str) -> None:
    assert guard.find_fault() == fault
    if fault:
        with pytest.raises(Stale):
            guard.switched_off()


def test_a_module_that_is_imported_already_is_not_switched_off() -> None:
    with pytest.raises(Stale):
        switch_off(Guard("x", "I1", RULES_PY, "hold, _mission_cap", "hold, None", HERE))


@pytest.mark.parametrize(
    ("error", "when", "broken"),
    [
        (AssertionError(), "call", False),
        (ExceptionGroup("two", [AssertionError(), ValueError()]), "call", False),
        (NameError(), "call", True),
        (AssertionError(), "setup", True),
        (ExceptionGroup("two", [AssertionError(), ImportError()]), "call", True),
    ],
)
def test_a_broken_replacement_is_no_failing_test(error: BaseException, when: str, broken: bool) -> None:
    assert is_broken(error, when) is broken


@pytest.mark.parametrize(
    ("code", "verdict"), [(0, runner.SURVIVED), (1, runner.KILLED), (4, runner.UNTRIED), (9, runner.UNTRIED)]
)
def test_a_guard_is_killed_by_a_test_that_fails_for_it(
    code: int, verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guard = next(iter(read_guards().values()))
    monkeypatch.setattr(runner, "run_pytest", lambda arguments, place: (code, "1 passed"))
    assert runner.judge(guard, passes=True) == verdict
    assert runner.judge(guard, passes=False) == runner.UNTRIED
    assert runner.summarise({guard: verdict}) == int(verdict != runner.KILLED)
    assert f"[guards] {verdict:8} {guard.name}" in capsys.readouterr().out


def test_no_switch_stands_in_the_product() -> None:
    """Whoever runs the product cannot do without a guard: no file of it knows of this folder."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in (ROOT / "ralph_mission").rglob("*.py"))
    assert [path.name for path, text in texts if "guard-off" in text or "tests.guards" in text] == []
