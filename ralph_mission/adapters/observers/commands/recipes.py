"""Ready-made `observers.commands` entries, as data for `ralph init`; docs/recipes.md shows the same.

Each is tested against what the tool really printed (tests/observers/samples).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ralph_mission.values import dataclass

# Packages are installed without their scripts: what a dependency wants to run at install is its business.
_NODE = "npm ci --ignore-scripts --no-audit --no-fund >&2 && npx --no-install "
_UNUSED = "[].{name: name, line: line, what: "


@dataclass(frozen=True, slots=True)
class Recipe:
    """`settings` is one item of `observers.commands`; `signs` are files that tell that a repository uses the tool."""

    tool: str
    summary: str
    signs: tuple[str, ...]
    settings: Mapping[str, Any]


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "tsc",
        "type errors of TypeScript",
        ("tsconfig.json",),
        {
            "name": "types",
            "run": _NODE + "tsc --noEmit --pretty false",
            "parse": {
                "regex": r"^(?P<path>.+)\((?P<line>\d+),\d+\): (?P<level>error) (?P<code>TS\d+): (?P<message>.+)$"
            },
            "kind": "bug",
            "ok_codes": [0, 1, 2],
            "timeout": 600,
        },
    ),
    Recipe(
        "ruff",
        "lint of Python",
        ("ruff.toml", ".ruff.toml", "pyproject.toml"),
        {
            "name": "ruff",
            "run": "ruff check --output-format sarif",
            "parse": "sarif",
            "kind": "code-quality",
        },
    ),
    Recipe(
        "eslint",
        "lint of JavaScript and TypeScript",
        ("eslint.config.js", "eslint.config.mjs"),
        {
            "name": "eslint",
            "run": _NODE + "eslint --format json .",
            "parse": {
                "json": {
                    "items": "[]",
                    "nested": "messages",
                    "path": "filePath",
                    "line": "line",
                    "message": "message",
                    "code": "ruleId",
                    "level": "severity",
                }
            },
            "kind": "code-quality",
            "timeout": 600,
        },
    ),
    Recipe(
        "mypy",
        "type errors of Python",
        ("mypy.ini", ".mypy.ini"),
        {
            "name": "mypy",
            "run": "mypy --no-error-summary --no-pretty --no-color-output .",
            "parse": {
                "regex": r"^(?P<path>[^:]+):(?P<line>\d+)(?::\d+)?: (?P<level>error): "
                r"(?P<message>.+?)(?:  \[(?P<code>[a-z-]+)\])?$"
            },
            "kind": "bug",
            "timeout": 600,
        },
    ),
    Recipe(
        "vulture",
        "unused Python code",
        (),
        {
            "name": "vulture",
            "run": "vulture .",
            "parse": {
                "regex": r"^(?P<path>[^:]+):(?P<line>\d+): "
                r"(?P<message>(?P<code>un[a-z]+ [a-z]+).*) \(\d+% confidence"
            },
            "kind": "dead-code",
            "ok_codes": [0, 3],
        },
    ),
    Recipe(
        "knip",
        "unused files, exports and dependencies of JavaScript and TypeScript",
        ("knip.json", "knip.ts"),
        {
            "name": "knip",
            "run": _NODE + "knip --reporter json",
            "parse": {
                "json": {
                    "items": "issues",
                    "nested": f"[files{_UNUSED}'file'}}, exports{_UNUSED}'export'}}, types{_UNUSED}'type'}}, "
                    f"dependencies{_UNUSED}'dependency'}}, devDependencies{_UNUSED}'dependency'}}][]",
                    "path": "file",
                    "line": "line",
                    "message": "join(' ', ['unused', what, name])",
                    "code": "what",
                }
            },
            "kind": "dead-code",
            "timeout": 600,
        },
    ),
)


def fitting(paths: Collection[str]) -> tuple[Recipe, ...]:
    """The recipes whose signs are among `paths` (relative to the repository)."""
    return tuple(recipe for recipe in RECIPES if any(sign in paths for sign in recipe.signs))
