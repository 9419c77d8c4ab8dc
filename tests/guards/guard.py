"""A guard of the product, the text that switches it off, and the test that then fails."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Stale(Exception):
    """The product's text is not what a guard's row says: the row has to follow it."""


@dataclass(frozen=True)
class Guard:
    """`holds`: the promise (I4), attack case (52) or rule (mission-cap) that it is for. Off, `text` of `file` is `off`.

    `text` stands in the file exactly once. `killed_by` is the id of a test, below `tests/`. `row` is where all this is
    written down.
    """

    name: str
    holds: str
    file: str
    text: str
    off: str
    killed_by: str
    row: str = "tests/guards/registry.py"

    @property
    def path(self) -> Path:
        """The file that holds the guard."""
        return ROOT / self.file

    @property
    def module(self) -> str:
        """Its name for `import`; "" for what is no module of the product."""
        inside = self.file.startswith("ralph_mission/") and self.file.endswith(".py")
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") if inside else ""

    @property
    def test(self) -> str:
        """The test that fails without it, as pytest takes it."""
        return f"tests/{self.killed_by}"

    @cached_property
    def where(self) -> str:
        """`module:function`, or the file of what is no Python."""
        return f"{self.module}:{function_at(self.source, self.text)}" if self.module else self.file

    @cached_property
    def source(self) -> str:
        """The text of the file as it is."""
        return self.path.read_text(encoding="utf-8")

    def without(self) -> str:
        """The text of the file with this guard switched off."""
        if wrong := self.stale():
            raise Stale(f"{self.name}: {wrong}")
        return self.source.replace(self.text, self.off)

    def stale(self) -> str:
        """What of its row does not fit the product any more, in words; "" when it can be switched off."""
        if not self.path.is_file():
            return f"there is no file {self.file}"
        if (found := self.source.count(self.text)) != 1:
            return f"its text stands {found} times in {self.file}"
        return f"off, {self.file} stays as it is" if self.off == self.text else ""


def function_at(source: str, text: str) -> str:
    """The qualified name of the innermost function or class around `text`, "" at a module's own level."""
    line = source[: source.index(text) + len(text) - len(text.lstrip())].count("\n") + 1
    return ".".join(_around(ast.parse(source), line))


def _around(node: ast.AST, line: int) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            if first <= line <= (child.end_lineno or first):
                yield child.name
                yield from _around(child, line)
