"""Scripts of the workspaces of a Node.js repository, run where the top names none."""

from __future__ import annotations

import json

import pytest

from ralph_mission.adapters.projects.detection import detect_project
from ralph_mission.adapters.projects.manifests import workspaces

NONE = 'echo "Error: no test specified" && exit 1'
PARTS = {
    "packages/a/package.json": json.dumps({"name": "@x/a", "scripts": {"test": "node --test", "lint": "eslint ."}}),
    "packages/b/package.json": json.dumps({"scripts": {"test": "vitest run"}}),
    "packages/c/package.json": json.dumps({"name": "c", "scripts": {"test": NONE}}),
    "packages/a/fixtures/package.json": "{}",
    "apps/web/package.json": "[]",
    "packages/d/node_modules/x/package.json": "{}",
}


def checks(top: dict[str, object], **files: str) -> list[tuple[str, str]]:
    every = {"package.json": json.dumps(top), **PARTS, **files}
    return [(check.name, check.line) for check in detect_project(every, lambda path: every.get(path, "")).checks]


@pytest.mark.parametrize(
    ("lock", "text", "lint", "test"),
    [
        ("package-lock.json", "{}", "npm run --silent lint --workspace packages/a",
         "npm run --silent test --workspace packages/a --workspace packages/b"),
        ("yarn.lock", "# yarn lockfile v1\n", "yarn workspace @x/a run lint",
         "yarn workspace @x/a run test"),
        ("pnpm-lock.yaml", "", "pnpm --filter ./packages/a run lint",
         "pnpm --filter ./packages/a --filter ./packages/b run test"),
        ("bun.lock", "{}", "bun run --filter ./packages/a lint",
         "bun run --filter ./packages/a --filter ./packages/b test"),
    ],
)  # fmt: skip  # one row a tool
def test_a_script_that_the_top_lacks_is_run_in_the_workspaces_that_have_it(lock, text, lint, test):
    files = {lock: text, **({"pnpm-workspace.yaml": "packages: ['packages/*']\n"} if "pnpm" in lock else {})}
    assert checks({"workspaces": ["packages/*", "apps/*"]}, **files) == [("lint", lint), ("test", test)]


def test_a_script_of_the_top_is_the_check():
    top = {"workspaces": {"packages": ["packages/*"]}, "scripts": {"test": "turbo run test", "lint": "turbo run lint"}}
    assert [line for _, line in checks(top)] == ["npm run --silent lint", "npm run --silent test"]


def test_packages_that_are_no_workspaces_are_left_alone():
    assert checks({}) == []


@pytest.mark.parametrize(
    ("manifest", "pnpm", "found"),
    [
        ({"workspaces": ["./packages/*/", "!packages/b"]}, "", ["packages/a", "packages/c"]),
        ({"workspaces": ["apps/web", 3, "", "."]}, "", ["apps/web"]),
        ({"workspaces": ["packages/**"]}, "", ["packages/a", "packages/b", "packages/c"]),
        ({"workspaces": "packages/*"}, "", []),
        ({"workspaces": ["apps/*"]}, "packages:\n  - packages/*\n  - '!packages/c'\n", ["packages/a", "packages/b"]),
        ({"workspaces": ["apps/*"]}, "packages: [", []),
        ({"workspaces": ["apps/*"]}, "- packages/*\n", ["packages/a", "packages/b", "packages/c"]),
    ],
)
def test_workspaces_are_the_folders_that_the_patterns_mean(manifest, pnpm, found):
    assert workspaces(PARTS, manifest, pnpm) == found
