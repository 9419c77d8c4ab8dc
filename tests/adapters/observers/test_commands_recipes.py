"""Each recipe against what its tool printed for one small project at /srv/app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.observers import commands, markers
from ralph_mission.adapters.observers import results as items
from ralph_mission.adapters.observers import results as sarif
from ralph_mission.adapters.observers.commands import RECIPES, fitting
from ralph_mission.adapters.observers.results import Result
from ralph_mission.mission.model.proposal import KINDS

SAMPLES = Path(__file__).parents[0] / "samples"


def read(tool: str, sample: str, tmp_path: Path) -> list[tuple[str, int, str, str, str]]:
    raw = (SAMPLES / sample).read_bytes().replace(b"/srv/app", str(tmp_path).encode())
    settings = commands.CommandSettings.model_validate(
        next(recipe for recipe in RECIPES if recipe.tool == tool).settings
    )
    return [(r.path, r.line, r.code, r.message, r.level) for r in _results(settings, raw, tmp_path)]


def test_tsc(tmp_path: Path) -> None:
    assert read("tsc", "tsc.txt", tmp_path)[3] == (
        "src/index.ts",
        5,
        "TS2552",
        "Cannot find name 'totals'. Did you mean 'total'?",
        "error",
    )
    assert len(read("tsc", "tsc.txt", tmp_path)) == 4


def test_ruff(tmp_path: Path) -> None:
    assert [result[:3] for result in read("ruff", "ruff.sarif", tmp_path)] == [
        ("app.py", 1, "F401"),
        ("app.py", 2, "F401"),
        ("app.py", 10, "F841"),
        ("app.py", 11, "E711"),
    ]


def test_eslint(tmp_path: Path) -> None:
    results = read("eslint", "eslint.json", tmp_path)
    assert results[-1] == (
        "src/index.ts",
        6,
        "@typescript-eslint/no-explicit-any",
        "Unexpected any. Specify a different type.",
        "error",
    )
    assert len(results) == 5


def test_mypy(tmp_path: Path) -> None:
    assert read("mypy", "mypy.txt", tmp_path) == [
        ("app.py", 6, "return-value", 'Incompatible return value type (got "int", expected "str")', "error"),
        ("app.py", 9, "no-untyped-def", "Function is missing a type annotation", "error"),
        ("app.py", 14, "arg-type", 'Argument 1 to "used" has incompatible type "str"; expected "int"', "error"),
    ]


def test_vulture(tmp_path: Path) -> None:
    assert read("vulture", "vulture.txt", tmp_path) == [
        ("app.py", 1, "unused import", "unused import 'os'", ""),
        ("app.py", 9, "unused function", "unused function 'never_called'", ""),
        ("app.py", 10, "unused variable", "unused variable 'value'", ""),
    ]


def test_knip(tmp_path: Path) -> None:
    assert [result[:4] for result in read("knip", "knip.json", tmp_path)] == [
        ("src/orphan.ts", 0, "file", "unused file src/orphan.ts"),
        ("package.json", 0, "dependency", "unused dependency left-pad"),
        ("src/math.ts", 4, "export", "unused export sub"),
        ("src/math.ts", 7, "type", "unused type Pair"),
    ]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.tool)
def test_a_recipe_uses_a_kind_that_policy_knows(recipe: Any) -> None:
    assert recipe.settings["kind"] in KINDS


def test_a_repository_is_offered_what_it_has_signs_of() -> None:
    assert [recipe.tool for recipe in fitting({"tsconfig.json", "knip.json", "README.md"})] == ["tsc", "knip"]


def _results(settings: commands.CommandSettings, raw: bytes, root: Path) -> list[Result]:
    if isinstance(settings.parse, commands.JsonResults):
        return items.read_items(raw, settings.parse.at, root)
    if isinstance(settings.parse, commands.Regex):
        return markers.read(raw, settings.parse.regex, root, root / "home", 100)
    return sarif.read_sarif(raw, root)
