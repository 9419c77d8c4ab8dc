"""A mark: everything about a checkout at one moment, kept as one commit object that nobody can alter unseen.

Its name is the commit's id, its message says what is not in its tree, and a ref keeps it from being pruned, so a
kill at any moment loses nothing. The user's index, stash and configuration are not touched by making one.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph_mission.gateways import checkout_guard as guard
from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways import checkout_sound as sound
from ralph_mission.gateways.checkout_files import File, Files, Reader
from ralph_mission.gateways.checkout_flags import Flags
from ralph_mission.gateways.checkout_kept import Guarded, Kept
from ralph_mission.gateways.checkout_listed import GITLINK, Index
from ralph_mission.gateways.git import EMPTY_TREE, Git, GitError
from ralph_mission.trouble import Trouble


@dataclass(frozen=True, slots=True)
class Mark:
    """A checkout at one moment. `name` is the id of the commit that keeps it.

    `raw` is the index by its bytes, which only the process that made the mark still has.
    """

    name: str
    place: history.Place
    files: Files
    index: Index
    nested: frozenset[str]
    flags: Flags
    guarded: Guarded
    standing: Guarded
    unfinished: frozenset[str]
    raw: bytes = b""

    @property
    def aside(self) -> str:
        """Below which refs stands what a session after this mark had to give back."""
        return f"{history.ASIDE}/{self.name[:12]}"


class Maker:
    """Makes the marks of one checkout; what did not change since the last one is not asked for again."""

    def __init__(self, git: Git, reader: Reader, sweep: sound.Sweep) -> None:
        self._git, self._reader, self._sweep = git, reader, sweep
        self._index: tuple[bytes, str] = (b"", "")
        self._anchor: tuple[object, str] = (None, "")

    def make(self, previous: str = "") -> Mark:
        """Mark the checkout as it is now; the ref of the `previous` mark goes. Raises GitError."""
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(self._standing)
            reading = self._reader.read()
            where, index = asked.result()
        guarded = guard.read(self._git, reading.nested, self._sweep)
        mark = Mark(
            "", where, reading.files, reading.index, reading.nested, reading.flags, guarded, sound.standing(self._git),
            guard.unfinished(self._git), self._index[0],
        )  # fmt: skip  # one value
        tree = self._anchored(index, self._reader.keep(reading))
        text = json.dumps(_written(mark), separators=(",", ":"))
        name = self._git.commit_tree(tree, [where.head] if where.head else [], text, datetime.now(UTC))
        _point(self._git, name, previous)
        return replace(mark, name=name)

    def _standing(self) -> tuple[history.Place, str]:
        where = history.place(self._git)
        return where, self._index_tree(where.head)

    def _index_tree(self, head: str) -> str:
        source = self._git.git_dir / "index"
        content = source.read_bytes() if source.exists() else b""
        if content != self._index[0] or not self._index[1]:
            self._index = (content, _tree_of_index(self._git, content, head))
        return self._index[1]

    def _anchored(self, index: str, oids: tuple[str, ...]) -> str:
        """A tree that holds the index and what only the files hold."""
        if self._anchor[0] != (index, oids):
            rows = [f"040000 tree {index}\tindex", *(f"100644 blob {oid}\t{oid}" for oid in oids)]
            tree = self._git.text("mktree", "--missing", stdin="".join(f"{row}\n" for row in rows).encode())
            self._anchor = ((index, oids), tree)
        return self._anchor[1]


def load(git: Git, name: str) -> Mark:
    """A mark that an earlier process made. Raises Trouble when it is not there any more."""
    content = git.blobs([name]).get(name, b"")
    try:
        return _read(git, name, json.loads(content.partition(b"\n\n")[2]))
    except (ValueError, KeyError, TypeError, RecursionError, GitError):
        raise Trouble(f"the mark {name[:12]} cannot be read", "run again without --continue") from None


def unpin(git: Git, name: str) -> None:
    """Let go of a mark that nobody asks for any more. Raises GitError."""
    git.run("update-ref", "--no-deref", "-d", f"{history.MARKS}/{name}")


def _tree_of_index(git: Git, content: bytes, head: str) -> str:
    """The index as a tree, written from a copy; during a merge there is none, then that of HEAD."""
    with git.scratch_index() as env:
        if content:
            Path(env["GIT_INDEX_FILE"]).write_bytes(content)
        try:
            return git.run("write-tree", env=env).decode().strip()
        except GitError:
            return git.text("rev-parse", f"{head}^{{tree}}") if head else EMPTY_TREE


def _point(git: Git, name: str, previous: str) -> None:
    lines = [f"update {history.MARKS}/{name} {name}"]
    if previous and previous != name:
        lines.append(f"delete {history.MARKS}/{previous}")
    git.run("update-ref", "--stdin", stdin="".join(f"{line}\n" for line in lines).encode())


def _written(mark: Mark) -> dict[str, Any]:
    changed = {path for path, file in mark.files.items() if mark.index.get(path) != (file.mode, file.oid)}
    changed |= mark.index.keys() - mark.files.keys()
    return {
        "head": mark.place.head,
        "branch": mark.place.branch,
        "refs": dict(mark.place.refs),
        "elsewhere": sorted(mark.place.elsewhere),
        "noted": dict(mark.place.noted),
        "files": {path: _row(mark.files.get(path)) for path in sorted(changed)},
        "permissions": {path: file.permissions for path, file in mark.files.items() if _uncommon(file)},
        "nested": sorted(mark.nested),
        "flags": dict(mark.flags),
        "guarded": _rows(mark.guarded),
        "standing": _rows(mark.standing),
        "unfinished": sorted(mark.unfinished),
    }


def _read(git: Git, name: str, said: Mapping[str, Any]) -> Mark:
    index = {entry.path: (entry.mode, entry.oid) for entry in git.listing(f"{name}:index")}
    files = _base(index)
    for path, row in said["files"].items():
        files.pop(path, None)
        if row:
            files[path] = File(*row)
    for path, permissions in said["permissions"].items():
        files[path] = File(files[path].mode, files[path].oid, permissions)
    guarded, standing = _guarded(said["guarded"]), _guarded(said["standing"])
    where = history.Place(said["head"], said["branch"], said["refs"], frozenset(said["elsewhere"]), said["noted"])
    return Mark(
        name,
        where,
        files,
        index,
        frozenset(said["nested"]),
        said["flags"],
        guarded,
        standing,
        frozenset(said["unfinished"]),
    )


def _base(index: Index) -> dict[str, File]:
    """The files as they are when the index is what stands there."""
    return {path: File(mode, oid) for path, (mode, oid) in index.items() if mode != GITLINK}


def _rows(guarded: Guarded) -> dict[str, list[object]]:
    return {path: [kept.mode, base64.b64encode(kept.content).decode()] for path, kept in guarded.items()}


def _guarded(rows: Mapping[str, tuple[int, str]]) -> dict[str, Kept]:
    return {path: Kept(mode, base64.b64decode(text)) for path, (mode, text) in rows.items()}


def _row(file: File | None) -> list[str] | None:
    return [file.mode, file.oid] if file else None


def _uncommon(file: File) -> bool:
    return file.permissions not in (0, 0o644, 0o755)
