"""`.ralph/loop/state.json`: where a run stands between two sessions, the last session's record included."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from ralph_mission.loop.model import HatOutput, RunState
from ralph_mission.stores import codec
from ralph_mission.stores.loop import files

STATE = ".ralph/loop/state.json"
RUNS = ".ralph/loop/runs"
VERSION = 1
LARGEST = 64_000_000
"""Bytes that are read at most: ten thousand of a session's changes are about one million."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The document: a version first, so that a later one can tell its own from ours."""

    version: int
    state: RunState


def load(root: Path) -> RunState | None:
    """The state in the work tree `root`, None when there is none. Raises Unreadable, and Trouble for no plain file."""
    content = files.read(root / STATE, LARGEST)
    if content is None:
        return None
    saved: Saved = codec.load(Saved, content)
    if saved.version != VERSION:
        raise codec.UnreadableDocument(f"of version {saved.version}, and this one reads version {VERSION}")
    if "/" in saved.state.run_id or saved.state.run_id in ("", ".", ".."):  # a folder of ours is named after it
        raise codec.UnreadableDocument(f"its run is called {saved.state.run_id!r}")
    return saved.state


def of_run(root: Path, run_id: str) -> RunState | None:
    """The last state of a run that was put away, None when none is known. A run's id is a folder's name."""
    folders = (folder for folder in (root / RUNS).glob("*/") if folder.name == run_id)
    content = next((files.read(folder / Path(STATE).name, LARGEST) for folder in folders), None)
    try:
        saved: Saved | None = codec.load(Saved, content) if content is not None else None
    except codec.UnreadableDocument:
        return None
    return saved.state if saved and saved.version == VERSION else None


def save(root: Path, state: RunState) -> None:
    """Keep `state`: all of it or what stood there before. Raises OSError."""
    files.write(root / STATE, codec.dump(Saved, Saved(VERSION, state)))


def rescue(root: Path) -> tuple[RunState | None, str]:
    """The state, and a complaint when the file was broken: it is put aside, not lost. Raises OSError and Trouble."""
    try:
        return load(root), ""
    except codec.UnreadableDocument as error:
        aside = _free(root / STATE)
        (root / STATE).rename(aside)
        return None, f"{STATE} cannot be read ({error}); put aside as {aside.name}"


def keep_output(root: Path, run_id: str, output: HatOutput) -> tuple[Path, bytes]:
    """The record of one session, for good: `runs/<run_id>/session-NNNN.json`, and what stands there. Raises OSError."""
    place = root / RUNS / run_id / f"session-{output.iteration:04d}.json"
    content = codec.dump(HatOutput, output)
    files.write(place, content)
    return place, content


def _free(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.broken-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())
