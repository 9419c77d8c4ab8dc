"""What git knows of two commits: where they part, what one changes, which lines that touches. Reads only.

Answers about object ids are remembered. Missing history (a shallow clone) makes differences larger, never smaller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ralph_mission.gateways.git import EMPTY_TREE, Git, Identity
from ralph_mission.mission.threads import Touch
from ralph_mission.safety.patch import patch_id

HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Changes:
    """What a head changes since it left its base: lines of the base side, and each file's change as an id."""

    touches: tuple[Touch, ...] = ()
    patch_ids: frozenset[str] = frozenset()


def is_ancestor(git: Git, old: str, new: str) -> bool:
    """Whether commit `old` is in the history of `new`."""
    return bool(old) and fork(git, new, old) == old


@lru_cache(maxsize=1024)
def fork(git: Git, base: str, head: str) -> str:
    """Where `head` left `base`; the empty tree when they share no history."""
    return git.try_text("merge-base", base, head) or EMPTY_TREE


@lru_cache(maxsize=256)
def changes(git: Git, base: str, head: str) -> Changes:
    """The lines of the base side that `head` changes since it left `base`; an insertion touches the line before it."""
    flags = ("-r", "-p", "--raw", "-z", "--text", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv")
    raw = git.run("diff-tree", *flags, fork(git, base, head), head)
    names, _, patch = raw.partition(b"\0\0")
    hunks = list(_hunks(_paths(names), patch.split(b"\n")))
    return Changes(tuple(hunk.touch for hunk in hunks), frozenset(_patch_ids(hunks)))


def diff(git: Git, base: str, head: str) -> str:
    """What `head` changes since it left `base`, as a patch for people."""
    flags = ("-r", "-p", "--stat", "--text", "-M", "--no-ext-diff", "--no-textconv", "--no-color")
    return git.text("diff-tree", *flags, fork(git, base, head), head)


def shown(git: Git, base: str, head: str) -> Mapping[str, tuple[tuple[int, int], ...]]:
    """The files of that diff, and which of their lines on the side of `head` it shows; none of a file that is gone."""
    flags = ("-r", "-p", "--raw", "-z", "--text", "--no-renames", "--no-ext-diff", "--no-textconv")
    names, _, patch = git.run("diff-tree", *flags, fork(git, base, head), head).partition(b"\0\0")
    paths, position = _paths(names) if names else [], -1
    found: dict[str, tuple[tuple[int, int], ...]] = dict.fromkeys(paths, ())
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            position += 1
        elif (match := HUNK.match(line)) and int(match[4] or 1):
            first = int(match[3])
            found[paths[position]] += ((first, first + int(match[4] or 1) - 1),)
    return found


def commits(git: Git, base: str, head: str) -> tuple[str, ...]:
    """Object ids on `head` that are not on `base`, oldest first."""
    return tuple(git.text("rev-list", "--reverse", head, f"^{base}").split())


def own(git: Git, base: str, head: str) -> frozenset[str]:
    """Those of `commits` that have our name, as author and as committer: nobody else's, unless it was forged."""
    us = f"{Identity().name} <{Identity().email}>"
    told = git.text("log", "--no-show-signature", "--format=%H %an <%ae>%x00%cn <%ce>", head, f"^{base}")
    lines = (line.partition(" ") for line in told.split("\n"))
    return frozenset(oid for oid, _, names in lines if names.split("\0") == [us, us])


def _paths(names: bytes) -> list[str]:
    """The path of each patch to come. A change of type is shown as a removal and an addition."""
    fields = names.rstrip(b"\0").split(b"\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return [path.decode("utf-8", "surrogateescape") for meta, path in pairs for _ in range(1 + meta.endswith(b" T"))]


@dataclass(frozen=True, slots=True)
class _Hunk:
    touch: Touch
    deleted: tuple[bytes, ...]
    added: tuple[bytes, ...]


def _hunks(paths: list[str], lines: list[bytes]) -> Iterator[_Hunk]:
    position, row = -1, 0
    while row < len(lines):
        line, row = lines[row], row + 1
        if line.startswith(b"diff --git "):
            position += 1
        elif match := HUNK.match(line):
            first, gone, come = max(int(match[1]), 1), int(match[2] or 1), int(match[4] or 1)
            body = [said for said in lines[row : row + gone + come + 2] if not said.startswith(b"\\")][: gone + come]
            touch = Touch(paths[position], first, first + max(gone, 1) - 1)
            yield _Hunk(touch, tuple(said[1:] for said in body[:gone]), tuple(said[1:] for said in body[gone:]))
            row += gone + come


def _patch_ids(hunks: list[_Hunk]) -> Iterator[str]:
    for path in {hunk.touch.path for hunk in hunks}:
        here = [hunk for hunk in hunks if hunk.touch.path == path]
        deleted = (line for hunk in here for line in hunk.deleted)
        yield patch_id(path, deleted, (line for hunk in here for line in hunk.added))
