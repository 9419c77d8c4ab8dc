"""Which formatters and linters a repository is told to use by its own files."""

from __future__ import annotations

import json

import pytest

from ralph_mission.adapters.fixers.commands import ProjectFixer, project_fixers


def of(files: dict[str, str]) -> dict[str, ProjectFixer]:
    return {one.name: one for one in project_fixers(files, lambda path: files.get(path, ""))}


def manifest(*tools: str, **scripts: str) -> str:
    return json.dumps({"devDependencies": dict.fromkeys(tools, "*"), "scripts": scripts})


@pytest.mark.parametrize(
    "script, check",
    [
        ("eslint .", "eslint ."),
        ("eslint --fix --cache src test", "eslint src test"),
        ("npx eslint . --max-warnings 0", "eslint . --max-warnings 0"),
        ("bun run eslint src", "eslint src"),
        ("tsc && eslint 'src/**/*.ts'", "eslint 'src/**/*.ts'"),
        ("next lint", "eslint ."),
        ("eslint $(git ls-files)", "eslint ."),
    ],
)
def test_eslint_is_asked_as_the_repository_s_own_script_asks_it(script, check):
    found = of({"package.json": manifest("eslint", lint=script), ".eslintrc.json": "{}"})["eslint"]
    assert (found.check, found.run, found.lent) == (check, f"{check} --fix", True)


def test_a_script_named_lint_goes_before_others():
    scripts = {"production": "eslint dist", "lint:eslint": "eslint src"}
    assert of({"package.json": manifest("eslint", **scripts), "eslint.config.js": ""})["eslint"].check == "eslint src"


@pytest.mark.parametrize(
    "scripts, workflow, enforced",
    [
        ({}, "", False),  # a configuration alone may be there for editors
        ({"format": "prettier --write src"}, "", False),
        ({"format": "prettier --write src", "format-check": "prettier --check src"}, "", True),
        ({"format": "prettier -w src"}, "run: npx prettier --check src", True),
    ],
)
def test_a_repository_that_checks_by_its_formatter_is_told_from_one_that_only_configures_it(
    scripts, workflow, enforced
):
    files = {"package.json": manifest("prettier", **scripts), ".prettierrc": "", ".github/workflows/a.yml": workflow}
    found = of(files)["prettier"]
    assert found.enforced is enforced
    assert found.check == ("prettier src --check" if scripts else "prettier . --check")


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": manifest("eslint", lint="eslint .")},  # no configuration
        {"package.json": manifest(lint="eslint ."), ".eslintrc.json": "{}"},  # not among its packages
        {"package.json": manifest("prettier-plugin-x"), ".prettierrc": ""},
        {"package.json": "[1]", ".eslintrc.json": "{}"},
        {"package.json": '{"scripts": {"lint": 1}, "devDependencies": []}', ".eslintrc.json": "{}"},
        {"pyproject.toml": "[tool.ruff]\nline-length = 99\n"},  # lints, and does not format
        {"pyproject.toml": "[tool.black]\n"},
        {"Cargo.toml": "[package]\n"},
        {"main.go": "package main\n"},
    ],
)
def test_a_tool_that_the_repository_does_not_use_is_left_out(files):
    assert of(files) == {}


@pytest.mark.parametrize(
    "files, name, enforced",
    [
        ({".pre-commit-config.yaml": "- id: ruff-format\n"}, "ruff format", True),
        ({"scripts/check": "ruff format . --diff\n"}, "ruff format", True),
        ({"tox.ini": "commands = black --check src\n"}, "black", True),
        ({"Cargo.toml": "", "rustfmt.toml": ""}, "rustfmt", False),
        ({"Cargo.toml": "", ".github/workflows/ci.yml": "run: cargo fmt --all -- --check"}, "rustfmt", True),
        ({"Cargo.toml": "", ".github/workflows/ci.yml": "run: cargo clippy"}, "clippy", True),
        ({"Cargo.toml": "", "clippy.toml": ""}, "clippy", False),
        ({"go.mod": "module x\n"}, "gofmt", False),
        ({"go.mod": "module x\n", "Makefile": "lint:\n\tgofmt -l .\n"}, "gofmt", True),
    ],
)
def test_tools_of_other_languages(files, name, enforced):
    assert {one: found.enforced for one, found in of(files).items()} == {name: enforced}
