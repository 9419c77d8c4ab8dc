"""What one run leaves to the next: nothing but memories. Its own files go to `.ralph/loop/runs/<run_id>/`.

When the stories are of another branch, the previous run's prd.json and progress.txt are put away. snarktank/ralph
copies prd.json after the new run's has overwritten it, so that the old list is lost. Here the list comes from the copy
that every reading leaves.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import events, inbox, lock, run_files, state
from ralph_mission.adapters.storage.loop.events import EventLog
from ralph_mission.adapters.storage.loop.notes import ProgressLog
from ralph_mission.adapters.storage.loop.state import RUNS, SCRATCHPAD, STATE
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import Prd, RunState
from ralph_mission.loop.stories import judge
from ralph_mission.values import compile_regex

LAST_BRANCH = ".last-branch"
HALF = ".ralph-archiving-"
"""How the name of an archive begins that is not whole yet."""
TEMPORARY = compile_regex(rf"{re.escape(HALF)}[a-z0-9_]{{8}}")
PUT = compile_regex(r"prd\.json|progress\.txt|\.(prd\.json|progress\.txt)(\.\d+){1,2}")
"""What such a one may hold: the two files, and what was being written of them."""
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""What stands under a name that is somebody's already."""


def last_branch(folder: Path) -> str:
    """The branch of the run that worked in `folder` last, "" when none did."""
    try:
        return (run_files.read(folder / LAST_BRANCH, 1000, folder) or b"").decode("utf-8", "replace").strip()
    except (OSError, UserError):
        return ""


def turn(stories: Stories, log: ProgressLog, prd: Prd, now: datetime) -> Path | None:
    """Start the run of `prd`: put the previous one away when it was of another branch. Where it went, else None.

    The archive is whole before a new log is begun, and `.last-branch` is written last. Raises OSError.
    """
    folder, before = log.path.parent, last_branch(log.path.parent)
    if not prd.branch or before == prd.branch:
        return None
    put = archive_stories(folder, before, stories.text_of(before), log.text(), now) if before else None
    if before:
        log.begin(now)
    mark(folder, prd.branch)
    return put


def mark(folder: Path, branch: str) -> None:
    """Write whose run works in `folder` now. Raises OSError."""
    run_files.write(folder / LAST_BRANCH, f"{branch}\n".encode())


def archive_stories(folder: Path, branch: str, listed: str | None, log: str, now: datetime) -> Path | None:
    """`archive/YYYY-MM-DD-name/` below `folder` with the list (when it is known) and what the log of `branch` says.

    A second one of a day gets a number of its own; what a process that died had put away stays the one. None when
    there is nothing to keep. Raises OSError.
    """
    contents = {"prd.json": listed, "progress.txt": log if judge.says(log) else None}
    texts = {name: text.encode() for name, text in contents.items() if text is not None}
    if not texts:
        return None
    archive = _ready(folder / "archive")
    return _already(archive, texts) or _place_archive(_whole(archive, texts), f"{now:%Y-%m-%d}-{_slug(branch)}")


def _ready(archive: Path) -> Path:
    """Have the folder, without what a process that died had only begun there."""
    files.own(archive).mkdir(parents=True, exist_ok=True)
    for half in (place for place in archive.iterdir() if TEMPORARY.fullmatch(place.name) and _is_half(place)):
        shutil.rmtree(half, ignore_errors=True)
    return archive


def _is_half(half: Path) -> bool:
    """Whether it is a folder with nothing but what we put there: what looks like one and is not is somebody's."""
    with suppress(OSError):
        plain = stat.S_ISDIR(half.lstat().st_mode)
        return plain and all(PUT.fullmatch(each.name) and stat.S_ISREG(each.lstat().st_mode) for each in half.iterdir())
    return False


def _already(archive: Path, texts: Mapping[str, bytes]) -> Path | None:
    """Where the same stands: whoever put it away died before it could say whose run is next."""
    places = (place for place in sorted(archive.iterdir()) if place.is_dir())
    return next((place for place in places if all(_holds(place / name, text) for name, text in texts.items())), None)


def _holds(path: Path, text: bytes) -> bool:
    with suppress(OSError, UserError):
        return run_files.read(path, len(text), path.parents[1]) == text
    return False


def _whole(archive: Path, texts: Mapping[str, bytes]) -> Path:
    scratch = Path(tempfile.mkdtemp(prefix=HALF, dir=archive))
    for name, text in texts.items():
        run_files.write(scratch / name, text)
    scratch.chmod(0o755)  # mkdtemp's own is for its maker alone
    return scratch


def _place_archive(scratch: Path, name: str) -> Path:
    for number in range(1, 1000):
        place = scratch.with_name(name if number == 1 else f"{name}-{number}")
        try:
            os.rename(scratch, place)  # onto nothing, or an empty folder: only one process gets the name
        except OSError as error:
            if error.errno not in TAKEN:
                raise
        else:
            return place
    shutil.rmtree(scratch, ignore_errors=True)
    raise FileExistsError(f"{name} and 999 more")


def _slug(branch: str) -> str:
    """The branch as one folder's name: without `ralph/`, and unable to lead anywhere else."""
    return re.sub(r"[^\w.-]+", "-", branch.removeprefix("ralph/")).strip(".-")[:80] or "run"


FILES = (
    "loop/state.json", "loop/handoff.json", "loop/prompt.txt", "loop/calls.json", "loop/calls", SCRATCHPAD,
)  # fmt: skip  # one list
"""Below `.ralph/`: what belongs to one run only."""


def fresh_id(root: Path, mode: str, now: datetime) -> str:
    """A name for a new run that no other has: `20260504-120000-prd`."""
    name = f"{now:%Y%m%d-%H%M%S}-{mode}"
    names = [name, *(f"{name}-{number}" for number in range(2, 1000))]
    return next(one for one in names if not (root / RUNS / one).exists())


def archive_run(root: Path, previous: RunState | None, log: EventLog, now: datetime) -> None:
    """Make room for a new run: the previous one's files are moved, what it emitted and was asked is forgotten.

    Tasks go with it unless somebody has touched the list since: those are meant for the next run. Raises OSError.
    """
    home = root / ".ralph"
    place = root / RUNS / (previous.run_id if previous else fresh_id(root, "unknown", now))
    if previous and _untouched_since(root / STATE, Tasks(home).path):
        Tasks(home).archive(place / "tasks.jsonl")
    log.archive(place / "events.jsonl")
    for name in FILES:
        move_file(home / name, place)
    events.read_events(home)
    inbox.clear(home)


def clear_up(root: Path, git_dir: Path, *, forget: bool) -> list[str]:
    """Remove what a loop that died left lying about, each by a short name; nobody may run here.

    `forget`: the run cannot be continued afterwards; its state goes to its folder. Raises OSError and UserError.
    """
    home, done = root / ".ralph", []
    found = state.rescue(root)[0] if forget else None
    if inbox.read(home):
        done.append("a signal")
    inbox.clear(home)
    if lock.clear(git_dir):
        done.append("the note of a loop that died")
    if lock.inactive(root):
        done.append("its mark in .omc")
    if found:
        retire(root, found)
        done.append(f"the state of {found.run_id}, which cannot be continued any more")
    return done


def retire(root: Path, run: RunState) -> None:
    """Put the state of a cancelled run into its folder: it is not continued. Raises OSError."""
    move_file(root / STATE, root / RUNS / run.run_id)


def _untouched_since(saved: Path, tasks: Path) -> bool:
    try:
        return tasks.stat().st_mtime_ns <= saved.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def move_file(path: Path, place: Path) -> None:
    """Move a file, if it is there, to the folder `place`, to a name that is free. Raises OSError."""
    place.mkdir(parents=True, exist_ok=True)
    others = (f"{path.stem}-{number}{path.suffix}" for number in count(2))
    target = next(place / name for name in chain((path.name,), others) if not (place / name).exists())
    with suppress(FileNotFoundError):
        path.replace(target)
    if not any(place.iterdir()):
        place.rmdir()
