"""The stories and their log as a session found them, so that one that died leaves no claim that nobody has checked.

git's mark does not hold them where git does not look: in `.ralph/`, in an ignored `.omc/`, outside of the work tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ralph_mission.loop.model import Change
from ralph_mission.stores.loop import files

FOLDER = ".ralph/loop/before"
CAP = 64_000_000  # bytes of one of them
REASON = "a session that was cut off left it so; it is as before that session"


def keep(root: Path, lists: Sequence[Path]) -> None:
    """Copy `lists` (of different names) as a session begins; one that is not there leaves no copy. Raises OSError."""
    for path in lists:
        content, copy = files.read(path, CAP), root / FOLDER / path.name
        if content is None:
            copy.unlink(missing_ok=True)
        elif content != files.read(copy, CAP):
            files.write(copy, content)


def put_back(root: Path, lists: Sequence[Path], aside: Path) -> tuple[Change, ...]:
    """Make `lists` what the copies are; what differs goes to `aside`. Raises OSError."""
    found = [(path, files.read(root / FOLDER / path.name, CAP), files.read(path, CAP)) for path in lists]
    wrong = [(path, copy, now) for path, copy, now in found if copy is not None and copy != now]
    for path, copy, now in wrong:
        if now is not None:
            files.write(aside / f"cut-off-{path.name}", now)
        files.write(path, copy or b"")
    return tuple(Change(path.name, "deleted" if now is None else "modified", REASON) for path, _, now in wrong)
