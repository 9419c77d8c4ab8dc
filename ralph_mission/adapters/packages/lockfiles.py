"""What one commit depends on, read from its blobs: never from a work tree."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable
from dataclasses import replace

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import node, python
from ralph_mission.adapters.packages.model import Project
from ralph_mission.adapters.packages.versions import SOUND
from ralph_mission.safety.patch import EXECUTABLE, REGULAR
from ralph_mission.values import compile_regex, dataclass

LARGEST = 8_000_000
"""Bytes of a lock file that is still read."""
NAME = compile_regex(r"(?:@[A-Za-z0-9_][\w.~-]{0,100}/)?[A-Za-z0-9_][\w.~-]{0,150}", re.ASCII)
MOST = 300
"""Files read of one commit."""


@dataclass(frozen=True, slots=True)
class DependencyReading:
    """`projects` of a commit, what could not be read (path, why), the texts, and a digest of all of them."""

    projects: tuple[Project, ...]
    unread: tuple[tuple[str, str], ...]
    texts: dict[str, str]
    digest: str


def read(git: Git, commit: str, excluded: Callable[[str], bool], also: Callable[[str], bool]) -> DependencyReading:
    """Every project of `commit` but what is excluded; `also` names further files whose text is wanted."""
    entries = [e for e in git.listing(commit) if e.mode in (REGULAR, EXECUTABLE) and not excluded(e.path)]
    found = [e for e in entries if node.is_node_file(e.path) or python.is_python_file(e.path) or also(e.path)]
    ranked = sorted(found, key=lambda e: (not (also(e.path) or _lock(e.path)), e.path.count("/"), e.path))
    wanted, left = ranked[:MOST], ranked[MOST:]
    large = sizes(git, [entry.oid for entry in wanted])
    small = [entry for entry in wanted if large.get(entry.oid, 0) <= LARGEST]
    contents = git.blobs(entry.oid for entry in small)
    texts = {e.path: text for e in small if (text := _decode(contents[e.oid])) is not None}
    items = [*python.projects(_of(texts, python.is_python_file)), *node.projects(_of(texts, node.is_node_file))]
    unread = [item for item in items if not isinstance(item, Project)]
    unread += [(entry.path, "is too large") for entry in wanted if entry not in small]
    unread += [(left[0].path, f"and {len(left) - 1} more are too many: {MOST} are read")] if left else []
    digest = hashlib.sha256("\n".join(f"{entry.oid} {entry.path}" for entry in wanted).encode("utf-8", "replace"))
    projects = tuple(sound(item) for item in items if isinstance(item, Project))
    projects = tuple(project for project in projects if project.packages)
    return DependencyReading(projects, tuple(unread), texts, digest.hexdigest()[:32])


def sound(project: Project) -> Project:
    """Without packages whose names or versions no registry would have: they go into addresses and command lines."""
    packages = (p for p in project.packages if NAME.fullmatch(p.name) and SOUND.fullmatch(p.version))
    return replace(project, packages=tuple(packages))


def _lock(path: str) -> bool:
    return posixpath.basename(path) in (*node.LOCKS, *python.LOCKS)


def _of(texts: dict[str, str], wanted: Callable[[str], bool]) -> dict[str, str]:
    return {path: text for path, text in texts.items() if wanted(path)}


def sizes(git: Git, oids: list[str]) -> dict[str, int]:
    """The bytes of each blob."""
    if not oids:
        return {}
    said = git.text("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin="\n".join(oids).encode())
    return {row[0]: int(row[1]) for line in said.splitlines() if (row := line.split())[1].isdigit()}


def _decode(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
