"""The previous run, put away when the stories are of another branch: its own prd.json and progress.txt.

snarktank/ralph copies prd.json after the new run's has overwritten it, so that the old list is lost. Here the list
comes from the copy that every reading leaves.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

from ralph_mission.loop import progress_log
from ralph_mission.loop.model import Prd
from ralph_mission.stores.loop import files
from ralph_mission.stores.loop.progress_log import ProgressLog
from ralph_mission.stores.loop.stories import Stories
from ralph_mission.trouble import Trouble

LAST_BRANCH = ".last-branch"


def last_branch(folder: Path) -> str:
    """The branch of the run that worked in `folder` last, "" when none did."""
    try:
        return (files.read(folder / LAST_BRANCH, 1000, folder) or b"").decode("utf-8", "replace").strip()
    except (OSError, Trouble):
        return ""


def turn(stories: Stories, log: ProgressLog, prd: Prd, now: datetime) -> Path | None:
    """Start the run of `prd`: put the previous one away when it was of another branch. Where it went, else None.

    The archive is whole before the log is begun anew, and `.last-branch` is written last. Raises OSError.
    """
    folder, before = log.path.parent, last_branch(log.path.parent)
    if not prd.branch or before == prd.branch:
        return None
    put = put_away(folder, before, stories.text_of(before), log.text(), now) if before else None
    if before:
        log.begin(now)
    mark(folder, prd.branch)
    return put


def mark(folder: Path, branch: str) -> None:
    """Write whose run works in `folder` now. Raises OSError."""
    files.write(folder / LAST_BRANCH, f"{branch}\n".encode())


def put_away(folder: Path, branch: str, listed: str | None, log: str, now: datetime) -> Path | None:
    """`archive/YYYY-MM-DD-name/` below `folder` with the list (when it is known) and the log of `branch`.

    A second one of a day gets a number of its own. None when there is nothing to keep. Raises OSError.
    """
    if listed is None and not progress_log.says(log):
        return None
    texts = {"prd.json": listed, "progress.txt": log or None}
    (folder / "archive").mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".", dir=folder / "archive"))
    for name, text in texts.items():
        if text is not None:
            files.write(scratch / name, text.encode())
    scratch.chmod(0o755)  # mkdtemp's own is for its maker alone
    return _placed(scratch, folder / "archive" / f"{now:%Y-%m-%d}-{_slug(branch)}")


def _placed(scratch: Path, wanted: Path) -> Path:
    for number in range(1, 1000):
        place = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            os.mkdir(place)  # only one process gets the name
        except FileExistsError:
            continue
        os.rename(scratch, place)  # onto an empty folder: it is whole or not there
        return place
    shutil.rmtree(scratch, ignore_errors=True)
    raise FileExistsError(f"{wanted} and 999 more")


def _slug(branch: str) -> str:
    """The branch as one folder's name: without `ralph/`, and unable to lead anywhere else."""
    return re.sub(r"[^\w.-]+", "-", branch.removeprefix("ralph/")).strip(".-")[:80] or "run"
