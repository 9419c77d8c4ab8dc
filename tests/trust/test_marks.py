"""What is counted as an attack that was held: hostile inputs, and not the controls that show what they would do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.trust.named import ROOT

ATTACK, BENIGN, ROWS = "pytest.mark.attack", "pytest.mark.benign", "pytest.mark.parametrize"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def marks(test: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """Those that all of its inputs carry."""
    yield from ((ast.unparse(one.func), one) for one in test.decorator_list if isinstance(one, ast.Call))


def with_controls(tree: ast.AST) -> list[str]:
    """Tests all of whose inputs count as attacks, though what they expect hangs on a parameter that is yes and no."""
    attacks = (test for test in functions(tree) if ATTACK in dict(marks(test)))
    return [test.name for test in attacks if _switches(test) & _compared(test)]


def of_both_kinds(tree: ast.AST) -> list[str]:
    """Tests whose inputs count as attacks and as benign."""
    return [test.name for test in functions(tree) if {ATTACK, BENIGN} <= dict(marks(test)).keys()]


def _switches(test: ast.FunctionDef) -> set[str]:
    given = [row for name, mark in marks(test) if name == ROWS for row in _rows(mark)]
    return {name for name, value in given if value is True} & {name for name, value in given if value is False}


def _rows(mark: ast.Call) -> Iterator[tuple[str, object]]:
    """Each parameter with each value that is written down for it."""
    names, values = ast.literal_eval(mark.args[0]), mark.args[1]
    told = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    for row in getattr(values, "elts", ()):
        cells = row.args if isinstance(row, ast.Call) else getattr(row, "elts", [row])
        yield from ((name, getattr(cell, "value", None)) for name, cell in zip(told, cells, strict=False))


def _compared(test: ast.FunctionDef) -> set[str]:
    asserts = (node.test for node in ast.walk(test) if isinstance(node, ast.Assert))
    compared = (node for one in asserts for node in ast.walk(one) if isinstance(node, ast.Compare))
    return {node.id for one in compared for node in ast.walk(one) if isinstance(node, ast.Name)}


def test_no_control_counts_as_an_attack_that_was_held_and_nothing_as_both():
    sources = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    trees = [ast.parse(source) for source in sources if ATTACK in source]
    assert len(trees) > 50
    assert [name for tree in trees for name in (*with_controls(tree), *of_both_kinds(tree))] == []


HELD = "@pytest.mark.attack(41)\n@pytest.mark.parametrize({})\ndef test_it({}):\n    {}\n"


@pytest.mark.parametrize(
    ("rows", "given", "says"),
    [
        ("'cared', [True, False]", "cared", "assert (said == '') is cared"),
        ("'cared', [pytest.param(True), False]", "cared", "assert said is cared"),
        ("('who', 'may'), [(MARA, True), (EVE, False)]", "who, may", "assert may_decide(who) == may"),
        ("'who, may', [(MARA, True), pytest.param(EVE, False)]", "who, may", "assert (may_decide(who), 1) == (may, 1)"),
    ],
)
def test_a_test_that_counts_its_control_is_named(rows, given, says):
    assert with_controls(ast.parse(HELD.format(rows, given, says))) == ["test_it"]
    assert with_controls(ast.parse(HELD.format(rows, given, says).partition("\n")[2])) == []


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("'cared', [True, False]", "assert refused(cared)"),
        ("'cared', [True]", "assert said is cared"),
        ("'cared', ['a', 'b']", "assert said == cared"),
        ("'cared', ROWS", "assert said == cared"),
    ],
)
def test_a_parameter_that_only_varies_the_attack_is_none_of_a_control(rows, says):
    assert with_controls(ast.parse(HELD.format(rows, "cared", says))) == []


def test_a_test_of_both_kinds_is_named():
    both = "@pytest.mark.attack(27)\n@pytest.mark.benign('markdown')\ndef test_it():\n    pass\n"
    assert of_both_kinds(ast.parse(both)) == ["test_it"]
    assert of_both_kinds(ast.parse(both.partition("\n")[2])) == []
