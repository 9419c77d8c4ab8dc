"""Examples that cannot run any more: they import from the repository's own Python package what is no longer there.

In fenced blocks of pages, and in Python files among the documentation. Only what once was there is told of, with the
commit that took it away. A module that makes its names while it runs (`import *`, `__getattr__`) is not judged.
"""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Protocol

from ralph_mission.values import compile_regex

BLOCK = compile_regex(r"^[ \t]*```+[ \t]*(?:\{?python|py)\b[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
STATEMENT = compile_regex(
    r"^[ \t]*(?:>>> )?(?P<text>from (?P<module>[A-Za-z_][\w.]*) import (?P<names>\([^()]*\)|[^\n(#;]+))", re.MULTILINE
)
ROOTS = ("", "src/")
LARGEST = 500_000  # bytes of a module


class Tree(Protocol):
    """The files of a commit, and what git knows of them."""

    @property
    def files(self) -> Collection[str]:
        """Their paths."""

    def read(self, path: str) -> str:
        """A file's text."""

    def went_to(self, path: str) -> tuple[str, str]:
        """The commit in which a file left this path, and its path now; "" for none."""

    def last_said(self, expression: str, path: str) -> str:
        """The newest commit that changed a matching line of a file, or ""."""


def stale_imports(tree: Tree, path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(line, statement, why) of each import in a page or an example of what is gone."""
    blocks = [(0, text)] if path.endswith(".py") else [(one.start(1), one[1]) for one in BLOCK.finditer(text)]
    for start, block in blocks:
        for found in STATEMENT.finditer(block):
            if why := _gone(tree, found["module"], re.findall(r"(\w+)(?:\s+as\s+\w+)?", found["names"])):
                line = text.count("\n", 0, start + found.start("text")) + 1
                yield line, " ".join(found["text"].split()), why


def _gone(tree: Tree, module: str, names: Collection[str]) -> str:
    package, place = module.partition(".")[0], module.replace(".", "/")
    root = next((root for root in ROOTS if f"{root}{package}/__init__.py" in tree.files), None)
    if root is None or not names:
        return ""
    files = (f"{root}{place}.py", f"{root}{place}/__init__.py")
    file = next((one for one in files if one in tree.files), "")
    if not file:
        commit, now = next((gone for gone in map(tree.went_to, files) if gone[0]), ("", ""))
        return f"the module {module} was {f'moved to {now}' if now else 'removed'} in {commit[:12]}" if commit else ""
    known = _names(tree.read(file))
    if known is None:
        return ""
    inner = {one.rpartition("/")[2] for one in _children(tree.files, posixpath.dirname(file))}
    for name in names:
        if name not in known and not (file.endswith("/__init__.py") and name in inner):
            commit = tree.last_said(rf"\b{re.escape(name)}\b", file)
            return f"{module} has no {name} since {commit[:12]}" if commit else ""
    return ""


def _children(files: Collection[str], folder: str) -> Iterator[str]:
    """The modules and packages of a package, without suffix."""
    for path in files:
        if path.startswith(f"{folder}/"):
            rest = path[len(folder) + 1 :].partition("/")[0]
            yield f"{folder}/{rest.partition('.')[0]}"


@lru_cache(maxsize=1_000)
def _names(source: str) -> frozenset[str] | None:
    """Every name that a module may have; None if it makes them while it runs."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source[:LARGEST])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return None if found & {"*", "__getattr__"} else frozenset(found)
