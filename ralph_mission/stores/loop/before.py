"""The stories and their log as a session found them, so that one that died leaves no claim that nobody has checked.

git's mark does not hold them where git does not look: in `.ralph/`, in an ignored `.omc/`, outside of the work tree.
Once a story was judged, its commit follows. Who dies between that commit and the state has done the story all the same:
where that very commit is behind HEAD, the lists are what was judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ralph_mission.gateways.files import safe_paths
from ralph_mission.loop.model import Change
from ralph_mission.stores.loop import files, ways
from ralph_mission.trouble import Trouble

FOLDER, JUDGED = ".ralph/loop/before", ".ralph/loop/judged.json"
CAP = 64_000_000  # bytes of one of them
REASON = "a session that was cut off left it so; it is as before that session"
Kept = Mapping[str, bytes | None]


def keep(root: Path, lists: Sequence[Path]) -> None:
    """Copy `lists` (of different names) as a session begins; one that is not there leaves no copy. Raises OSError."""
    files.remove(root / JUDGED)
    for path in lists:
        content, copy = _content(root, path), root / FOLDER / path.name
        if content is None:
            files.remove(copy)
        elif content != files.read(copy, CAP):
            files.write(copy, content)


def judged(root: Path, lists: Sequence[Path], commit: str) -> None:
    """Keep `lists` as they were judged; `commit`, their story's, is made and comes next. Raises OSError."""
    found = {path.name: _content(root, path) for path in lists}
    texts = {name: content.decode("utf-8", "surrogateescape") for name, content in found.items() if content is not None}
    files.write(root / JUDGED, json.dumps({"commit": commit, "lists": texts}).encode())


def put_back(root: Path, lists: Sequence[Path], aside: Path, landed: Callable[[str], bool]) -> tuple[Change, ...]:
    """Make `lists` what they were; what differs goes to `aside`. `landed` tells of a commit. Raises OSError."""
    copies = _judged(root, landed) or {path.name: files.read(root / FOLDER / path.name, CAP) for path in lists}
    found = [(path, copies.get(path.name), _content(root, path)) for path in lists]
    wrong = [(path, copy, now) for path, copy, now in found if copy is not None and copy != now]
    links: list[Change] = []
    for path, copy, now in wrong:
        links += ways.within(path, root)
        if now is not None:
            files.write(aside / f"cut-off-{path.name}", now)
        files.write(path, copy or b"")
    return (*links, *(Change(path.name, "deleted" if now is None else "modified", REASON) for path, _, now in wrong))


def _content(root: Path, path: Path) -> bytes | None:
    """What stands in a list; nothing where there is no plain file: what a link leads to is not copied to sessions."""
    try:
        return files.read(path, CAP, root if path.is_relative_to(root) else path.parent)
    except Trouble:
        return None


def _judged(root: Path, landed: Callable[[str], bool]) -> Kept | None:
    """What was judged in the session that died, if its commit landed; anything odd there says nothing."""
    try:
        said = safe_paths.told(root / JUDGED, 3 * CAP)
        kept = {name: text.encode("utf-8", "surrogateescape") for name, text in said["lists"].items()}
        return kept if landed(said["commit"]) else None
    except (ValueError, TypeError, KeyError, AttributeError, Trouble):
        return None
