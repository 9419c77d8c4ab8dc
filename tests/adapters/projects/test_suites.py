"""Which tool runs a test, with the repository's own options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph_mission.adapters.projects.suites import SuiteTool, find_suite

REPORT = Path("/home/report")


def suite(files: dict[str, str], near: str) -> SuiteTool | None:
    return find_suite(set(files), lambda path: files.get(path, ""), near)


def package(**scripts: str) -> str:
    return json.dumps({"scripts": scripts})


@pytest.mark.parametrize(
    ("scripts", "name", "options", "paths"),
    [
        ({"test": "mocha --require test/env --reporter spec --check-leaks test/ test/acceptance/"},
         "mocha", ("--require", "test/env", "--check-leaks"), ("test/", "test/acceptance/")),
        ({"test": "npm run lint && cross-env NODE_ENV=test jest --coverage"}, "jest", (), ()),
        ({"test": "vitest", "test-unit": "vitest --project unit*"}, "vitest", ("--project", "unit*"), ()),
        ({"test": "vitest run --reporter=verbose"}, "vitest", (), ()),
        ({"test": "node --test --test-reporter spec tests/"}, "node", (), ("tests/",)),
        ({"test": "nyc mocha -R dot --bail"}, "mocha", (), ()),  # all tests are to be run
        ({"test": "npm run unit", "unit": "./node_modules/.bin/jest -c jest.json"}, "jest", ("-c", "jest.json"), ()),
    ],
)  # fmt: skip  # one table
def test_the_runner_of_a_script(
    scripts: dict[str, str], name: str, options: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    assert suite({"package.json": package(**scripts)}, "test/a.js") == SuiteTool(name, "", options, paths)


def test_the_nearest_package_that_has_a_runner_counts() -> None:
    files = {"package.json": package(test="jest"), "packages/a/package.json": package(test="vitest"),
             "packages/a/fixtures/package.json": package(build="tsc")}  # fmt: skip  # one table
    found = suite(files, "packages/a/fixtures/x.test.ts")
    assert found == SuiteTool("vitest", "packages/a")
    assert "vitest run --reporter=json --outputFile=/home/report fixtures/x.test.ts" in found.command(
        ["packages/a/fixtures/x.test.ts"], REPORT
    )


def test_python_is_run_by_pytest_in_the_folder_of_its_settings() -> None:
    files = {"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": ""}
    found = suite(files, "tests/test_a.py")
    assert found == SuiteTool("pytest", "")
    assert found.command(["tests/test_a.py"], REPORT).endswith("-p no:randomly tests/test_a.py")


@pytest.mark.parametrize("near", ["test/a.js", "tests/a.py", "tests/a.rs", "a_test.go", "tests/a.lua"])
def test_nobody_knows_how_a_test_is_run_where_nothing_says_so(near: str) -> None:
    assert suite({"package.json": package(build="tsc"), "README.md": ""}, near) is None


def test_cargo_and_go_run_what_a_file_belongs_to() -> None:
    rust, go = (
        suite({"Cargo.toml": "", "core/Cargo.toml": "", "go.mod": ""}, near)
        for near in ("core/tests/it.rs", "a/b_test.go")
    )
    assert rust and "cargo test --offline --no-fail-fast --test=it > " in rust.command(["core/tests/it.rs"], REPORT)
    assert go and "go test -json ./a > " in go.command(["a/b_test.go"], REPORT)
    assert "go test -json ./... > " in go.command([], REPORT)
