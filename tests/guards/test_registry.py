"""The rows of the registry say what stands in the product and in the tests (fast; `make guards` plays them all)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

import pytest

from ralph_mission.mission.rules import RULES
from tests.guards import telling
from tests.guards.__main__ import KILLED, SURVIVED, UNTRIED, verdict
from tests.guards.guard import ROOT, Guard, Stale, function_at
from tests.guards.off import Finder, switch_off
from tests.guards.others import WITHOUT
from tests.guards.playing import Play, Played
from tests.guards.registry import formats, guards

HOLDS = re.compile(r"I(?:[1-9]|1\d|2[0-4])|[1-9]|[1-5]\d|60")
"""A promise, or the number of an attack."""


def defined_in(file: str) -> frozenset[str]:
    """The tests of a file by their ids, without parameters."""
    return _defined_in((ROOT / file).read_text(encoding="utf-8"))


@cache
def _defined_in(source: str) -> frozenset[str]:
    found, inside = set(), ""
    for line in source.splitlines():
        if match := re.match(r"class (\w+)", line):
            inside = match[1]
        elif match := re.match(r"(\s*)(?:async )?def (test\w*)", line):
            found.add(f"{inside}::{match[2]}" if match[1] else match[2])
        elif line[:1] not in ("", " ", "#", ")", "@"):
            inside = ""
    return frozenset(found)


def test_each_guard_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(guard.name for guard in guards()).items() if times > 1] == []


def test_each_guard_stands_once_in_the_product() -> None:
    for guard in guards():
        guard.without()


def test_each_guard_names_a_test_that_there_is() -> None:
    named = (guard.test.partition("[")[0].partition("::") for guard in guards())
    assert [f"{file}::{test}" for file, _, test in named if test not in defined_in(file)] == []


def test_each_guard_says_what_it_is_for() -> None:
    rules = {rule.id for rule in RULES}
    assert [guard.name for guard in guards() if guard.holds not in rules and not HOLDS.fullmatch(guard.holds)] == []


def test_every_rule_has_its_guard() -> None:
    assert {rule.id for rule in RULES} <= {guard.holds for guard in guards()}


def test_every_format_of_a_token_has_its_guard() -> None:
    assert formats() and {f"format-{kind}" for kind in formats()} <= {guard.name for guard in guards()}


def test_a_module_has_a_guard_or_says_why_not() -> None:
    guarded = {guard.file for guard in guards()}
    modules = (str(path.relative_to(ROOT)) for path in (ROOT / "ralph_mission").rglob("*.py"))
    left = [one for one in modules if one not in guarded and not one.endswith("__init__.py")]
    assert [one for one in left if not any(one == name or one.startswith(f"{name}/") for name in WITHOUT)] == []


def test_a_guard_knows_its_function() -> None:
    source = "class A:\n    @staticmethod\n    def b():\n        return 1\n\nX = 2\n"
    assert function_at(source, "return 1") == "A.b"
    assert function_at(source, "X = 2") == ""


@pytest.mark.parametrize("text", ["no such text anywhere", "import"])
def test_a_text_that_does_not_stand_there_exactly_once_is_refused(text: str) -> None:
    with pytest.raises(Stale):
        Guard("x", "I1", "ralph_mission/mission/rules.py", text, "", "").without()


def test_a_module_that_is_imported_already_is_not_switched_off() -> None:
    with pytest.raises(Stale):
        switch_off(Guard("x", "I1", "ralph_mission/mission/rules.py", "hold, _mission_cap", "hold, None", ""))


def test_a_module_is_compiled_without_its_guard() -> None:
    finder = Finder("ralph_mission.safety.steps", "GUARDED = False\n")
    spec = finder.find_spec("ralph_mission.safety.steps", [str(ROOT / "ralph_mission" / "safety")])
    assert spec is not None and spec.loader is not None and finder.used
    space: dict[str, object] = {}
    exec(spec.loader.get_code(spec.name), space)  # type: ignore[attr-defined]  # a loader of source
    assert space["GUARDED"] is False
    assert finder.find_spec("ralph_mission.safety.text", None) is None


@pytest.mark.parametrize(
    ("error", "when", "kind"),
    [
        (AssertionError(), "call", telling.ASSERTION),
        (pytest.fail.Exception("DID NOT RAISE"), "call", telling.ASSERTION),
        (ExceptionGroup("two", [AssertionError(), ValueError()]), "call", telling.REACTION),
        (ValueError(), "call", telling.REACTION),
        (NameError(), "call", telling.BROKEN),
        (AssertionError(), "setup", telling.BROKEN),
        (ExceptionGroup("two", [AssertionError(), ImportError()]), "call", telling.BROKEN),
    ],
)
def test_a_broken_replacement_is_no_failing_test(error: BaseException, when: str, kind: str) -> None:
    assert telling.kind_of(error, when) == kind


@pytest.mark.parametrize(
    ("played", "said"),
    [
        (Played(Play(()), failed=({"test": "t", "kind": telling.ASSERTION, "said": ""},)), KILLED),
        (Played(Play(()), failed=({"test": "t", "kind": telling.BROKEN, "said": ""},)), UNTRIED),
        (Played(Play(()), passed=("t",)), SURVIVED),
        (Played(Play(()), broke="it ended"), UNTRIED),
    ],
)
def test_a_guard_is_killed_by_a_test_that_fails_for_it(played: Played, said: str) -> None:
    assert verdict(played)[0] == said


def test_no_switch_stands_in_the_product() -> None:
    """Whoever runs the product cannot do without a guard: no file of it knows of this folder."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in (ROOT / "ralph_mission").rglob("*.py"))
    assert [path.name for path, text in texts if "guard-off" in text or "tests.guards" in text] == []


def test_replacements_are_python() -> None:
    for guard in guards()[:: max(1, len(guards()) // 20)]:  # the whole run compiles each of them
        if guard.module:
            ast.parse(guard.without())
