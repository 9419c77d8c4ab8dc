"""What one run leaves to the next: nothing but memories. Its own files go to `.ralph/loop/runs/<run_id>/`."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from ralph_mission.loop.model import RunState
from ralph_mission.stores.loop import files, legacy, lock, said, signals, state
from ralph_mission.stores.loop.events import EventLog
from ralph_mission.stores.loop.state import RUNS, STATE
from ralph_mission.stores.loop.tasks import Tasks

FILES = (
    "loop/state.json", "loop/handoff.json", "loop/prompt.txt", "loop/calls.json", "loop/calls", "agent/scratchpad.md",
)  # fmt: skip  # one list
"""Below `.ralph/`: what belongs to one run only."""


def fresh_id(root: Path, mode: str, now: datetime) -> str:
    """A name for a new run that no other has: `20260504-120000-prd`."""
    name = f"{now:%Y%m%d-%H%M%S}-{mode}"
    names = [name, *(f"{name}-{number}" for number in range(2, 1000))]
    return next(one for one in names if not (root / RUNS / one).exists())


def archive_run(root: Path, previous: RunState | None, log: EventLog, now: datetime) -> None:
    """Make room for a new run: the previous one's files are moved, what it said and was asked is forgotten.

    Tasks go with it unless somebody has touched the list since: those are meant for the next run. Raises OSError.
    """
    home = root / ".ralph"
    place = root / RUNS / (previous.run_id if previous else fresh_id(root, "unknown", now))
    if previous and _untouched_since(root / STATE, Tasks(home).path):
        Tasks(home).archive(place / "tasks.jsonl")
    log.archive(place / "events.jsonl")
    for name in FILES:
        _move(home / name, place)
    said.read_events(home)
    signals.clear(home)


def clear_up(root: Path, git_dir: Path, *, forget: bool) -> list[str]:
    """Remove what a loop that died left lying about, each by a short name; nobody may run here.

    `forget`: the run cannot be continued afterwards; its state goes to its folder. Raises OSError and Trouble.
    """
    home, done = root / ".ralph", []
    found = state.rescue(root)[0] if forget else None
    if signals.read(home):
        done.append("a signal")
    signals.clear(home)
    if lock.clear(git_dir):
        done.append("the note of a loop that died")
    if legacy.inactive(root):
        done.append("its mark in .omc")
    if found:
        retire(root, found)
        done.append(f"the state of {found.run_id}")
    return done


def retire(root: Path, run: RunState) -> None:
    """Put the state of a cancelled run into its folder: it is not continued. Raises OSError."""
    _move(root / STATE, root / RUNS / run.run_id)


def clear_scratchpad(path: Path, place: Path) -> None:
    """Move the notes of an issue that is done to `place`. Raises OSError."""
    _move(path, place)


def _untouched_since(saved: Path, tasks: Path) -> bool:
    try:
        return tasks.stat().st_mtime_ns <= saved.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _move(path: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    others = (f"{path.stem}-{number}{path.suffix}" for number in count(2))
    target = next(place / name for name in chain((path.name,), others) if not (place / name).exists())
    with suppress(FileNotFoundError):
        path.replace(target)
    if not any(place.iterdir()):
        place.rmdir()


def scratchpad(root: Path, clone: Path, named: str, cap: int) -> tuple[Path, str]:
    """Where agents keep their notes, and what they hold: the file that the settings name, else the usual one."""
    if named and (clone / named).is_file():
        return clone / named, (files.read(clone / named, cap, clone) or b"").decode(errors="replace")
    usual = root / ".ralph/agent/scratchpad.md"
    return usual, (files.read(usual, cap, root) or b"").decode(errors="replace")
