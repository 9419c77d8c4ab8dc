"""The stories and their log as a session found them, so that one that died leaves no claim that nobody has checked.

git's mark does not hold them where git does not look: in `.ralph/`, in an ignored `.omc/`, outside of the work tree.
Once a story was judged, its commit follows. Who dies between that commit and the state has done the story all the same:
where HEAD has moved on from where it was judged, the lists are what was judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ralph_mission.loop.model import Change
from ralph_mission.stores.loop import files

FOLDER, JUDGED = ".ralph/loop/before", ".ralph/loop/judged"
HEAD = "HEAD"  # where it stood when they were judged; written last
CAP = 64_000_000  # bytes of one of them
REASON = "a session that was cut off left it so; it is as before that session"


def keep(root: Path, lists: Sequence[Path]) -> None:
    """Copy `lists` (of different names) as a session begins; one that is not there leaves no copy. Raises OSError."""
    (root / JUDGED / HEAD).unlink(missing_ok=True)
    _copy(root / FOLDER, lists)


def judged(root: Path, lists: Sequence[Path], head: str) -> None:
    """Copy `lists` as they were judged, with HEAD at `head`. Raises OSError."""
    _copy(root / JUDGED, lists)
    files.write(root / JUDGED / HEAD, head.encode())


def _copy(folder: Path, lists: Sequence[Path]) -> None:
    for path in lists:
        content, copy = files.read(path, CAP), folder / path.name
        if content is None:
            copy.unlink(missing_ok=True)
        elif content != files.read(copy, CAP):
            files.write(copy, content)


def put_back(root: Path, lists: Sequence[Path], aside: Path, head: str | None) -> tuple[Change, ...]:
    """Make `lists` what the copies are, with HEAD at `head` now (None: unknown); what differs goes to `aside`.

    Raises OSError.
    """
    then = files.read(root / JUDGED / HEAD, CAP)
    kept = root / (FOLDER if then is None or head in (None, then.decode()) else JUDGED)
    found = [(path, files.read(kept / path.name, CAP), files.read(path, CAP)) for path in lists]
    wrong = [(path, copy, now) for path, copy, now in found if copy is not None and copy != now]
    for path, copy, now in wrong:
        if now is not None:
            files.write(aside / f"cut-off-{path.name}", now)
        files.write(path, copy or b"")
    return tuple(Change(path.name, "deleted" if now is None else "modified", REASON) for path, _, now in wrong)
