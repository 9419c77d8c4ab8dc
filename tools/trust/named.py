"""Tests by name, and the marks they carry, read from their source: nothing is imported or run."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def is_test(name: str) -> bool:
    """Whether there is a test that pytest names so, without parameters: `tests/crash/test_races.py::test_one_acts`."""
    file, _, function = name.partition("::")
    return (ROOT / file).is_file() and function in _functions(_tree(file))


@cache
def known_bugs() -> dict[str, str]:
    """The tests of the faults that others had, with the first line of their docstrings."""
    found = {}
    for file in _files():
        if file.startswith("tests/known_bugs/"):
            for node in _tree(file).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found[f"{file}::{node.name}"] = (ast.get_docstring(node) or "").partition("\n")[0]
    return found


@cache
def attacked() -> dict[int, list[str]]:
    """The files that hold tests of an attack case, by its number."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for file in _files():
        if "mark.attack" in (ROOT / file).read_text("utf-8"):  # to parse them all takes seconds
            for number in _numbers(_tree(file)):
                found[number].add(file)
    return {number: sorted(files) for number, files in sorted(found.items())}


def _numbers(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.attack":
            for argument in node.args:
                yield from (one.value for one in ast.walk(argument) if isinstance(one, ast.Constant))  # type: ignore[misc]  # numbers, or the comparison with the table fails


def _functions(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in _functions(node))  # type: ignore[arg-type]  # has a body as well


def _files() -> list[str]:
    return sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("*.py"))


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))
