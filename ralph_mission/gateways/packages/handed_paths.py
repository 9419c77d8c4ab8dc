"""What in a repository's files would lead a package manager to files of this machine, or has it run one.

Paths within the repository are ordinary: workspaces depend on each other by them. Pure: text in, values out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

PATHS = ("package.json", "pnpm-workspace.yaml", "pyproject.toml", "uv.toml", "uv.lock")
"""Where a text that looks like a path is one, or is a pattern of paths."""
_RUN = re.compile(r"(?<![\w-])exec:", re.IGNORECASE)
_LOCAL = re.compile(r"(?<![\w-])(?:file|link|portal):(/*+)([^\s\"'#:]*)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"/+\w|~[/\\]|[A-Za-z]:[/\\]|\\")
_BRACES = re.compile(r"[{},()|!]")


def leading_out(path: str, said: str) -> str:
    """What of a text in the file at `path` leads out of the repository, or runs something; "" when nothing does."""
    if _RUN.search(said):
        return "names a package that a program makes"
    return next((f'leads to "{place[:60]}"' for place in _places(path, said) if _outside(path, place)), "")


def _places(path: str, said: str) -> Iterator[str]:
    for slashes, rest in _LOCAL.findall(said):
        relative = not slashes or (len(slashes) == 2 and rest.startswith("."))
        yield rest if relative else f"/{rest or 'x'}"
    if posixpath.basename(path) in PATHS:
        yield from _BRACES.split(said)


def _outside(path: str, written: str) -> bool:
    place = unquote(written)
    within = posixpath.normpath(posixpath.join(posixpath.dirname(path), place.replace("\\", "/")))
    return bool(_ABSOLUTE.match(place)) or f"{within}/".startswith("../")
