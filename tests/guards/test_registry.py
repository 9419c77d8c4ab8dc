"""The rows of the registry say what stands in the product and in the tests (fast; `make guards` plays them all)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from ralph_mission.mission.rules import RULES
from tests.guards import telling
from tests.guards.__main__ import KILLED, SURVIVED, UNTRIED, main, verdict
from tests.guards.guard import ROOT, Guard, Stale, function_at
from tests.guards.off import Finder, switch_off
from tests.guards.others import WITHOUT, outdated, refuses, refusing, unguarded
from tests.guards.playing import Play, Played
from tests.guards.registry import formats, guards, stale

HOLDS = re.compile(r"I(?:[1-9]|1\d|2[0-4])|[1-9]|[1-5]\d|60")
"""A promise, or the number of an attack."""


def test_each_guard_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(guard.name for guard in guards()).items() if times > 1] == []


def test_each_guard_stands_once_in_the_product_and_names_a_test_that_there_is() -> None:
    wrong = {f"{guard.name} in {guard.row}": stale(guard) for guard in guards()}
    assert {row: why for row, why in wrong.items() if why} == {}


def test_each_guard_says_what_it_is_for() -> None:
    rules = {rule.id for rule in RULES}
    assert [guard.name for guard in guards() if guard.holds not in rules and not HOLDS.fullmatch(guard.holds)] == []


def test_every_rule_has_its_guard() -> None:
    assert {rule.id for rule in RULES} <= {guard.holds for guard in guards()}


def test_every_format_of_a_token_has_its_guard() -> None:
    assert formats() and {f"format-{kind}" for kind in formats()} <= {guard.name for guard in guards()}


def test_a_module_that_refuses_or_bounds_something_has_a_guard_or_says_why_not() -> None:
    assert unguarded(refusing(), {guard.file for guard in guards()}, WITHOUT) == set()


def test_what_has_no_guard_is_said_of_modules_that_are_there_refuse_something_and_have_none() -> None:
    assert outdated(refusing(), {guard.file for guard in guards()}, WITHOUT) == set()


def test_no_module_says_twice_why_it_has_no_guard() -> None:
    assert [
        name for name, times in Counter(name for names in WITHOUT.values() for name in names).items() if times > 1
    ] == []


def test_a_module_without_guard_or_reason_and_a_reason_without_need_are_told() -> None:
    refuses, guarded = {"ralph_mission/a.py", "ralph_mission/b.py", "ralph_mission/c.py"}, {"ralph_mission/a.py"}
    assert unguarded(refuses, guarded, {"b is data": ("b.py",)}) == {"ralph_mission/c.py"}
    assert outdated(refuses, guarded, {"why": ("a.py", "b.py", "gone.py")}) == {"a.py", "gone.py"}


@pytest.mark.parametrize(
    ("source", "signs"),
    [
        ("def a():\n    raise ValueError('no')\n", True),
        ("def a():\n    try:\n        b()\n    except OSError:\n        raise\n", False),
        ("run(command, timeout=5)\n", True),
        ("os.open(path, os.O_RDONLY | os.O_NOFOLLOW)\n", True),
        ("fcntl.flock(descriptor, fcntl.LOCK_EX)\n", True),
        ("said = redact(text, secrets)\n", True),
        ("raised = timeout = 5\n", False),
    ],
)
def test_a_refusal_a_bound_and_a_cleaning_are_known_by_what_is_written(source: str, signs: bool) -> None:
    assert refuses(source) is signs


def test_a_guard_knows_its_function() -> None:
    source = "class A:\n    @staticmethod\n    def b():\n        return 1\n\nX = 2\n"
    assert function_at(source, "return 1") == "A.b"
    assert function_at(source, "X = 2") == ""


RULES_PY = "ralph_mission/mission/rules.py"
HERE = "guards/test_registry.py::test_a_guard_knows_its_function"


@pytest.mark.parametrize("text", ["no such text anywhere", "import"])
def test_a_text_that_does_not_stand_there_exactly_once_is_refused(text: str) -> None:
    with pytest.raises(Stale):
        Guard("x", "I1", RULES_PY, text, "", "").without()


@pytest.mark.parametrize(
    ("guard", "told"),
    [
        (Guard("x", "I1", RULES_PY, "no such text anywhere", "", HERE), f"its text stands 0 times in {RULES_PY}"),
        (Guard("x", "I1", "ralph_mission/gone.py", "import", "", HERE), "there is no file ralph_mission/gone.py"),
        (Guard("x", "I1", RULES_PY, "hold, _mission_cap", "", "gone.py"), "there is no test tests/gone.py"),
        (Guard("x", "I1", RULES_PY, "hold, _mission_cap", "", f"{HERE}_x"), f"there is no test tests/{HERE}_x"),
        (Guard("x", "I1", RULES_PY, "hold, _mission_cap", "", HERE), ""),
    ],
)
def test_a_stale_row_is_told_in_words(guard: Guard, told: str) -> None:
    assert stale(guard) == told


def test_stale_rows_and_skipped_tests_are_told_and_the_others_are_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "hold, _mission_cap"
    good = Guard("good", "I1", RULES_PY, text, "hold, None", HERE)
    aside = Guard(
        "aside", "I1", RULES_PY, text, "hold, None", f"{HERE.partition('::')[0]}::test_replacements_are_python"
    )
    gone = Guard("gone", "I1", RULES_PY, "no such text anywhere", "", HERE, "tests/guards/rows/x.toml")
    rows = (gone, aside, good)

    def played(plays: Iterable[Play], jobs: int) -> Iterator[Played]:
        for play in plays:
            failed = ({"test": HERE, "kind": telling.ASSERTION, "said": "no"},) if play.guard else ()
            yield Played(play, () if failed else (good.test,), failed, {} if failed else {aside.test: "needs root"})

    monkeypatch.setattr("tests.guards.__main__.play_all", played)
    monkeypatch.setattr("tests.guards.__main__.subjects", lambda: {"all": rows})
    assert main(["--subject", "all"]) == 1
    said = capsys.readouterr().out
    assert "STALE    gone: its text stands 0 times" in said and "mend [gone] in tests/guards/rows/x.toml" in said
    assert f"UNTRIED  aside (I1): {aside.test} is skipped here: needs root" in said
    assert "all: 3 guards, 1 killed, 0 survived, 2 untried" in said
    assert said.endswith("1 of 3 killed; survivors: none; untried: aside; stale: gone\n")


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
        (Played(Play(()), skipped={"t": "needs root"}), UNTRIED),
        (Played(Play(()), passed=("t",), skipped={"u": "needs root"}), SURVIVED),
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
